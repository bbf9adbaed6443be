import { type Html, html } from '../../../base/html.ts'
import type { TextKey, Texts } from '../../../base/language/texts.ts'
import type { InvitationView } from '../../account/invitation/invitation-acceptance.ts'
import { type FormError, findError, renderField, renderFormToken } from '../frame/form.ts'
import { buildCard, type FormView } from '../frame/layout.ts'
import type { PageBody } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { buildSignInUrl } from '../frame/page-url.ts'
import { renderText } from '../frame/text.ts'
import { renderNewPassword } from '../password/password-page.ts'
import { SHOW_PASSWORD } from '../script/page-script.ts'
import type { SignInPageDeps } from '../sign-in/sign-in-goal.ts'

type Deps = Pick<PageDeps, 'browserKeys'> & Pick<SignInPageDeps, 'listProviders'>

/** Contents of the page of an invitation. */
export interface InvitationPageView extends FormView {
  invitation: InvitationView
  token: string
  name?: string
}

/** The path of the page of an invitation. */
export const INVITATION = '/auth/invitation'

/** Builds the page of an invitation: what it is for, and the one step that accepts it. */
export function buildInvitationPage(deps: Deps, view: InvitationPageView): PageBody {
  const { invitation, texts } = view
  const title = texts.say('invitation.title', { account: invitation.accountName })
  const text = texts.say('invitation.email', { email: invitation.email })
  return buildCard(view, { title, text, content: renderStep(deps, view), scripts: [SHOW_PASSWORD] })
}

function renderStep(deps: Deps, view: InvitationPageView): Html {
  const { invitation, token, texts } = view
  switch (invitation.next) {
    case 'accept':
      return renderForm(deps, view, html`<button type="submit">${texts.say('invitation.accept')}</button>`)
    case 'register':
      return html`${renderForm(deps, view, renderRegistration(texts, { ...view, email: invitation.email, submit: 'invitation.accept' }))}
${deps.listProviders({ redirectUrl: undefined, next: undefined, texts }).length > 0 && renderOtherWay(texts, token)}`
    case 'sign_in':
      return html`<a class="button" href="${buildReturnUrl(token)}">${texts.say('invitation.sign-in')}</a>`
    case 'other_person':
      return html`<p>${texts.say('invitation.other-user')}</p>
<a class="button" href="/auth/sign-out">${texts.say('sign-out.title')}</a>`
  }
}

function buildReturnUrl(token: string): string {
  return buildSignInUrl({ next: `${INVITATION}?${new URLSearchParams({ token })}` })
}

/** For a new user who signs in with a provider: its profile has the address that the provider verified. */
function renderOtherWay(texts: Texts, token: string): Html {
  const link = html`<a href="${buildReturnUrl(token)}">${texts.say('invitation.other-way-link')}</a>`
  return html`<p class="quiet small">${renderText(texts, 'invitation.other-way', { link })}</p>`
}

function renderForm(deps: Deps, { token, browserId }: InvitationPageView, fields: Html): Html {
  return html`<form method="post" action="${INVITATION}" novalidate>
${renderFormToken(deps, browserId)}
<input type="hidden" name="token" value="${token}">
${fields}
</form>`
}

/** The fields of a new user: its name and its password. */
export function renderRegistration(
  texts: Texts,
  view: { email: string; name?: string; errors?: readonly FormError[]; submit: TextKey },
): Html {
  const { email, name = '', errors = [], submit } = view
  return html`<input type="text" name="username" value="${email}" autocomplete="username" hidden>
${renderField(texts, {
  name: 'name',
  label: texts.say('form.name'),
  type: 'text',
  autocomplete: 'name',
  value: name,
  error: findError(errors, 'name'),
  isFocused: errors.length === 0,
})}
${renderNewPassword(texts, errors, false)}
<button type="submit">${texts.say(submit)}</button>`
}
