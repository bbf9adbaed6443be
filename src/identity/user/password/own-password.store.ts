import type { SessionId, UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { closingStatement, statement } from '../../../postgres/statement/statement.ts'

const selectCredentials = statement<
  { email: string; name: string | null; password_hash: string | null },
  { userId: UserId }
>(`
  select email, name, password_hash from "user" where document_id = $userId and deleted_at is null`)

/** The address, the name and the hash of the password of a user, for a change of its own password only. */
export async function findOwnCredentials(
  db: Database,
  userId: UserId,
): Promise<{ email: string; name: string | null; passwordHash: string | null } | undefined> {
  const [row] = await selectCredentials(db, { userId })
  return row && { email: row.email, name: row.name, passwordHash: row.password_hash }
}

const lockCredentials = statement<
  { password_hash: string | null; sessions: SessionId[]; api_keys: string[] },
  { userId: UserId; keepApps: boolean; kept: SessionId }
>(`
  with u as (
    select document_id, password_hash from "user" where document_id = $userId and deleted_at is null for no key update
  )
  select u.password_hash, t.api_keys, lock_ending_sessions(u.document_id, $keepApps, $kept) as sessions
  from u cross join lateral lock_tokens(u.document_id) t`)

/**
 * Locks a user with its unrevoked sessions and API keys until the transaction ends, and reads the hash of its password
 * and the number of sessions to revoke: all but `kept`, and with `keepApps` without those of apps. A sign-in with the
 * previous password holds the lock: its session then exists.
 */
export async function lockOwnCredentials(
  db: Database,
  { userId, keepApps, kept }: { userId: UserId; keepApps: boolean; kept: SessionId },
): Promise<{ passwordHash: string | null; endingSessions: number; apiKeys: number } | undefined> {
  const [row] = await lockCredentials(db, { userId, keepApps, kept })
  if (!row) return undefined
  return { passwordHash: row.password_hash, endingSessions: row.sessions.length, apiKeys: row.api_keys.length }
}

const replaceHash = closingStatement<{ userId: UserId; passwordHash: string; verifiedAt: Date | null; now: Date }>(`
  new_password as (
    update "user"
    set password_hash = $passwordHash, email_verified_at = coalesce(email_verified_at, $verifiedAt), updated_at = $now
    where document_id = $userId)`)

/** Sets the password of a user, and with `verifiedAt` the address as verified, with the last statement. */
export async function setPasswordHash(
  db: Database,
  userId: UserId,
  change: { passwordHash: string; verifiedAt: Date | null; now: Date },
): Promise<void> {
  await replaceHash(db, { userId, ...change })
}
