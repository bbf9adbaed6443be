import type { ConnectionId, UserId } from '../../../base/id.ts'
import { deletionOfOld } from '../../../postgres/retention.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../../postgres/statement/record.ts'
import { closingStatement, isAfter, rowStatement, statement } from '../../../postgres/statement/statement.ts'
import type { ProviderIdentity } from '../../engine/engine.ts'

/** A row of `login_code`. */
export type LoginCode =
  | {
      purpose: 'sign-in'
      userId: UserId
      codeChallenge: string
      isNewUser: boolean
      connection: ConnectionId | null
      createdAt?: Date
      expiresAt: Date
    }
  | { purpose: 'link'; userId: UserId; identity: ProviderIdentity; expiresAt: Date }

const stored = defineRecord(
  'login_code',
  ['user', 'connection', 'code_challenge', 'is_new_user', 'identity', 'expires_at', 'created_at'],
  { user: 'userId' },
).typed<{ identity: ProviderIdentity | null }>()

const insert = closingStatement<{
  codeHash: Buffer
  purpose: 'sign-in' | 'link'
  userId: UserId
  connection: ConnectionId | null
  codeChallenge: string | null
  isNewUser: boolean
  identity: string | null
  expiresAt: Date
  now: Date
}>(`
  new_code as (
    insert into login_code (code_hash, purpose, "user", connection, code_challenge, is_new_user, identity, expires_at, created_at)
    values ($codeHash, $purpose, $userId, $connection, $codeChallenge, $isNewUser, $identity::jsonb, $expiresAt, $now))`)

/** Inserts a code by its hash, with the last statement of the transaction. */
export async function insertLoginCode(db: Database, codeHash: Buffer, code: LoginCode, now: Date): Promise<void> {
  const isLink = code.purpose === 'link'
  await insert(db, {
    codeHash,
    purpose: code.purpose,
    userId: code.userId,
    connection: isLink ? null : code.connection,
    codeChallenge: isLink ? null : code.codeChallenge,
    isNewUser: isLink ? false : code.isNewUser,
    identity: isLink ? JSON.stringify(code.identity) : null,
    expiresAt: code.expiresAt,
    now,
  })
}

const take = statement<RecordOf<typeof stored>, { codeHash: Buffer; purpose: 'sign-in' | 'link' }>(`
  delete from login_code where code_hash = $codeHash and purpose = $purpose
  returning ${stored.members()}`)

/** Deletes and returns a code of this purpose, valid or expired: it works once. The caller commits. */
export async function takeLoginCode(
  db: Database,
  codeHash: Buffer,
  purpose: LoginCode['purpose'],
): Promise<LoginCode | undefined> {
  const [row] = await take(db, { codeHash, purpose })
  if (!row) return undefined
  const { userId, connection, expiresAt, identity, codeChallenge, isNewUser, createdAt } = row
  if (identity) return { purpose: 'link', userId, identity, expiresAt }
  return { purpose: 'sign-in', userId, codeChallenge: codeChallenge ?? '', isNewUser, connection, createdAt, expiresAt }
}

/** The identity of a valid code with which this user connects a provider; undefined for any other code. */
export const findLinkIdentity = rowStatement<
  { identity: ProviderIdentity },
  { codeHash: Buffer; userId: UserId; now: Date },
  ProviderIdentity
>(
  `
  select identity from login_code
  where code_hash = $codeHash and purpose = 'link' and "user" = $userId and ${isAfter('expires_at', '$now')}`,
  (row) => row.identity,
)

/** Deletes codes that expired before `before`, at most `limit`. Returns their number. */
export const deleteExpiredLoginCodes = deletionOfOld('login_code', { key: 'code_hash', time: 'expires_at' })
