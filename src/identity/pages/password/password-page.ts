import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { type FormError, findError, renderErrors, renderField, renderFormToken, renderKeepApps } from '../frame/form.ts'
import { buildCard, buildSections, type FormView, type Reader } from '../frame/layout.ts'
import { buildAddressPage, buildLinkPage, buildSentPage } from '../frame/mail-form.ts'
import type { PageBody } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { renderText } from '../frame/text.ts'
import { SHOW_PASSWORD } from '../script/page-script.ts'

type Deps = Pick<PageDeps, 'browserKeys'>

/** Builds the page that asks for a link to a new password. */
export function buildForgotPage(deps: Deps, view: FormView & { email?: string }): PageBody {
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
export function buildLinkSentPage({ texts }: { texts: Texts }): PageBody {
  return buildSentPage({ texts, text: 'forgot.sent-text', hint: 'forgot.sent-hint' })
}

/** Builds the page of a reset link. */
export function buildResetPage(deps: Deps, view: FormView & { token: string }): PageBody {
  const { browserId, texts, errors = [], token } = view
  const content = html`<form method="post" action="/auth/reset" novalidate>
${renderFormToken(deps, browserId)}
<input type="hidden" name="token" value="${token}">
${renderNewPassword(texts, errors, errors.length === 0)}
<button type="submit">${texts.say('reset.submit')}</button>
</form>`
  const lead = { title: texts.say('reset.title'), text: texts.say('reset.text') }
  return buildCard(view, { ...lead, content, scripts: [SHOW_PASSWORD] })
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
export function buildVerifyPage(deps: Deps, view: Reader & { token: string }): PageBody {
  const words = { title: 'verify.title', text: 'verify.text', submit: 'verify.submit' } as const
  return buildLinkPage(deps, { ...view, action: '/auth/verify', ...words })
}

/** The page after an address was confirmed. */
export function buildVerifiedPage({ texts }: { texts: Texts }): PageBody {
  const content = html`<a class="button" href="/auth/">${texts.say('verify.continue')}</a>`
  return buildCard({ texts }, { title: texts.say('verify.done'), text: texts.say('verify.done-text'), content })
}

/** Builds the page on which a user changes its password. */
export function buildChangePage(deps: Deps, view: FormView & { email: string }): PageBody {
  const { browserId, texts, errors = [], email } = view
  const title = texts.say('password.change-title')
  const content = html`<section class="panel" aria-label="${title}">
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
  const text = texts.say('password.change-text')
  return buildSections(deps, view, { path: '/auth/password', title, text, content, scripts: [SHOW_PASSWORD] })
}

/** Action of the form that asks for a link to a first password. */
export const ASK_FOR_PASSWORD = '/auth/password/request'

/** Builds the page of a user without a password: a link by mail leads to one. */
export function buildNoPasswordPage(deps: Deps & { canSendMail: boolean }, view: Reader & { email: string }): PageBody {
  const { browserId, texts, email } = view
  const title = texts.say('password.none-title')
  const way = deps.canSendMail
    ? html`<p>${renderText(texts, 'password.none-mail', { email: html`<strong>${email}</strong>` })}</p>
<form method="post" action="${ASK_FOR_PASSWORD}" class="actions">${renderFormToken(deps, browserId)}<button type="submit">${texts.say('password.none-send')}</button></form>`
    : html`<p>${texts.say('password.none-no-mail')}</p>`
  const content = html`<section class="panel" aria-label="${title}">
${way}
</section>`
  return buildSections(deps, view, { path: '/auth/password', title, content })
}
