import type { UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { aheadStatement, statement } from '../postgres/statement.ts'

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

const replaceHash = aheadStatement(`
  update "user" set password_hash = $2, email_verified_at = coalesce(email_verified_at, $3), updated_at = $4
  where document_id = $1`)

/** Sets the password of a person, and with `verifiedAt` the address as verified; sent with the next statement. */
export async function setPasswordHash(
  db: Database,
  userId: UserId,
  change: { passwordHash: string; verifiedAt: Date | null; now: Date },
): Promise<void> {
  await replaceHash(db, [userId, change.passwordHash, change.verifiedAt, change.now])
}
