import { html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { SIGN_UP_CONFIRM } from '../../sign-up/sign-up.ts'
import { renderRegistration } from '../account/invitation-page.ts'
import { buildTitle, type FormError, renderErrors, renderFormToken } from '../frame/form.ts'
import { buildAddressPage, buildSentPage } from '../frame/mail-form.ts'
import type { PageParts } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { buildGoalUrl, SIGN_UP } from '../frame/page-url.ts'
import { SHOW_PASSWORD } from '../script/page-script.ts'
import { type Goal, listFormTargets, renderGoal } from '../sign-in/sign-in-goal.ts'

type Deps = Pick<PageDeps, 'browserKeys'>
type Page = Omit<PageParts, 'brand'> & { formTargets?: readonly string[] }

interface FormView {
  browserId: string
  texts: Texts
  goal: Goal
  errors?: readonly FormError[]
  email?: string
}

/** Builds the page that asks for the address of a sign-up. */
export function buildSignUpPage(deps: Deps, { goal, ...view }: FormView): Page {
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
export function buildSignUpSentPage({ texts }: { texts: Texts }): Page {
  return buildSentPage({ texts, text: 'sign-up.sent-text', hint: 'sign-up.sent-hint' })
}

/** Builds the page of the link of a sign-up. It has a form, because mail filters open links. */
export function buildConfirmPage(deps: Deps, view: FormView & { token: string; email: string; name?: string }): Page {
  const { browserId, texts, goal, token, email, errors = [] } = view
  const content = html`<div class="panel">
<div class="lead">
<h1>${texts.say('sign-up.title')}</h1>
<p class="quiet">${texts.say('sign-up.email', { email })}</p>
</div>
${renderErrors(texts, errors)}
<form method="post" action="${SIGN_UP_CONFIRM}" novalidate>
${renderFormToken(deps, browserId)}
<input type="hidden" name="token" value="${token}">
${renderRegistration(texts, { ...view, submit: 'sign-up.submit' })}
</form>
</div>`
  return {
    texts,
    title: buildTitle(texts, texts.say('sign-up.title'), errors),
    content,
    scripts: [SHOW_PASSWORD],
    ...listFormTargets(goal),
  }
}
