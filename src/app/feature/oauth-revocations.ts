import type { SessionId, UserId } from '../../base/id.ts'
import { recordEvents } from '../../event/occurrence/event.ts'
import { recordAudit } from '../../event/recording/audit.ts'
import { buildReadPathFinder, draftEvents } from '../../event/recording/record-change.ts'
import { eventNameOf, type RouteDeclaration } from '../../http/route/route.ts'
import { signOut } from '../../identity/session/session.ts'
import { endSessionsOfGrant } from '../../oauth/exchange/exchange.ts'
import { lockSilentGrant, widenGrant } from '../../oauth/grant/grant.store.ts'
import type { ProviderRevocations } from '../../oauth/provider/token-family/revocations.ts'
import type { TokenFamilyDeps } from '../../oauth/provider/token-family/token-family.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import type { AppOptions } from '../part/app-options.ts'
import type { FeatureParts } from './feature.ts'
import { ROUTE_TREE } from './route-tree.ts'

/** The API routes whose event and audit entry the provider causes: a sign-out, and a decision about a client. */
const SIGN_OUT = findRoute('session', 'revoke')
const DECIDE = findRoute('oauth-decision', 'create')

const findReadPath = buildReadPathFinder(ROUTE_TREE)

function findRoute(resource: string, action: string): RouteDeclaration {
  const route = ROUTE_TREE.find((route) => route.resource === resource && route.action === action)
  if (!route) throw new Error(`the route tree has no ${resource}.${action}`)
  return route
}

/** Builds what writes the grant of a first-party client, which asks no question: it has the event of a decision. */
export function buildSilentGrants(
  { config, database }: AppOptions,
  { ids }: FeatureParts,
): TokenFamilyDeps['keepSilentGrant'] {
  const { enableApiEventQueue } = config
  return (row, { clientId, address, requestId }) =>
    inTransaction(database.db, async (tx) => {
      if (!(await lockSilentGrant(tx, row))) return undefined
      const grant = await widenGrant(tx, row)
      const { id: target, userId, scopes } = grant
      const changed = [{ id: target, account: null, url: null }]
      const drafts = draftEvents(findReadPath, { route: DECIDE, changed, trace: null })
      await recordEvents({ ids, enableApiEventQueue }, tx, drafts, row.now)
      const detail = { decision: 'approve', client: clientId, scopes, is_first_party: true }
      const entry = { action: eventNameOf(DECIDE), outcome: 'success', address, requestId } as const
      await recordAudit(tx, { ids, now: row.now }, { ...entry, userId, target, detail })
      return grant
    })
}

/** Reactions of the service to a revocation at the OAuth provider: sign-out here, its events, and audit entries. */
export function buildProviderRevocations(options: AppOptions, { ids, pages }: FeatureParts): ProviderRevocations {
  const { config, database, clock, logger } = options
  const { db } = database
  const { enableApiEventQueue } = config
  return {
    endBrowserSession: async ({ userId, sessionId }, { clientId, address, requestId }) => {
      const now = new Date(clock.now())
      const caller = { userId: userId as UserId, sessionId: sessionId as SessionId }
      await inTransaction(db, async (tx) => {
        const ended = await signOut(tx, { caller, all: false, family: true, refreshToken: undefined, now })
        const changed = ended.map((id) => ({ id, account: null }))
        const drafts = draftEvents(findReadPath, { route: SIGN_OUT, changed, trace: null })
        await recordEvents({ ids, enableApiEventQueue }, tx, drafts, now)
        const entry = { action: eventNameOf(SIGN_OUT), outcome: 'success', address, requestId } as const
        const detail = { client: clientId }
        await recordAudit(tx, { ids, now }, ...ended.map((target) => ({ ...entry, ...caller, target, detail })))
      })
      return pages.cookies.signOut()
    },
    recordTokenFamilyEnd: async (target, cause, { clientId, address, requestId }) => {
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
    recordRefusedUser: async (userId, { clientId, address, requestId }) => {
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
