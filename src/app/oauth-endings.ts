import { recordAudit } from '../audit/audit.ts'
import { recordEvents } from '../event/event.ts'
import { eventNameOf } from '../http/route.ts'
import type { SessionId, UserId } from '../id.ts'
import { endSessionsOfGrant } from '../oauth/exchange.ts'
import type { ProviderEndings } from '../oauth/provider/endings.ts'
import { inTransaction } from '../postgres/database.ts'
import { signOut } from '../session/session.ts'
import type { AppOptions } from './app.ts'
import type { FeatureParts } from './features.ts'
import { buildReadPathFinder, draftEvents } from './record-change.ts'
import { ROUTE_TREE } from './route-tree.ts'

/** The API route that signs out: a sign-out by a client has its event and its audit entry. */
const SIGN_OUT = ROUTE_TREE.find(({ resource, action }) => resource === 'session' && action === 'revoke')

/** What the service does when the OAuth provider ends something: sign-out here, its events, and entries of the audit log. */
export function buildProviderEndings(options: AppOptions, { ids, pages }: FeatureParts): ProviderEndings {
  const { config, database, clock, logger } = options
  const { db } = database
  const { enableApiEventQueue } = config
  const findReadPath = buildReadPathFinder(ROUTE_TREE)
  if (!SIGN_OUT) throw new Error('the route tree has a route that signs out')
  const route = SIGN_OUT
  return {
    endBrowserSession: async ({ userId, sessionId }, { clientId, address, requestId }) => {
      const now = new Date(clock.now())
      const caller = { userId: userId as UserId, sessionId: sessionId as SessionId }
      await inTransaction(db, async (tx) => {
        const ended = await signOut(tx, { caller, all: false, family: true, refreshToken: undefined, now })
        const changed = ended.map((id) => ({ id, account: null }))
        const drafts = draftEvents(findReadPath, { route, changed, trace: null })
        await recordEvents({ ids, enableApiEventQueue }, tx, drafts, now)
        const entry = { action: eventNameOf(route), outcome: 'success', address, requestId } as const
        const detail = { client: clientId }
        await recordAudit(tx, { ids, now }, ...ended.map((target) => ({ ...entry, ...caller, target, detail })))
      })
      return pages.cookies.signOut()
    },
    recordFamilyEnd: async (target, cause, { clientId, address, requestId }) => {
      const now = new Date(clock.now())
      const action = cause === 'revoked' ? 'oauth-token.revoke' : 'oauth-token.reuse'
      const outcome = cause === 'revoked' ? 'success' : 'failure'
      const entry = { action, outcome, userId: null, target, address, requestId, detail: { client: clientId } } as const
      try {
        await inTransaction(db, async (tx) => {
          await endSessionsOfGrant(tx, { grantId: target, isFinal: false, now })
          if (cause !== 'signed out') await recordAudit(tx, { ids, now }, entry)
        })
      } catch (error) {
        logger.error(
          { err: error, request_id: requestId },
          'sessions of an OAuth token not ended: see docs/operations.md, oauth provider',
        )
      }
    },
    recordRefusedPerson: async (userId, { clientId, address, requestId }) => {
      const facts = { userId: userId as UserId, clientId, address, requestId, detail: { reason: 'user_inactive' } }
      try {
        await recordAudit(
          db,
          { ids, now: new Date(clock.now()) },
          {
            action: 'oauth-token.create',
            outcome: 'failure',
            ...facts,
          },
        )
      } catch (error) {
        logger.error(
          { err: error, request_id: requestId },
          'refused OAuth token not recorded: see docs/operations.md, oauth provider',
        )
      }
    },
  }
}
