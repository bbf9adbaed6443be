import type { SessionId, UserId } from '../../../base/id.ts'
import { closingStatement, rowStatement } from '../../../postgres/statement/statement.ts'

/** The address, the name and the hash of the password of a user, for a change of its own password only. */
export const findOwnCredentials = rowStatement<
  { email: string; name: string | null; passwordHash: string | null },
  { userId: UserId }
>(`
  select email, name, password_hash as "passwordHash" from "user"
  where document_id = $userId and deleted_at is null`)

/**
 * Locks a user with its unrevoked sessions and API keys until the transaction ends, and reads the hash of its password
 * and the number of sessions to revoke: all but `kept`, and with `keepApps` without those of apps. A sign-in with the
 * previous password holds the lock: its session then exists.
 */
export const lockOwnCredentials = rowStatement<
  { passwordHash: string | null; endingSessions: number; apiKeys: number },
  { userId: UserId; keepApps: boolean; kept: SessionId }
>(`
  with u as (
    select document_id, password_hash from "user" where document_id = $userId and deleted_at is null for no key update
  )
  select u.password_hash as "passwordHash", cardinality(t.api_keys) as "apiKeys",
    cardinality(lock_ending_sessions(u.document_id, $keepApps, $kept)) as "endingSessions"
  from u cross join lateral lock_tokens(u.document_id) t`)

/** Sets the password of a user, and with `verifiedAt` the address as verified, with the last statement. */
export const setPasswordHash = closingStatement<{
  userId: UserId
  passwordHash: string
  verifiedAt: Date | null
  now: Date
}>(`
  new_password as (
    update "user"
    set password_hash = $passwordHash, email_verified_at = coalesce(email_verified_at, $verifiedAt), updated_at = $now
    where document_id = $userId)`)
