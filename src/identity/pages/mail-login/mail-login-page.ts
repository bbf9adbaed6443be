import { html } from '../../../base/html.ts'
import { MAIL_LOGIN_LINK } from '../../sign-in/by-mail/mail-login.ts'
import { findError, renderField, renderFormToken } from '../frame/form.ts'
import { buildCard, type FormView } from '../frame/layout.ts'
import { buildAddressPage, buildLinkPage } from '../frame/mail-form.ts'
import type { PageBody } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { buildGoalUrl, MAIL_LOGIN } from '../frame/page-url.ts'
import { type Goal, listFormTargets, renderGoal } from '../sign-in/sign-in-goal.ts'

type Deps = Pick<PageDeps, 'browserKeys'>
type View = FormView & { goal: Goal }

/** The path of the form of the code. */
export const MAIL_LOGIN_CODE = `${MAIL_LOGIN}/code`

/** Builds the page that asks for the address of a sign-in by mail. */
export function buildMailLoginPage(deps: Deps, { goal, ...view }: View & { email?: string }): PageBody {
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
export function buildMailCodePage(deps: Deps, view: View & { login: string }): PageBody {
  const { browserId, texts, goal, errors = [], login } = view
  const content = html`<form method="post" action="${MAIL_LOGIN_CODE}" novalidate>
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
<p class="small centered"><a href="${buildGoalUrl(MAIL_LOGIN, goal)}">${texts.say('mail-login.again')}</a></p>`
  const lead = { title: texts.say('forgot.sent'), text: texts.say('mail-login.sent-text') }
  return buildCard(view, { ...lead, content, ...listFormTargets(goal) })
}

/** Builds the page of the link of a mail. */
export function buildMailLinkPage(deps: Deps, { goal, ...view }: View & { token: string }): PageBody {
  const words = { title: 'sign-in.title', text: 'mail-login.link-text', submit: 'sign-in.submit' } as const
  return { ...buildLinkPage(deps, { ...view, action: MAIL_LOGIN_LINK, ...words }), ...listFormTargets(goal) }
}
