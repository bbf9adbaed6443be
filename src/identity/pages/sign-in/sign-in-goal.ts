import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { RedirectOutcome } from '../../../http/route/route.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { ProofGoal } from '../../address-proof/address-proof.ts'
import { signOut } from '../../session/session.ts'
import { checkRedirectUrl, type RedirectRules, type RedirectTarget } from '../../sign-in/outcome/redirect-url.ts'
import type { SignIn } from '../../sign-in/outcome/sign-in.ts'
import type { FactorDeps } from '../../sign-in/second-factor/second-factor.ts'
import type { OpenTarget } from '../../sso/handshake.ts'
import { readNextPath } from '../../sso/next-path.ts'
import { signInBrowser, type Visitor } from '../browser/browser-session.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { buildContinueUrl, HOME, redirectTo } from '../frame/page-url.ts'

/** A button that signs in with another provider. */
export interface ProviderButton {
  /** Label of its action, with the display name of the provider. */
  text: string
  /** The start of its sign-in, on this service. */
  href: string
  icon?: Html
  /** A class of the style sheet, for a button in the colours that its provider asks for. */
  look?: string | undefined
}

/** Dependencies of the pages of a sign-in. */
export interface SignInPageDeps extends PageDeps, FactorDeps {
  canSendMail: boolean
  /** `SIGN_IN_BY_MAIL`, where mails can be sent. */
  canSignInByMail: boolean
  canSignUp: boolean
  redirectRules: () => RedirectRules
  /** Whether a URL is a target on another domain, which a browser reaches by handshake. */
  needsHandshake: (url: string) => boolean
  /** The URL with a handshake token for a target on another domain; undefined for any other URL. */
  openTarget: OpenTarget
  findApp: FindApp
  listProviders: (wish: ProviderWish) => readonly ProviderButton[]
}

/** The offered providers, with the purpose of the sign-in. */
export interface ProviderWish {
  /** Their return address; undefined for a page of the service. */
  redirectUrl: string | undefined
  /** The page of the service, without a `redirectUrl`. */
  next: string | undefined
  texts: Texts
  /** Only those of a managed engine, by which the user can decide there: another one would lead back to the question. */
  isForDecision?: boolean
}

/** Finds the name of the app at the end of a sign-in through a page of the service. */
export type FindApp = (
  db: Database,
  input: { next: string | undefined; cookieHeader: string | undefined; now: Date },
) => Promise<string | undefined>

/** Destination of a sign-in. */
export interface Goal {
  /** The app that it returns to; undefined for the service itself. */
  target: RedirectTarget | undefined
  /** A path of the service. */
  next: string | undefined
}

/** Reads where a sign-in continues. Throws `redirect_url_not_allowed`. */
export function readGoal(
  deps: Pick<SignInPageDeps, 'redirectRules'>,
  { redirect_url, next }: { redirect_url?: string; next?: string },
): Goal {
  const target = redirect_url ? checkRedirectUrl(redirect_url, deps.redirectRules()) : undefined
  return { target, next: readNextPath(next) ?? undefined }
}

/** The goal that a proof of an address keeps; the account page where it is not allowed any more. */
export function readKeptGoal(deps: Pick<SignInPageDeps, 'redirectRules'>, { redirectUrl, next }: ProofGoal): Goal {
  try {
    return readGoal(deps, { ...(redirectUrl && { redirect_url: redirectUrl }), ...(next && { next }) })
  } catch {
    return { target: undefined, next: undefined }
  }
}

/** Throws for a deep link: its tokens come from the flow of a provider. */
export function checkWeb({ target }: Goal): void {
  if (target?.kind !== 'deep-link') return
  throw new Problem('redirect_url_not_allowed', 'The form does not return to a custom scheme.', {
    reason: 'redirect_url: deep link with a password',
  })
}

/** Next address for the browser of a signed-in user: for an app on another domain a handshake. */
export function locate({ needsHandshake }: Pick<SignInPageDeps, 'needsHandshake'>, { target, next }: Goal): string {
  if (!target) return next ?? HOME
  return needsHandshake(target.url) ? buildContinueUrl(target.url) : target.url
}

/** The hidden fields that carry the goal through a form. */
export function renderGoal({ target, next }: Goal): Html {
  return html`${target && html`<input type="hidden" name="redirect_url" value="${target.url}">\n`}${
    next !== undefined && html`<input type="hidden" name="next" value="${next}">\n`
  }`
}

/** The origins that a form of this goal may lead to. */
export function listFormTargets({ target }: Goal): { formTargets?: string[] } {
  return target ? { formTargets: [target.formTarget] } : {}
}

/** The answer to a sign-in in a browser. Revokes its previous session, so that no orphan remains. */
export async function continueSignedIn(
  deps: SignInPageDeps,
  db: Database,
  { visitor, goal, signedIn, now }: { visitor: Visitor; goal: Goal; signedIn: SignIn; now: Date },
): Promise<RedirectOutcome> {
  if (visitor.user) await signOut(db, { caller: visitor.user, all: false, family: false, refreshToken: undefined, now })
  const { user, issued } = signedIn
  return {
    ...redirectTo(locate(deps, goal)),
    cookies: signInBrowser(deps, issued, { email: user.email, now }),
    changed: [{ id: issued.sessionId, account: null }],
    actor: { userId: user.id, sessionId: issued.sessionId, account: issued.account?.id ?? null },
  }
}
