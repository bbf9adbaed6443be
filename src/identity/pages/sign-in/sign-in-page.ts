import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { Visitor } from '../browser/browser-session.ts'
import { type FormError, findError, renderField, renderFormToken } from '../frame/form.ts'
import { buildCard, type FormView } from '../frame/layout.ts'
import type { PageBody } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { buildGoalUrl, MAIL_LOGIN, ORGANIZATION_LOGIN, SIGN_UP } from '../frame/page-url.ts'
import { renderText } from '../frame/text.ts'
import { PASSKEY, SHOW_PASSWORD } from '../script/page-script.ts'
import { renderPasskeyForm } from './passkey-form.ts'
import { type Goal, listFormTargets, type ProviderButton, renderGoal, type SignInPageDeps } from './sign-in-goal.ts'

/** Ways in that the service offers besides the password. Without mails there is no link for a new one. */
type Ways = Pick<SignInPageDeps, 'canSendMail' | 'canSignInByMail' | 'canSignUp'>

/** Contents of the sign-in page. */
interface SignInView extends Goal, FormView, Ways {
  /** The name of the app whose authorization started the sign-in. */
  appName: string | undefined
  providers: readonly ProviderButton[]
  email: string
}

/** Parts of the page beside its form. */
interface Shown {
  goal: Goal
  visitor: Visitor
  cookieHeader: string | undefined
  now: Date
  email?: string
  errors?: readonly FormError[]
  notice?: string | undefined
}

/** Builds the sign-in page for a goal. */
export async function buildSignInPage(
  deps: SignInPageDeps,
  db: Database,
  { goal, visitor, cookieHeader, now, email = '', errors = [], notice }: Shown,
): Promise<PageBody> {
  const { browserId, texts } = visitor
  const { canSendMail, canSignInByMail, canSignUp } = deps
  const providers = deps.listProviders({ redirectUrl: goal.target?.url, next: goal.next, texts })
  const appName = await deps.findApp(db, { next: goal.next, cookieHeader, now })
  const ways = { canSendMail, canSignInByMail, canSignUp }
  const view = { ...goal, ...ways, providers, browserId, texts, appName, email, errors }
  // A deep link gets its tokens from the provider's flow; a form cannot pass them on.
  const hasForm = goal.target?.kind !== 'deep-link'
  const content = html`${errors.length === 0 && notice !== undefined && html`<p class="notice good" role="status">${notice}</p>`}
${providers.length > 0 && renderProviders(providers)}
${providers.length > 0 && hasForm && html`<div class="or">${texts.say('sign-in.or')}</div>`}
${hasForm && renderForm(deps, view)}`
  return buildCard(view, {
    title: texts.say('sign-in.title'),
    text: renderPurpose(deps, view),
    content,
    ...(hasForm && { scripts: [SHOW_PASSWORD, PASSKEY] }),
    ...listFormTargets(goal),
  })
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
  const { browserId, email, errors = [], texts } = view
  const goal = { target: view.target, next: view.next }
  const hidden = html`${renderFormToken(deps, browserId)}
${renderGoal(goal)}`
  return html`<form method="post" action="/auth/sign-in" novalidate>
${hidden}
${renderField(texts, {
  name: 'email',
  label: texts.say('form.email'),
  type: 'email',
  // With `webauthn` the browser offers passkeys here too (WebAuthn section 5.1.4, conditional mediation).
  autocomplete: 'username webauthn',
  value: email,
  error: findError(errors, 'email'),
  isFocused: errors.length === 0 && email === '',
})}
${renderField(texts, {
  name: 'password',
  label: texts.say('form.password'),
  type: 'password',
  autocomplete: 'current-password',
  error: findError(errors, 'password'),
})}
<button type="submit">${texts.say('sign-in.submit')}</button>
</form>
${renderPasskeyForm(texts, { action: '/auth/sign-in/passkey', kind: 'sign-in', hidden, label: texts.say('passkey.sign-in') })}
${view.canSignInByMail && html`<a class="button plain" href="${buildGoalUrl(MAIL_LOGIN, goal)}">${texts.say('mail-login.title')}</a>`}
<p class="small centered"><a href="${buildGoalUrl(ORGANIZATION_LOGIN, goal)}">${texts.say('organization.title')}</a></p>
${view.canSendMail && html`<p class="small centered"><a href="/auth/forgot">${texts.say('sign-in.forgot')}</a></p>`}
${view.canSignUp && renderSignUp(texts, goal)}`
}

function renderSignUp(texts: Texts, goal: Goal): Html {
  const link = html`<a href="${buildGoalUrl(SIGN_UP, goal)}">${texts.say('sign-in.sign-up-link')}</a>`
  return html`<p class="small centered">${renderText(texts, 'sign-in.sign-up', { link })}</p>`
}
