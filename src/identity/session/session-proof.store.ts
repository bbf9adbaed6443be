import type { SessionId, UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { aheadStatement, closingStatement, statement } from '../../postgres/statement/statement.ts'
import { OF_SESSION, type SessionRecord, type StoredSession, toSessionRecord } from './session.store.ts'

const lock = aheadStatement<{ userId: UserId }>('select from "user" where document_id = $userId for no key update')

/** Locks a user until the transaction ends; sent with the next statement of the transaction. */
export async function lockUserAhead(db: Database, userId: UserId): Promise<void> {
  await lock(db, { userId })
}

const lockOpen = statement<StoredSession, { id: SessionId }>(`
  select ${OF_SESSION} from session s where s.document_id = $id and s.revoked_at is null for no key update`)

/** Locks an unrevoked session until the transaction ends. */
export async function lockSession(db: Database, id: SessionId): Promise<SessionRecord | undefined> {
  const [row] = await lockOpen(db, { id })
  return row && toSessionRecord(row)
}

const raise = closingStatement<{ id: SessionId; amr: readonly string[]; acr: string; now: Date }>(`
  raised_session as (
    update session set amr = $amr, acr = $acr, auth_time = $now, updated_at = $now where document_id = $id)`)

/** Sets how and when the user of a locked session proved who it is, with the last statement of the transaction. */
export async function setSessionProof(
  db: Database,
  id: SessionId,
  proof: { amr: string[]; acr: string; now: Date },
): Promise<void> {
  await raise(db, { id, ...proof }, { invalidations: `s:${id}` })
}

const lower = closingStatement<{ userId: UserId; now: Date; acr: string }>(`
  lowered_sessions as (
    update session set amr = array_remove(amr, 'mfa'), acr = $acr, updated_at = $now
    where document_id = any(array(
      select document_id from session where "user" = $userId and revoked_at is null and 'mfa' = any(amr)
      order by document_id for no key update)))`)

/**
 * Removes the mark of a second factor from the sessions of a locked user, with the last statement of the transaction.
 */
export async function lowerUserSessions(
  db: Database,
  userId: UserId,
  { acr, now }: { acr: string; now: Date },
): Promise<void> {
  await lower(db, { userId, now, acr }, { invalidations: `u:${userId}` })
}
