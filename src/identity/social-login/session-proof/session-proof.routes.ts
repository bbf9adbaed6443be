import type { Routes } from '../../../http/route/route.ts'
import type { SignedInUser } from '../../pages/browser/browser-session.ts'
import { defineUserPage } from '../../pages/frame/user-page.ts'
import { checkWeb, locate, readGoal, type SignInPageDeps } from '../../pages/sign-in/sign-in-goal.ts'
import { ENTER_PATH } from '../../session/by-connection.ts'
import { beginFlow, type FlowDeps, keepFlow } from '../social-login.ts'

/** Dependencies of the page that proves a session. */
export type SessionProofDeps = SignInPageDeps & FlowDeps

/** The connection that a session needs; undefined where it reaches every account, or another connection is named. */
function findNeeded({ caller }: SignedInUser, named: string | undefined) {
  const { narrowing } = caller
  return narrowing && (named === undefined || named === narrowing.connection) ? narrowing.connection : undefined
}

/** The proof of a session by the connection of an account (docs/contract/connections.md#members-of-several-accounts). */
export const sessionProofRoutes: Routes<SessionProofDeps> = [
  defineUserPage(
    {
      path: ENTER_PATH,
      resource: 'session',
      action: 'prove-begin',
      writes: true,
      strictRateLimit: true,
      summary: 'Begin to prove the session by the provider of an organization',
      query: ['connection', 'redirect_url', 'next'],
    },
    {
      prepare: async (deps: SessionProofDeps, { db, user, query, cookieHeader, now }) => {
        const goal = readGoal(deps, query)
        checkWeb(goal)
        const redirectUrl = new URL(locate(deps, goal), deps.baseUrl()).href
        const connection = findNeeded(user, query.connection)
        if (connection === undefined) return { redirectUrl, connection }
        const browser = { cookieHeader }
        const flow = { provider: connection, redirectUrl, codeChallenge: null, linkTo: null, browser }
        const begun = await beginFlow(deps, db, { ...flow, proves: user.sessionId, now })
        return { redirectUrl, connection, begun }
      },
      handle: async (_deps, { db, prepared, now }) => {
        const { redirectUrl, connection, begun } = prepared
        if (!begun) return { kind: 'redirect', location: redirectUrl }
        await keepFlow(db, begun, now)
        const { cookies } = begun
        return { kind: 'redirect', location: begun.redirectUrl, cookies, audit: { connection } }
      },
    },
  ),
]
