import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { Visitor } from '../browser/browser-session.ts'
import { buildTitle, type FormError, findError, renderErrors, renderField, renderFormToken } from '../frame/form.ts'
import type { PageParts } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { buildGoalUrl, MAIL_LOGIN, ORGANIZATION_LOGIN, SIGN_UP } from '../frame/page-url.ts'
import { renderText } from '../frame/text.ts'
import { PASSKEY, SHOW_PASSWORD } from '../script/page-script.ts'
import { renderPasskeyForm } from './passkey-form.ts'
import { type Goal, listFormTargets, type ProviderButton, renderGoal, type SignInPageDeps } from './sign-in-goal.ts'

/** Contents of the sign-in page. */
export interface SignInView extends Goal {
  texts: Texts
  browserId: string
  /** The name of the app whose authorization started the sign-in. */
  appName?: string | undefined
  providers: readonly ProviderButton[]
  email?: string
  errors?: readonly FormError[]
  notice?: string | undefined
  /** Whether mails can be sent, and so a link for a new password. */
  canSendMail: boolean
  /** Whether users may sign in by mail. */
  canSignInByMail: boolean
  /** Whether sign-up with e-mail and password is open. */
  canSignUp: boolean
}

/** Contents of the sign-in page for a goal. */
export async function buildSignInView(
  deps: SignInPageDeps,
  db: Database,
  request: { goal: Goal; visitor: Visitor; cookieHeader: string | undefined; now: Date },
): Promise<SignInView> {
  const { goal, visitor, cookieHeader, now } = request
  const { browserId, texts } = visitor
  const providers = deps.listProviders({ redirectUrl: goal.target?.url, next: goal.next, texts })
  const appName = await deps.findApp(db, { next: goal.next, cookieHeader, now })
  return { ...goal, providers, browserId, texts, appName, ...pickWays(deps) }
}

const pickWays = ({ canSendMail, canSignInByMail, canSignUp }: SignInPageDeps) => ({
  canSendMail,
  canSignInByMail,
  canSignUp,
})

/** Builds the sign-in page. */
export function buildSignInPage(
  deps: Pick<PageDeps, 'brand' | 'browserKeys'>,
  view: SignInView,
): Omit<PageParts, 'brand'> & { formTargets?: readonly string[] } {
  const { errors = [], target, providers, notice, texts } = view
  // A deep link gets its tokens from the provider's flow; a form cannot pass them on.
  const hasForm = target?.kind !== 'deep-link'
  const content = html`<div class="panel">
<div class="lead">
<h1>${texts.say('sign-in.title')}</h1>
<p class="quiet">${renderPurpose(deps, view)}</p>
</div>
${renderErrors(texts, errors)}
${errors.length === 0 && notice !== undefined && html`<p class="notice good" role="status">${notice}</p>`}
${providers.length > 0 && renderProviders(providers)}
${providers.length > 0 && hasForm && html`<div class="or">${texts.say('sign-in.or')}</div>`}
${hasForm && renderForm(deps, view)}
</div>`
  return {
    texts,
    title: buildTitle(texts, texts.say('sign-in.title'), errors),
    content,
    ...(hasForm && { scripts: [SHOW_PASSWORD, PASSKEY] }),
    ...listFormTargets(view),
  }
}

/** The destination of the sign-in: the app, the host of the return address, or this service. */
function renderPurpose({ brand }: Pick<PageDeps, 'brand'>, { target, appName, texts }: SignInView): Html {
  if (appName !== undefined) return renderText(texts, 'sign-in.purpose', { goal: html`<strong>${appName}</strong>` })
  return renderText(texts, 'sign-in.purpose', { goal: target?.kind === 'web' ? new URL(target.url).host : brand.name })
}

/** The buttons of providers, all of one size. */
export function renderProviders(providers: readonly ProviderButton[]): Html {
  const items = providers.map(
    ({ text, href, icon, look }) =>
      html`<a class="button plain${look && html` ${look}`}" href="${href}">${icon}${text}</a>\n`,
  )
  return html`<div class="providers">${items}</div>`
}

function renderForm(deps: Pick<PageDeps, 'browserKeys'>, view: SignInView): Html {
  const { browserId, email = '', errors = [], texts } = view
  const errorOf = (name: string) => findError(errors, name)
  const hidden = html`${renderFormToken(deps, browserId)}
${renderGoal(view)}`
  return html`<form method="post" action="/auth/sign-in" novalidate>
${hidden}
${renderField(texts, {
  name: 'email',
  label: texts.say('form.email'),
  type: 'email',
  // With `webauthn` the browser offers passkeys here too (WebAuthn section 5.1.4, conditional mediation).
  autocomplete: 'username webauthn',
  value: email,
  error: errorOf('email'),
  isFocused: errors.length === 0 && email === '',
})}
${renderField(texts, {
  name: 'password',
  label: texts.say('form.password'),
  type: 'password',
  autocomplete: 'current-password',
  error: errorOf('password'),
})}
<button type="submit">${texts.say('sign-in.submit')}</button>
</form>
${renderPasskeyForm(texts, { action: '/auth/sign-in/passkey', kind: 'sign-in', hidden, label: texts.say('passkey.sign-in') })}
${view.canSignInByMail && html`<a class="button plain" href="${buildGoalUrl(MAIL_LOGIN, { target: view.target, next: view.next })}">${texts.say('mail-login.title')}</a>`}
<p class="small centered"><a href="${buildGoalUrl(ORGANIZATION_LOGIN, { target: view.target, next: view.next })}">${texts.say('organization.title')}</a></p>
${view.canSendMail && html`<p class="small centered"><a href="/auth/forgot">${texts.say('sign-in.forgot')}</a></p>`}
${view.canSignUp && renderSignUp(view)}`
}

function renderSignUp({ target, next, texts }: SignInView): Html {
  const link = html`<a href="${buildGoalUrl(SIGN_UP, { target, next })}">${texts.say('sign-in.sign-up-link')}</a>`
  return html`<p class="small centered">${renderText(texts, 'sign-in.sign-up', { link })}</p>`
}
