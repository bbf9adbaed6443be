import type { Routes } from '../../../http/route/route.ts'
import { definePage } from '../frame/page-route.ts'
import { buildContinueUrl, buildRefreshUrl, buildSignInUrl, HOME, redirectTo } from '../frame/page-url.ts'
import { checkWeb, readGoal, type SignInPageDeps } from './sign-in-goal.ts'

/** The headers of a redirect that carries a handshake token. */
const SECRET_HEADERS = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }

/** Redirect from the sign-in page to an app on another domain (docs/contract/pages.md#sign-in-page). */
export const continueRoutes: Routes<SignInPageDeps> = [
  definePage(
    {
      path: '/auth/continue',
      resource: 'sso',
      action: 'handshake',
      event: 'shared',
      writes: true,
      strictRateLimit: true,
      summary: 'Continue at an app on another domain with a handshake',
      query: ['redirect_url'],
    },
    async (deps: SignInPageDeps, { db, visitor, query, now }) => {
      const goal = readGoal(deps, query)
      checkWeb(goal)
      const { user } = visitor
      if (!goal.target) return { kind: 'redirect', location: HOME }
      const { url } = goal.target
      if (!user) {
        return redirectTo(
          visitor.isRefreshable ? buildRefreshUrl(buildContinueUrl(url)) : buildSignInUrl({ redirect_url: url }),
        )
      }
      const { userId, sessionId } = user
      const opened = await deps.openTarget(db, { userId, sessionId, isNew: false, targetUrl: url, now })
      return {
        kind: 'redirect',
        location: opened ?? url,
        headers: SECRET_HEADERS,
        audit: { audience: new URL(url).origin, cross_domain: opened !== undefined },
        ...(opened !== undefined && { changed: [{ id: sessionId, account: null }] }),
        actor: { userId, sessionId, account: null },
      }
    },
  ),
]
