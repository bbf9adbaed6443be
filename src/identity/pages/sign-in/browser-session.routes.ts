import { html } from '../../../base/html.ts'
import type { SessionId, UserId } from '../../../base/id.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { Routes } from '../../../http/route/route.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { type RefreshDeps, refreshSession } from '../../session/refresh.ts'
import { type SessionOrigin, signOut } from '../../session/session.ts'
import { readNextPath } from '../../sso/next-path.ts'
import { refreshBrowser, type Visitor } from '../browser/browser-session.ts'
import { renderFormToken } from '../frame/form.ts'
import { buildCard } from '../frame/layout.ts'
import { buildPage } from '../frame/page.ts'
import { definePage, type PageDeps } from '../frame/page-route.ts'
import { buildSignInUrl, HOME, redirectTo } from '../frame/page-url.ts'

/** Dependencies of the pages that refresh and end the session of the browser. */
export interface BrowserSessionDeps extends PageDeps, RefreshDeps {}

const SIGNED_OUT = buildSignInUrl({ notice: 'signed-out' })

/** The session of the browser: of its session cookie, else of its refresh token, which is spent by that. */
async function findOwnSession(
  deps: BrowserSessionDeps,
  db: Database,
  { visitor, origin, now }: { visitor: Visitor; origin: SessionOrigin; now: Date },
): Promise<{ userId: UserId; sessionId: SessionId } | undefined> {
  if (visitor.user) return visitor.user
  if (visitor.refreshToken === undefined) return undefined
  const { session } = await refreshSession(deps, db, { refreshToken: visitor.refreshToken, origin, now })
  return session && { userId: session.userId, sessionId: session.id }
}

/** Refreshes and ends the session of the browser (docs/contract/pages.md#browser-session). */
export const browserSessionRoutes: Routes<BrowserSessionDeps> = [
  definePage(
    {
      path: '/auth/refresh',
      resource: 'session',
      action: 'refresh',
      event: 'shared',
      writes: true,
      strictRateLimit: true,
      summary: 'Refresh the session of the browser, and continue',
      query: ['next'],
    },
    async (deps: BrowserSessionDeps, { db, visitor, query, address, userAgent, now }) => {
      const next = readNextPath(query.next) ?? HOME
      if (visitor.user) return redirectTo(next)
      if (visitor.refreshToken === undefined) return redirectTo(buildSignInUrl({ next }))
      const origin = { address, userAgent }
      const result = await refreshSession(deps, db, { refreshToken: visitor.refreshToken, origin, now })
      const { session } = result
      const actor = { userId: session?.userId ?? null, sessionId: session?.id ?? null, account: null }
      if (result.kind === 'refused')
        return {
          kind: 'refusal',
          problem: new Problem('refresh_failed', 'The session of the browser has ended.', { reason: result.reason }),
          instead: { location: buildSignInUrl({ next, notice: 'session-ended' }) },
          cookies: deps.cookies.signOut(),
          target: session?.id ?? null,
          actor,
        }
      return {
        ...redirectTo(next),
        cookies: refreshBrowser(deps, result.issued, visitor.browserId),
        // A repeat, by a second tab, changes nothing.
        ...(result.isRepeat ? { audit: { is_repeat: true } } : { changed: [{ id: result.session.id, account: null }] }),
        actor,
      }
    },
  ),
  definePage(
    { path: '/auth/sign-out', resource: 'sign-out-page', summary: 'Ask whether to sign out' },
    async (deps: BrowserSessionDeps, { visitor }) => {
      if (!visitor.user && visitor.refreshToken === undefined) return redirectTo(SIGNED_OUT)
      const { texts } = visitor
      const content = html`<form method="post" action="/auth/sign-out">
${renderFormToken(deps, visitor.browserId)}
<button type="submit">${texts.say('sign-out.title')}</button>
<a class="button plain" href="${HOME}">${texts.say('sign-out.stay')}</a>
</form>`
      const page = buildCard({ texts }, { title: texts.say('sign-out.ask'), text: texts.say('sign-out.text'), content })
      return buildPage({ brand: deps.brand, ...page, title: texts.say('sign-out.title') })
    },
  ),
  definePage(
    {
      method: 'POST',
      path: '/auth/sign-out',
      resource: 'session',
      action: 'revoke',
      summary: 'Sign out of this browser',
    },
    async (deps: BrowserSessionDeps, { db, visitor, address, userAgent, now }) => {
      const own = await findOwnSession(deps, db, { visitor, origin: { address, userAgent }, now })
      const ended = own
        ? await signOut(db, { caller: own, all: false, family: true, refreshToken: undefined, now })
        : []
      return {
        ...redirectTo(SIGNED_OUT),
        cookies: deps.cookies.signOut(),
        changed: ended.map((id) => ({ id, account: null })),
        actor: { userId: own?.userId ?? null, sessionId: own?.sessionId ?? null, account: null },
      }
    },
  ),
]
