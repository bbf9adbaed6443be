import type { SessionId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { closingStatement, statement } from '../postgres/statement.ts'

const selectCredentials = statement<{ email: string; name: string | null; password_hash: string | null }>(`
  select email, name, password_hash from "user" where document_id = $1 and deleted_at is null`)

/** The address, the name and the hash of the password of a person, for a change of its own password only. */
export async function findOwnCredentials(
  db: Database,
  userId: UserId,
): Promise<{ email: string; name: string | null; passwordHash: string | null } | undefined> {
  const [row] = await selectCredentials(db, [userId])
  return row && { email: row.email, name: row.name, passwordHash: row.password_hash }
}

interface LockedSession {
  id: SessionId
  isOfApp: boolean
}

const lockCredentials = statement<{ password_hash: string | null; sessions: LockedSession[]; api_keys: string[] }>(`
  with u as (
    select document_id, password_hash from "user" where document_id = $1 and deleted_at is null for no key update
  )
  select u.password_hash, t.api_keys, (
      select coalesce(json_agg(json_build_object('id', s.document_id, 'isOfApp', s.client_id is not null)), '[]')
      from unnest(t.sessions) x (id)
      cross join lateral (select * from session where document_id = x.id offset 0) s
    ) as sessions
  from u cross join lateral lock_tokens(u.document_id) t`)

/**
 * Locks a person with its unrevoked sessions and API keys until the transaction ends, and reads the hash of its password. A
 * sign-in with the password before holds the lock: its session is there then.
 */
export async function lockOwnCredentials(
  db: Database,
  userId: UserId,
): Promise<{ passwordHash: string | null; sessions: LockedSession[]; apiKeys: number } | undefined> {
  const [row] = await lockCredentials(db, [userId])
  return row && { passwordHash: row.password_hash, sessions: row.sessions, apiKeys: row.api_keys.length }
}

const replaceHash = closingStatement(`
  new_password as (
    update "user" set password_hash = $2, email_verified_at = coalesce(email_verified_at, $3), updated_at = $4
    where document_id = $1)`)

/** Sets the password of a person, and with `verifiedAt` the address as verified, with the last statement. */
export async function setPasswordHash(
  db: Database,
  userId: UserId,
  change: { passwordHash: string; verifiedAt: Date | null; now: Date },
): Promise<void> {
  await replaceHash(db, [userId, change.passwordHash, change.verifiedAt, change.now])
}
