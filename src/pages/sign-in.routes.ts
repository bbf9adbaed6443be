import { Problem } from '../http/problem.ts'
import type { Routes } from '../http/route.ts'
import type { SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { type SessionDeps, signOut } from '../session/session.ts'
import { type CheckedLogin, checkLocalLogin, type LocalLogin, logInLocally } from '../sign-in/local-login.ts'
import { readNextPath } from '../sign-in/next-path.ts'
import { checkRedirectUrl, type RedirectRules, type RedirectTarget } from '../sign-in/redirect-url.ts'
import type { OpenTarget } from '../sso/handshake.ts'
import { signInBrowser, type Visitor } from './browser-session.ts'
import type { FormError } from './form.ts'
import { findNotice } from './notice.ts'
import { buildPage } from './page.ts'
import { definePage, type PageDeps, refusePage } from './page-route.ts'
import { buildRefreshUrl, buildSignInUrl, HOME } from './page-url.ts'
import { buildSignInPage, type ProviderButton, type SignInView } from './sign-in-page.ts'

/** Dependencies of the sign-in page. */
export interface SignInPageDeps extends PageDeps, SessionDeps {
  /** Whether the service sends mails. */
  canSendMail: boolean
  redirectRules: () => RedirectRules
  /** The URL with a handshake token for a target on another domain; undefined for any other URL. */
  openTarget: OpenTarget
  /** The providers to offer. They return to `redirectUrl`, or to the service when it is undefined. */
  listProviders: (input: { redirectUrl: string | undefined; next: string | undefined }) => readonly ProviderButton[]
}

/** The messages that a link may ask for by name. */
const NOTICES: Readonly<Record<string, string>> = {
  'signed-out': 'You are signed out.',
  'session-ended': 'Your session has ended. Sign in again.',
  joined: 'You have joined. Sign in with your new password.',
  'password-set': 'Your new password is set. Sign in with it.',
}

/** Where a sign-in continues. */
interface Goal {
  target: RedirectTarget | undefined
  next: string | undefined
}

function readGoal(deps: SignInPageDeps, { redirect_url, next }: { redirect_url?: string; next?: string }): Goal {
  const target = redirect_url ? checkRedirectUrl(redirect_url, deps.redirectRules()) : undefined
  return { target, next: readNextPath(next) }
}

function buildView(deps: SignInPageDeps, goal: Goal, visitor: Visitor): SignInView {
  const providers = deps.listProviders({ redirectUrl: goal.target?.url, next: goal.next })
  return { ...goal, providers, browserId: visitor.browserId, canSendMail: deps.canSendMail }
}

/** Throws for a deep link: its tokens come from the flow of a provider. */
function checkWeb({ target }: Goal): void {
  if (target?.kind !== 'deep-link') return
  throw new Problem('redirect_url_not_allowed', 'The form does not return to a custom scheme.', {
    reason: 'redirect_url: deep link with a password',
  })
}

/** Where the browser goes on: to an app on another domain with a handshake of this session. */
async function locate(
  { openTarget }: SignInPageDeps,
  { target, next }: Goal,
  session: { db: Database; userId: UserId; sessionId: SessionId; isNew: boolean; now: Date },
): Promise<string> {
  if (!target) return next ?? HOME
  const { db, ...rest } = session
  return (await openTarget(db, { ...rest, targetUrl: target.url })) ?? target.url
}

/** A sign-in by form: the two fields, where to continue, and the check of the password. */
type PreparedSignIn = { goal: Goal } & ({ errors: FormError[] } | { login: LocalLogin; checked: CheckedLogin })

function findEmptyFields({ email, password }: { email: string; password: string }): FormError[] {
  return [
    ...(email.trim() === '' ? [{ field: 'email', text: 'Enter your e-mail address' }] : []),
    ...(password === '' ? [{ field: 'password', text: 'Enter your password' }] : []),
  ]
}

/** Ends the session that the browser had, so that none is left behind that nobody sees. */
async function endEarlierSession(db: Database, visitor: Visitor, now: Date): Promise<void> {
  if (visitor.person)
    await signOut(db, { caller: visitor.person, all: false, family: false, refreshToken: undefined, now })
}

/** The sign-in page (docs/contract/pages.md#sign-in-page). */
export const signInPageRoutes: Routes<SignInPageDeps> = [
  definePage(
    {
      method: 'GET',
      path: '/auth/sign-in',
      resource: 'sign-in-page',
      action: 'show',
      summary: 'The form to sign in',
      query: ['redirect_url', 'next', 'notice'],
    },
    {
      handle: async (deps: SignInPageDeps, { db, visitor, query, now }) => {
        const goal = readGoal(deps, query)
        if (visitor.isRefreshable) return { kind: 'redirect', location: buildRefreshUrl(buildSignInUrl(query)) }
        if (visitor.person && goal.target?.kind !== 'deep-link') {
          const { userId, sessionId } = visitor.person
          const session = { db, userId, sessionId, isNew: false, now }
          return { kind: 'redirect', location: await locate(deps, goal, session) }
        }
        const notice = findNotice(NOTICES, query.notice)
        const view = buildView(deps, goal, visitor)
        return buildPage({ brand: deps.brand, ...buildSignInPage(deps, { ...view, notice }) })
      },
    },
  ),
  definePage(
    {
      method: 'POST',
      path: '/auth/sign-in',
      resource: 'login',
      action: 'local',
      event: 'shared',
      strictRateLimit: true,
      summary: 'Sign in with the form',
      fields: { email: 320, password: 1024, redirect_url: 4096, next: 4096 },
    },
    {
      prepare: async (deps: SignInPageDeps, { db, form, address, userAgent, now }): Promise<PreparedSignIn> => {
        const goal = readGoal(deps, form)
        checkWeb(goal)
        const errors = findEmptyFields(form)
        if (errors.length > 0) return { goal, errors }
        const login = { email: form.email.trim(), password: form.password, address, userAgent, now }
        return { goal, login, checked: await checkLocalLogin(deps, db, login) }
      },
      handle: async (deps, { db, form, visitor, now, prepared }) => {
        const { goal } = prepared
        const view = { ...buildView(deps, goal, visitor), email: form.email.trim() }
        if ('errors' in prepared) {
          const problem = new Problem('validation_failed', 'A field of the form is empty.', { reason: 'empty_field' })
          return refusePage(deps, { problem, page: buildSignInPage(deps, { ...view, errors: prepared.errors }) })
        }
        const result = await logInLocally(deps, db, prepared)
        if ('problem' in result) {
          const { problem, userId } = result
          const actor = { userId, sessionId: null, account: null }
          const page = buildSignInPage(deps, { ...view, errors: [{ text: problem.detail }] })
          return refusePage(deps, { problem, page, target: userId, actor })
        }
        await endEarlierSession(db, visitor, now)
        const { user, issued } = result
        const session = { db, userId: user.id, sessionId: issued.sessionId, isNew: true, now }
        return {
          kind: 'redirect',
          status: 303,
          location: await locate(deps, goal, session),
          cookies: signInBrowser(deps, issued),
          changed: [{ id: issued.sessionId, account: null }],
          actor: { userId: user.id, sessionId: issued.sessionId, account: issued.account?.id ?? null },
        }
      },
    },
  ),
]
