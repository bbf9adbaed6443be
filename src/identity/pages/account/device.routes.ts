import type { SessionId } from '../../../base/id.ts'
import type { TextKey } from '../../../base/language/texts.ts'
import { notFound } from '../../../http/problem/problem.ts'
import type { Routes } from '../../../http/route/route.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { signOut } from '../../session/session.ts'
import type { SignedInUser } from '../browser/browser-session.ts'
import { KEEP_APPS_FIELD } from '../frame/form.ts'
import { findNotice } from '../frame/notice.ts'
import { buildPage } from '../frame/page.ts'
import { definePage, type PageDeps, showProblem } from '../frame/page-route.ts'
import { askToSignIn, redirectTo } from '../frame/page-url.ts'
import { listDevices } from './device.store.ts'
import { buildDevicesPage } from './device-page.ts'

const DEVICES = '/auth/devices'

const NOTICES: Readonly<Record<string, TextKey>> = {
  'signed-out': 'devices.signed-out',
  'others-signed-out': 'devices.others-signed-out',
}

/** Revokes these sessions of a user. Returns the revoked ones, including those opened from them. */
async function endSessions(
  db: Database,
  { user, sessions, now }: { user: SignedInUser; sessions: readonly SessionId[]; now: Date },
): Promise<SessionId[]> {
  const ended: SessionId[] = []
  for (const sessionId of sessions) {
    const caller = { userId: user.userId, sessionId }
    ended.push(...(await signOut(db, { caller, all: false, family: false, refreshToken: undefined, now })))
  }
  return ended
}

/** The devices of a user, and ending one or all others (docs/contract/pages.md#devices). */
export const deviceRoutes: Routes<PageDeps> = [
  definePage(
    { path: DEVICES, resource: 'devices-page', summary: 'The devices of the user', query: ['notice'] },
    async (deps: PageDeps, { db, visitor, query, now }) => {
      const { user, browserId } = visitor
      if (!user) return askToSignIn(visitor, DEVICES)
      const devices = await listDevices(db, { userId: user.userId, now })
      const notice = findNotice(visitor.texts, NOTICES, query.notice)
      const { texts } = visitor
      const view = { devices, ownSession: user.sessionId, browserId, texts, notice, now }
      return buildPage({ brand: deps.brand, ...buildDevicesPage(deps, view) })
    },
  ),
  definePage(
    {
      method: 'POST',
      path: DEVICES,
      resource: 'session',
      action: 'revoke',
      summary: 'Sign out one device, or all others',
      fields: { session: 36, others: 1, [KEEP_APPS_FIELD]: 1, 'keep-keys': 1 },
    },
    async (deps: PageDeps, { db, visitor, form, now, requestId }) => {
      const { user } = visitor
      if (!user) return askToSignIn(visitor, DEVICES)
      const own = await listDevices(db, { userId: user.userId, now })
      const isAll = form.others !== ''
      const chosen = own.filter(({ id }) => (isAll ? id !== user.sessionId : id === form.session))
      // Also for the session of another user: the answer does not tell whether it exists.
      if (!isAll && chosen.length === 0) return showProblem(deps, notFound('device'), { requestId, visitor })
      const kept = { keepApps: form[KEEP_APPS_FIELD] === '1', keepApiKeys: form['keep-keys'] === '1' }
      const ended = isAll
        ? await signOut(db, { caller: user, all: 'others', refreshToken: undefined, ...kept, now })
        : await endSessions(db, { user, sessions: chosen.map(({ id }) => id), now })
      return {
        ...redirectTo(`${DEVICES}?notice=${isAll ? 'others-signed-out' : 'signed-out'}`),
        changed: ended.map((id) => ({ id, account: null })),
        actor: { userId: user.userId, sessionId: user.sessionId, account: null },
      }
    },
  ),
]
