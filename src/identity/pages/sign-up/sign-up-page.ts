import { html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { SIGN_UP_CONFIRM } from '../../sign-up/sign-up.ts'
import { renderRegistration } from '../account/invitation-page.ts'
import { renderFormToken } from '../frame/form.ts'
import { buildCard, type FormView } from '../frame/layout.ts'
import { buildAddressPage, buildSentPage } from '../frame/mail-form.ts'
import type { PageBody } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { buildGoalUrl, SIGN_UP } from '../frame/page-url.ts'
import { SHOW_PASSWORD } from '../script/page-script.ts'
import { type Goal, listFormTargets, renderGoal } from '../sign-in/sign-in-goal.ts'

type Deps = Pick<PageDeps, 'browserKeys'>
type View = FormView & { goal: Goal; email?: string }

/** Builds the page that asks for the address of a sign-up. */
export function buildSignUpPage(deps: Deps, { goal, ...view }: View): PageBody {
  return buildAddressPage(deps, {
    ...view,
    action: SIGN_UP,
    title: 'sign-up.title',
    text: 'sign-up.text',
    fields: renderGoal(goal),
    autocomplete: 'email',
    submit: 'sign-up.send',
    back: { href: buildGoalUrl('/auth/sign-in', goal), text: 'sign-up.known' },
  })
}

/** The page after a sign-up was asked for: the same for every address. */
export function buildSignUpSentPage({ texts }: { texts: Texts }): PageBody {
  return buildSentPage({ texts, text: 'sign-up.sent-text', hint: 'sign-up.sent-hint' })
}

/** Builds the page of the link of a sign-up. It has a form, because mail filters open links. */
export function buildConfirmPage(deps: Deps, view: View & { token: string; email: string; name?: string }): PageBody {
  const { browserId, texts, goal, token, email } = view
  const content = html`<form method="post" action="${SIGN_UP_CONFIRM}" novalidate>
${renderFormToken(deps, browserId)}
<input type="hidden" name="token" value="${token}">
${renderRegistration(texts, { ...view, submit: 'sign-up.submit' })}
</form>`
  const lead = { title: texts.say('sign-up.title'), text: texts.say('sign-up.email', { email }) }
  return buildCard(view, { ...lead, content, scripts: [SHOW_PASSWORD], ...listFormTargets(goal) })
}
