import type { UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { closingStatement, isAfter, statement } from '../../../postgres/statement/statement.ts'
import type { ProviderIdentity } from '../../engine/engine.ts'

/** A row of `login_code`. */
export type LoginCode =
  | { purpose: 'sign-in'; userId: UserId; codeChallenge: string; isNewUser: boolean; createdAt?: Date; expiresAt: Date }
  | { purpose: 'link'; userId: UserId; identity: ProviderIdentity; expiresAt: Date }

interface CodeColumns {
  purpose: LoginCode['purpose']
  user: string
  code_challenge: string | null
  is_new_user: boolean
  identity: ProviderIdentity | null
  expires_at: Date
  created_at: Date
}

const insert = closingStatement(`
  new_code as (
    insert into login_code (code_hash, purpose, "user", code_challenge, is_new_user, identity, expires_at, created_at)
    values ($1, $2, $3, $4, $5, $6::jsonb, $7, $8))`)

/** Inserts a code by its hash, with the last statement of the transaction. */
export async function insertLoginCode(db: Database, codeHash: Buffer, code: LoginCode, now: Date): Promise<void> {
  const isLink = code.purpose === 'link'
  await insert(db, [
    codeHash,
    code.purpose,
    code.userId,
    isLink ? null : code.codeChallenge,
    isLink ? false : code.isNewUser,
    isLink ? JSON.stringify(code.identity) : null,
    code.expiresAt,
    now,
  ])
}

const take = statement<CodeColumns>(`
  delete from login_code where code_hash = $1 and purpose = $2
  returning purpose, "user", code_challenge, is_new_user, identity, expires_at, created_at`)

/**
 * Takes a code of this purpose out of the table, living or expired: it serves once, whatever becomes of it. Undefined when
 * there is none. The caller commits.
 */
export async function takeLoginCode(
  db: Database,
  codeHash: Buffer,
  purpose: LoginCode['purpose'],
): Promise<LoginCode | undefined> {
  const [row] = await take(db, [codeHash, purpose])
  if (!row) return undefined
  const common = { userId: row.user as UserId, expiresAt: row.expires_at }
  if (row.identity) return { purpose: 'link', ...common, identity: row.identity }
  const { created_at: createdAt, is_new_user: isNewUser } = row
  return { purpose: 'sign-in', ...common, codeChallenge: row.code_challenge ?? '', isNewUser, createdAt }
}

const findLink = statement<{ identity: ProviderIdentity }>(`
  select identity from login_code where code_hash = $1 and purpose = 'link' and "user" = $2 and ${isAfter('expires_at', '$3')}`)

/** The identity of a living code with which this user connects a provider; undefined for any other code. */
export async function findLinkIdentity(
  db: Database,
  codeHash: Buffer,
  { userId, now }: { userId: UserId; now: Date },
): Promise<ProviderIdentity | undefined> {
  return (await findLink(db, [codeHash, userId, now]))[0]?.identity
}

const removeOld = statement<{ code_hash: Buffer }>(`
  delete from login_code where code_hash = any(array(
    select code_hash from login_code where expires_at < $1 limit $2 for update skip locked))
  returning code_hash`)

/** Deletes codes that expired before `before`, `limit` at most. Returns how many. */
export async function deleteExpiredLoginCodes(db: Database, before: Date, limit: number): Promise<number> {
  return (await removeOld(db, [before, limit])).length
}
