import type { SessionId } from '../../base/id.ts'
import { closingStatement, rowStatement } from '../../postgres/statement/statement.ts'
import type { PresentedToken } from './refresh-decision.ts'
import { OF_SESSION, type SessionRecord, type StoredSession, toSessionRecord } from './session.store.ts'

/** A refresh token of the table, with its session. */
export interface StoredToken extends PresentedToken {
  successorSalt: Buffer | null
  successorHash: Buffer | null
  session: SessionRecord
}

/** Locks the refresh token with this hash until the transaction ends, and reads it. Undefined for an unknown one. */
export const lockRefreshToken = rowStatement<
  StoredSession & Omit<StoredToken, 'expiresAt' | 'session'> & { tokenExpiresAt: Date },
  { tokenHash: Buffer; now: Date },
  StoredToken
>(
  `select ${OF_SESSION}, t.expires_at as "tokenExpiresAt", t.spent_at as "spentAt", t.spent_by as "spentBy",
    t.successor_salt as "successorSalt", t.successor_hash as "successorHash",
    s.revoked_at is null and s.expires_at > $now and u.is_actived and u.deleted_at is null as "isSessionLiving"
  from session_refresh t join session s on s.document_id = t.session join "user" u on u.document_id = s."user"
  where t.token_hash = $tokenHash for no key update of t`,
  ({ tokenExpiresAt, spentAt, spentBy, isSessionLiving, successorSalt, successorHash, ...stored }) => ({
    ...{ spentAt, spentBy, isSessionLiving, successorSalt, successorHash },
    expiresAt: tokenExpiresAt,
    session: toSessionRecord(stored),
  }),
)

/** Spends a locked refresh token and inserts its successor, which is valid until `expiresAt`. */
export const spendRefreshToken = closingStatement<{
  tokenHash: Buffer
  client: Buffer
  successorSalt: Buffer
  successorHash: Buffer
  expiresAt: Date
  sessionId: SessionId
  now: Date
}>(`
  spent_token as (
    update session_refresh
    set spent_at = $now, spent_by = $client, successor_salt = $successorSalt, successor_hash = $successorHash
    where token_hash = $tokenHash
  ), used_session as (
    update session set last_used_at = $now where document_id = $sessionId
  ), next_token as (
    insert into session_refresh (token_hash, session, expires_at, created_at)
    values ($successorHash, $sessionId, $expiresAt, $now))`)
