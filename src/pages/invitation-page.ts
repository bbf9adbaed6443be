import type { InvitationView } from '../account/invitation-acceptance.ts'
import { type FormError, renderErrors, renderField, renderFormToken } from './form.ts'
import { type Html, html } from './html.ts'
import type { PageParts } from './page.ts'
import type { PageDeps } from './page-route.ts'
import { buildSignInUrl } from './page-url.ts'
import { renderNewPassword } from './password-page.ts'
import { SHOW_PASSWORD } from './password-script.ts'
import type { SignInPageDeps } from './sign-in-goal.ts'

type Deps = Pick<PageDeps, 'browserKeys'> & Pick<SignInPageDeps, 'listProviders'>

/** What the page of an invitation shows. */
export interface InvitationPageView {
  invitation: InvitationView
  token: string
  browserId: string
  name?: string
  errors?: readonly FormError[]
}

/** The path of the page of an invitation. */
export const INVITATION = '/auth/invitation'

/** Builds the page of an invitation: what it is for, and the one step that accepts it. */
export function buildInvitationPage(deps: Deps, view: InvitationPageView): Omit<PageParts, 'brand'> {
  const { invitation, errors = [] } = view
  const title = `Join ${invitation.accountName}`
  const content = html`<div class="panel">
<div class="lead">
<h1>${title}</h1>
<p class="quiet">You are invited as ${invitation.email}.</p>
</div>
${renderErrors(errors)}
${renderStep(deps, view)}
</div>`
  return { title: errors.length > 0 ? `Error: ${title}` : title, content, scripts: [SHOW_PASSWORD] }
}

function renderStep(deps: Deps, view: InvitationPageView): Html {
  const { invitation, token } = view
  switch (invitation.next) {
    case 'accept':
      return renderForm(deps, view, html`<button type="submit">Join</button>`)
    case 'register':
      return html`${renderForm(deps, view, renderRegistration(view))}
${deps.listProviders({ redirectUrl: undefined, next: undefined }).length > 0 && renderOtherWay(token)}`
    case 'sign_in':
      return html`<a class="button" href="${buildReturnUrl(token)}">Sign in to join</a>`
    case 'other_person':
      return html`<p>You are signed in as somebody else. Sign out, then open the link of the mail again.</p>
<a class="button" href="/auth/sign-out">Sign out</a>`
  }
}

/** The sign-in page, which leads back to the invitation. */
function buildReturnUrl(token: string): string {
  return buildSignInUrl({ next: `${INVITATION}?${new URLSearchParams({ token })}` })
}

/** For a new person who signs in with a provider: its profile has the address that the provider verified. */
function renderOtherWay(token: string): Html {
  return html`<p class="quiet small">No new password? <a href="${buildReturnUrl(token)}">Sign in with a service that you use</a>, then join.</p>`
}

function renderForm(deps: Deps, { token, browserId }: InvitationPageView, fields: Html): Html {
  return html`<form method="post" action="${INVITATION}" novalidate>
${renderFormToken(deps, browserId)}
<input type="hidden" name="token" value="${token}">
${fields}
</form>`
}

function renderRegistration({ invitation, name = '', errors = [] }: InvitationPageView): Html {
  return html`<input type="text" name="username" value="${invitation.email}" autocomplete="username" hidden>
${renderField({
  name: 'name',
  label: 'Your name',
  type: 'text',
  autocomplete: 'name',
  value: name,
  error: errors.find(({ field }) => field === 'name')?.text,
  isFocused: errors.length === 0,
})}
${renderNewPassword(errors, false)}
<button type="submit">Join</button>`
}
