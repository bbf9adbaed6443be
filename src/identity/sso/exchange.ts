import { createHash } from 'node:crypto'
import { NIL_ID, type SessionId, type UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { SessionRecord } from '../session/session.store.ts'
import { type IssuedSession, openLockedSession, type SessionDeps, type SessionOrigin } from '../session/session.ts'
import { type ClaimedHandshake, claimHandshake } from './exchange.store.ts'
import { type Handshake, type HandshakeRefusal, type HandshakeRules, verifyHandshake } from './handshake-token.ts'

/** Dependencies of the operations on handshakes. */
export interface SsoDeps extends SessionDeps {
  rules: HandshakeRules
}

/** The reason of a refused exchange. For the log and the audit trail only: the caller gets one answer for all of them. */
export type ExchangeRefusal =
  | HandshakeRefusal
  | 'session_unknown'
  | 'session_of_handshake'
  | 'session_of_app'
  | 'session_revoked'
  | 'session_expired'
  | 'user_inactive'
  | 'replayed'

/** A session opened by a handshake. */
export interface Exchanged {
  kind: 'exchanged'
  issued: IssuedSession
  parent: SessionRecord
  handshake: Handshake
}

/** A refused exchange. `handshake` has the claims of a genuine token; undefined for any other text. */
export interface RefusedExchange {
  kind: 'refused'
  reason: ExchangeRefusal
  handshake: Handshake | undefined
}

/** An id without a row: a refused token is looked up in the database like any other. */
const NO_ROW = NIL_ID

/** Keyed by the nonce: a token has several encodings, and a nonce is valid once, in any token. */
function hashNonce(nonce: string): Buffer {
  return createHash('sha256').update(nonce).digest()
}

/**
 * Exchanges a handshake token for a session of its own (docs/contract/sso.md#exchange), in the caller's transaction, which
 * must be committed also for a refusal. The session is opened from the one inside the token, ends with it, and cannot be
 * refreshed. Every refusal does the same work: the same MACs and the same statements.
 */
export async function exchangeHandshake(
  deps: SsoDeps,
  tx: Database,
  input: { token: string; appOrigin: string | null; origin: SessionOrigin; now: Date },
): Promise<Exchanged | RefusedExchange> {
  const { token, appOrigin, origin, now } = input
  const verified = verifyHandshake({ rules: deps.rules, session: deps.keys }, token, { appOrigin, now })
  const handshake = verified.ok ? verified.handshake : undefined
  const found = await claimHandshake(tx, {
    sessionId: handshake?.sessionId ?? (NO_ROW as SessionId),
    userId: handshake?.userId ?? (NO_ROW as UserId),
    nonceHash: hashNonce(handshake?.nonce ?? ''),
    expiresAt: handshake?.expiresAt ?? now,
    now,
  })
  if (!verified.ok) return { kind: 'refused', reason: verified.reason, handshake }
  const reason = findRefusal(found, now)
  if (!found || reason) return { kind: 'refused', reason: reason ?? 'session_unknown', handshake }
  const { session: parent, accounts } = found
  const { userId, accountId } = parent
  const opening = { userId, accounts, accountId, parent, origin, isRefreshable: false, now }
  const issued = await openLockedSession(deps, tx, opening)
  return { kind: 'exchanged', issued, parent, handshake: verified.handshake }
}

/** The reason for which a session cannot be continued, by the rules of the statement that spends the nonce. Pure. */
function findRefusal(found: ClaimedHandshake | undefined, now: Date): ExchangeRefusal | undefined {
  if (!found) return 'session_unknown'
  const { session } = found
  if (!found.isUserActive) return 'user_inactive'
  if (session.revokedAt !== null) return 'session_revoked'
  if (session.expiresAt <= now) return 'session_expired'
  if (session.parentId !== null) return 'session_of_handshake'
  if (session.client !== null) return 'session_of_app'
  return found.isClaimed ? undefined : 'replayed'
}
