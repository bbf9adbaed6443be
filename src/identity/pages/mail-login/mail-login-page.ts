import { html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { MAIL_LOGIN_LINK } from '../../sign-in/by-mail/mail-login.ts'
import { buildTitle, type FormError, findError, renderErrors, renderField, renderFormToken } from '../frame/form.ts'
import { buildAddressPage, buildLinkPage } from '../frame/mail-form.ts'
import type { PageParts } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { buildGoalUrl, MAIL_LOGIN } from '../frame/page-url.ts'
import { type Goal, listFormTargets, renderGoal } from '../sign-in/sign-in-goal.ts'

type Deps = Pick<PageDeps, 'browserKeys'>
type Page = Omit<PageParts, 'brand'> & { formTargets?: readonly string[] }

interface FormView {
  browserId: string
  texts: Texts
  goal: Goal
  errors?: readonly FormError[]
}

/** The path of the form of the code. */
export const MAIL_LOGIN_CODE = `${MAIL_LOGIN}/code`

/** Builds the page that asks for the address of a sign-in by mail. */
export function buildMailLoginPage(deps: Deps, { goal, ...view }: FormView & { email?: string }): Page {
  return buildAddressPage(deps, {
    ...view,
    action: MAIL_LOGIN,
    title: 'mail-login.title',
    text: 'mail-login.text',
    fields: renderGoal(goal),
    autocomplete: 'username',
    submit: 'mail-login.send',
    back: { href: buildGoalUrl('/auth/sign-in', goal), text: 'mail-login.back' },
  })
}

/** Builds the page that asks for the code of a mail: the same for every address. */
export function buildMailCodePage(deps: Deps, view: FormView & { login: string }): Page {
  const { browserId, texts, goal, errors = [], login } = view
  const content = html`<div class="panel">
<div class="lead">
<h1>${texts.say('forgot.sent')}</h1>
<p class="quiet">${texts.say('mail-login.sent-text')}</p>
</div>
${renderErrors(texts, errors)}
<form method="post" action="${MAIL_LOGIN_CODE}" novalidate>
${renderFormToken(deps, browserId)}
<input type="hidden" name="login" value="${login}">
${renderGoal(goal)}${renderField(texts, {
  name: 'code',
  label: texts.say('mail-login.code'),
  type: 'text',
  autocomplete: 'one-time-code',
  inputMode: 'numeric',
  error: findError(errors, 'code'),
  isFocused: errors.length === 0,
})}
<button type="submit">${texts.say('sign-in.submit')}</button>
</form>
<p class="small centered"><a href="${buildGoalUrl(MAIL_LOGIN, goal)}">${texts.say('mail-login.again')}</a></p>
</div>`
  const title = buildTitle(texts, texts.say('forgot.sent'), errors)
  return { texts, title, content, ...listFormTargets(goal) }
}

/** Builds the page of the link of a mail. */
export function buildMailLinkPage(deps: Deps, { browserId, texts, goal, token }: FormView & { token: string }): Page {
  const words = { title: 'sign-in.title', text: 'mail-login.link-text', submit: 'sign-in.submit' } as const
  const page = buildLinkPage(deps, { browserId, texts, token, action: MAIL_LOGIN_LINK, ...words })
  return { ...page, ...listFormTargets(goal) }
}
