import type { Visitor } from './browser-session.ts'
import { type FormError, renderErrors, renderField, renderFormToken } from './form.ts'
import { type Html, html } from './html.ts'
import type { PageParts } from './page.ts'
import type { PageDeps } from './page-route.ts'
import { PASSKEY_SCRIPT, renderPasskeyForm } from './passkey-form.ts'
import { SHOW_PASSWORD } from './password-script.ts'
import { type Goal, listFormTargets, renderGoal, type SignInPageDeps } from './sign-in-goal.ts'

/** A button that signs in with another provider. */
export interface ProviderButton {
  /** The name of the provider as people know it. */
  label: string
  /** The start of its sign-in, on this service. */
  href: string
  icon?: Html
}

/** What the sign-in page shows. */
export interface SignInView extends Goal {
  browserId: string
  providers: readonly ProviderButton[]
  email?: string
  errors?: readonly FormError[]
  notice?: string | undefined
  /** Whether mails can be sent, and so a link for a new password. */
  canSendMail: boolean
}

/** What the sign-in page shows for a goal. */
export function buildSignInView(deps: SignInPageDeps, goal: Goal, visitor: Visitor): SignInView {
  const providers = deps.listProviders({ redirectUrl: goal.target?.url, next: goal.next })
  return { ...goal, providers, browserId: visitor.browserId, canSendMail: deps.canSendMail }
}

/** Builds the sign-in page. */
export function buildSignInPage(
  deps: Pick<PageDeps, 'brand' | 'browserKeys'>,
  view: SignInView,
): Omit<PageParts, 'brand'> & { formTargets?: readonly string[] } {
  const { errors = [], target, providers, notice } = view
  // A deep link gets its tokens from the provider's flow; the form has no way to hand them over.
  const hasForm = target?.kind !== 'deep-link'
  const content = html`<div class="panel">
<div class="lead">
<h1>Sign in</h1>
<p class="quiet">to continue to ${target?.kind === 'web' ? new URL(target.url).host : deps.brand.name}</p>
</div>
${renderErrors(errors)}
${errors.length === 0 && notice !== undefined && html`<p class="notice good" role="status">${notice}</p>`}
${providers.length > 0 && renderProviders(providers)}
${providers.length > 0 && hasForm && html`<div class="or">or</div>`}
${hasForm && renderForm(deps, view)}
</div>`
  return {
    title: errors.length > 0 ? 'Error: Sign in' : 'Sign in',
    content,
    ...(hasForm && { scripts: [SHOW_PASSWORD, PASSKEY_SCRIPT] }),
    ...listFormTargets(view),
  }
}

function renderProviders(providers: readonly ProviderButton[]): Html {
  const items = providers.map(
    ({ label, href, icon }) => html`<a class="button plain" href="${href}">${icon}Continue with ${label}</a>\n`,
  )
  return html`<div class="providers">${items}</div>`
}

function renderForm(deps: Pick<PageDeps, 'browserKeys'>, view: SignInView): Html {
  const { browserId, email = '', errors = [] } = view
  const errorOf = (name: string) => errors.find(({ field }) => field === name)?.text
  const hidden = html`${renderFormToken(deps, browserId)}
${renderGoal(view)}`
  return html`<form method="post" action="/auth/sign-in" novalidate>
${hidden}
${renderField({
  name: 'email',
  label: 'E-mail address',
  type: 'email',
  // With `webauthn` the browser offers passkeys here too (WebAuthn section 5.1.4, conditional mediation).
  autocomplete: 'username webauthn',
  value: email,
  error: errorOf('email'),
  isFocused: errors.length === 0 && email === '',
})}
${renderField({
  name: 'password',
  label: 'Password',
  type: 'password',
  autocomplete: 'current-password',
  error: errorOf('password'),
})}
<button type="submit">Sign in</button>
</form>
${renderPasskeyForm({ action: '/auth/sign-in/passkey', kind: 'sign-in', hidden, label: 'Sign in with a passkey' })}
${view.canSendMail && html`<p class="small centered"><a href="/auth/forgot">Forgot your password?</a></p>`}`
}
