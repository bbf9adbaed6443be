import type { Selectable } from 'kysely'
import type { UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { User } from '../postgres/tables.generated.ts'

/** A row of the `user` table, without the hash of its password. */
export interface UserRecord {
  id: UserId
  email: string
  emailVerifiedAt: Date | null
  name: string | null
  avatarUrl: string | null
  hasPassword: boolean
  isActived: boolean
  createdAt: Date
  updatedAt: Date
  deletedAt: Date | null
}

/** Maps a row of the `user` table. The hash of the password stays behind. */
export function toUserRecord(row: Selectable<User>): UserRecord {
  return {
    id: row.document_id as UserId,
    email: row.email,
    emailVerifiedAt: row.email_verified_at,
    name: row.name,
    avatarUrl: row.avatar_url,
    hasPassword: row.password_hash !== null,
    isActived: row.is_actived,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
  }
}

/** The living users, as the base of a list. */
export function selectUsers(db: Database) {
  return db.selectFrom('user').where('deleted_at', 'is', null)
}

/** The living user with this id; `lock` keeps it from changing until the transaction ends. */
export async function findUser(
  db: Database,
  id: string,
  options: { lock?: boolean } = {},
): Promise<UserRecord | undefined> {
  let query = selectUsers(db).selectAll().where('document_id', '=', id)
  if (options.lock) query = query.forNoKeyUpdate()
  const row = await query.executeTakeFirst()
  return row && toUserRecord(row)
}

/** The living user with this address, whatever its case. */
export async function findUserByEmail(db: Database, email: string): Promise<UserRecord | undefined> {
  return (await findCredentials(db, email))?.user
}

/** A user and the hash of the password. For a sign-in only. */
export interface Credentials {
  user: UserRecord
  passwordHash: string | null
}

/** The living user with this address, whatever its case, with the hash of the password. */
export async function findCredentials(db: Database, email: string): Promise<Credentials | undefined> {
  const row = await selectUsers(db)
    .selectAll()
    .where((eb) => eb(eb.fn('lower', ['email']), '=', eb.fn('lower', [eb.val(email)])))
    .executeTakeFirst()
  return row && { user: toUserRecord(row), passwordHash: row.password_hash }
}

/** Whether the user still has this hash of a password, locked until the transaction ends. */
export async function lockPasswordHash(db: Database, id: UserId, passwordHash: string): Promise<boolean> {
  const row = await db
    .selectFrom('user')
    .select('document_id')
    .where('document_id', '=', id)
    .where('password_hash', '=', passwordHash)
    .forNoKeyUpdate()
    .executeTakeFirst()
  return row !== undefined
}

/** Inserts a user. Breaks `user_email_key` when the address is taken. */
export async function insertUser(
  db: Database,
  row: {
    id: UserId
    email: string
    emailVerifiedAt: Date | null
    name: string | null
    avatarUrl: string | null
    passwordHash: string | null
    now: Date
  },
): Promise<UserRecord> {
  const inserted = await db
    .insertInto('user')
    .values({
      document_id: row.id,
      email: row.email,
      email_verified_at: row.emailVerifiedAt,
      name: row.name,
      avatar_url: row.avatarUrl,
      password_hash: row.passwordHash,
      created_at: row.now,
      updated_at: row.now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toUserRecord(inserted)
}

/** What may change of a user. */
export interface UserChange {
  email?: string
  emailVerifiedAt?: Date | null
  name?: string | null
  avatarUrl?: string | null
  passwordHash?: string
  isActived?: boolean
  deletedAt?: Date
  now: Date
}

/** Changes what `change` names. Breaks `user_email_key` when the address is taken. */
export async function updateUser(db: Database, id: UserId, change: UserChange): Promise<UserRecord> {
  const updated = await db
    .updateTable('user')
    .set({
      ...(change.email !== undefined && { email: change.email }),
      ...(change.emailVerifiedAt !== undefined && { email_verified_at: change.emailVerifiedAt }),
      ...(change.name !== undefined && { name: change.name }),
      ...(change.avatarUrl !== undefined && { avatar_url: change.avatarUrl }),
      ...(change.passwordHash !== undefined && { password_hash: change.passwordHash }),
      ...(change.isActived !== undefined && { is_actived: change.isActived }),
      ...(change.deletedAt !== undefined && { deleted_at: change.deletedAt }),
      updated_at: change.now,
    })
    .where('document_id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  return toUserRecord(updated)
}
