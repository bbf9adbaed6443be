import type { SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { aheadStatement, statement } from '../postgres/statement.ts'
import { OF_SESSION, type SessionColumns, type SessionRecord, toSessionRecord } from './session.store.ts'

const lock = aheadStatement('select from "user" where document_id = $1 for no key update')

/** Locks a user until the transaction ends; sent with the next statement of the transaction. */
export async function lockUserAhead(db: Database, userId: UserId): Promise<void> {
  await lock(db, [userId])
}

const raise = statement<SessionColumns>(`
  update session s set amr = $2, acr = $3, auth_time = $4, updated_at = $4
  where s.document_id = $1 and s.revoked_at is null returning ${OF_SESSION}`)

/** Sets how and when the person of a session proved who it is. Undefined when the session was revoked. */
export async function setSessionProof(
  db: Database,
  id: SessionId,
  proof: { amr: readonly string[]; acr: string; now: Date },
): Promise<SessionRecord | undefined> {
  const [row] = await raise(db, [id, proof.amr, proof.acr, proof.now])
  return row && toSessionRecord(row)
}

const lower = aheadStatement(`
  update session set amr = array_remove(amr, 'mfa'), acr = $3, updated_at = $2
  where document_id in (
    select document_id from session where "user" = $1 and revoked_at is null and 'mfa' = any(amr)
    order by document_id for no key update)`)

/** Takes the mark of a second factor from the sessions of a user; sent with the next statement of the transaction. */
export async function lowerUserSessions(
  db: Database,
  userId: UserId,
  { acr, now }: { acr: string; now: Date },
): Promise<void> {
  await lower(db, [userId, now, acr])
}
