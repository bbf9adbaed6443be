import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import {
  buildTitle,
  type FormError,
  findError,
  renderErrors,
  renderField,
  renderFormToken,
  renderKeepApps,
} from '../frame/form.ts'
import { buildAddressPage, buildLinkPage, buildSentPage } from '../frame/mail-form.ts'
import { renderNavigation } from '../frame/navigation.ts'
import type { PageParts } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { renderText } from '../frame/text.ts'
import { SHOW_PASSWORD } from '../script/page-script.ts'

type Deps = Pick<PageDeps, 'browserKeys'>
type Page = Omit<PageParts, 'brand'>

/** Contents of a form besides its fields. */
interface FormView {
  browserId: string
  texts: Texts
  errors?: readonly FormError[]
}

/** Builds the page that asks for a link to a new password. */
export function buildForgotPage(deps: Deps, view: FormView & { email?: string }): Page {
  return buildAddressPage(deps, {
    ...view,
    action: '/auth/forgot',
    title: 'forgot.title',
    text: 'forgot.text',
    autocomplete: 'username',
    submit: 'forgot.send',
    back: { href: '/auth/sign-in', text: 'forgot.back' },
  })
}

/** The page after a link was asked for: the same for every address. */
export function buildLinkSentPage({ texts }: { texts: Texts }): Page {
  return buildSentPage({ texts, text: 'forgot.sent-text', hint: 'forgot.sent-hint' })
}

/** Builds the page of a reset link. */
export function buildResetPage(
  deps: Deps,
  { browserId, texts, errors = [], token }: FormView & { token: string },
): Page {
  const content = html`<div class="panel">
<div class="lead">
<h1>${texts.say('reset.title')}</h1>
<p class="quiet">${texts.say('reset.text')}</p>
</div>
${renderErrors(texts, errors)}
<form method="post" action="/auth/reset" novalidate>
${renderFormToken(deps, browserId)}
<input type="hidden" name="token" value="${token}">
${renderNewPassword(texts, errors, errors.length === 0)}
<button type="submit">${texts.say('reset.submit')}</button>
</form>
</div>`
  return { texts, title: buildTitle(texts, texts.say('reset.title'), errors), content, scripts: [SHOW_PASSWORD] }
}

/** The field of a new password, with its rule. */
export function renderNewPassword(texts: Texts, errors: readonly FormError[], isFocused: boolean): Html {
  return renderField(texts, {
    name: 'password',
    label: texts.say('form.new-password'),
    type: 'password',
    autocomplete: 'new-password',
    hint: texts.say('form.password-rule'),
    error: findError(errors, 'password'),
    isFocused,
  })
}

/** Builds the page of a verification link. */
export function buildVerifyPage(deps: Deps, { browserId, texts, token }: FormView & { token: string }): Page {
  const words = { title: 'verify.title', text: 'verify.text', submit: 'verify.submit' } as const
  return buildLinkPage(deps, { browserId, texts, token, action: '/auth/verify', ...words })
}

/** The page after an address was confirmed. */
export function buildVerifiedPage({ texts }: { texts: Texts }): Page {
  const content = html`<div class="panel">
<div class="lead">
<h1>${texts.say('verify.done')}</h1>
<p class="quiet">${texts.say('verify.done-text')}</p>
</div>
<a class="button" href="/auth/">${texts.say('verify.continue')}</a>
</div>`
  return { texts, title: texts.say('verify.done'), content }
}

/** Builds the page on which a user changes its password. */
export function buildChangePage(
  deps: Deps,
  { browserId, texts, errors = [], email }: FormView & { email: string },
): Page {
  const content = html`<div class="lead">
<h1>${texts.say('password.change-title')}</h1>
<p class="quiet">${texts.say('password.change-text')}</p>
</div>
<section class="panel" aria-label="${texts.say('password.change-title')}">
${renderErrors(texts, errors)}
<form method="post" action="/auth/password" class="narrow" novalidate>
${renderFormToken(deps, browserId)}
<input type="text" name="username" value="${email}" autocomplete="username" hidden>
${renderField(texts, {
  name: 'current',
  label: texts.say('password.current'),
  type: 'password',
  autocomplete: 'current-password',
  error: findError(errors, 'current'),
})}
${renderNewPassword(texts, errors, false)}
${renderKeepApps(texts)}
<div class="actions"><button type="submit">${texts.say('password.change')}</button></div>
</form>
</section>`
  return {
    texts,
    title: buildTitle(texts, texts.say('password.change-title'), errors),
    layout: 'wide',
    navigation: renderNavigation(deps, { path: '/auth/password', browserId, texts }),
    content,
    scripts: [SHOW_PASSWORD],
  }
}

/** Action of the form that asks for a link to a first password. */
export const ASK_FOR_PASSWORD = '/auth/password/request'

/** Builds the page of a user without a password: a link by mail leads to one. */
export function buildNoPasswordPage(
  deps: Deps & { canSendMail: boolean },
  { browserId, texts, email }: FormView & { email: string },
): Page {
  const title = texts.say('password.none-title')
  const way = deps.canSendMail
    ? html`<p>${renderText(texts, 'password.none-mail', { email: html`<strong>${email}</strong>` })}</p>
<form method="post" action="${ASK_FOR_PASSWORD}" class="actions">${renderFormToken(deps, browserId)}<button type="submit">${texts.say('password.none-send')}</button></form>`
    : html`<p>${texts.say('password.none-no-mail')}</p>`
  const content = html`<div class="lead">
<h1>${title}</h1>
</div>
<section class="panel" aria-label="${title}">
${way}
</section>`
  const navigation = renderNavigation(deps, { path: '/auth/password', browserId, texts })
  return { texts, title, layout: 'wide', navigation, content }
}
