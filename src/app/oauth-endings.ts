import { recordAudit } from '../audit/audit.ts'
import type { SessionId, UserId } from '../id.ts'
import { endSessionsOfGrant } from '../oauth/exchange.ts'
import type { ProviderEndings } from '../oauth/provider/endings.ts'
import { inTransaction } from '../postgres/database.ts'
import { signOut } from '../session/session.ts'
import type { AppOptions } from './app.ts'
import type { FeatureParts } from './features.ts'

/** What the service does when the OAuth provider ends something: sign-out here, and entries of the audit log. */
export function buildProviderEndings(options: AppOptions, { ids, pages }: FeatureParts): ProviderEndings {
  const { database, clock, logger } = options
  const { db } = database
  return {
    endBrowserSession: async ({ userId, sessionId }, { clientId, address, requestId }) => {
      const now = new Date(clock.now())
      const caller = { userId: userId as UserId, sessionId: sessionId as SessionId }
      await inTransaction(db, async (tx) => {
        const ended = await signOut(tx, { caller, all: false, family: true, refreshToken: undefined, now })
        const entry = { action: 'session.revoke', outcome: 'success', address, requestId } as const
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
