import type { SessionId, UserId } from '../../base/id.ts'
import { aheadStatement, closingStatement, rowStatement } from '../../postgres/statement/statement.ts'
import { OF_SESSION, type SessionRecord, type StoredSession, toSessionRecord } from './session.store.ts'

/** Locks a user until the transaction ends; sent with the next statement of the transaction. */
export const lockUser = aheadStatement<{ userId: UserId }>(
  'select from "user" where document_id = $userId for no key update',
)

/** Locks an unrevoked session until the transaction ends. */
export const lockSession = rowStatement<StoredSession, { id: SessionId }, SessionRecord>(
  `select ${OF_SESSION} from session s where s.document_id = $id and s.revoked_at is null for no key update`,
  toSessionRecord,
)

/** Sets how and when the user of a locked session proved who it is, with the last statement of the transaction. */
export const setSessionProof = closingStatement<{ id: SessionId; amr: readonly string[]; acr: string; now: Date }>(
  `raised_session as (
    update session set amr = $amr, acr = $acr, auth_time = $now, updated_at = $now where document_id = $id)`,
  ({ id }) => `s:${id}`,
)

/** Removes the mark of a second factor from the sessions of a locked user. */
export const lowerUserSessions = closingStatement<{ userId: UserId; now: Date; acr: string }>(
  `lowered_sessions as (
    update session set amr = array_remove(amr, 'mfa'), acr = $acr, updated_at = $now
    where document_id = any(array(
      select document_id from session where "user" = $userId and revoked_at is null and 'mfa' = any(amr)
      order by document_id for no key update)))`,
  ({ userId }) => `u:${userId}`,
)
