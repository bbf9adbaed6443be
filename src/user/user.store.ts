import { sql } from 'kysely'
import { HOLDINGS_COLUMNS, HOLDINGS_OF_USER, type HoldingsRow, toHoldings } from '../access/delegation.store.ts'
import type { Holdings } from '../access/delegation.ts'
import { GIVEN_ROLE, type GivenRole, type RoleId } from '../access/role.store.ts'
import type { UserId } from '../id.ts'
import { writeAtEnd } from '../postgres/closing.ts'
import type { Database } from '../postgres/database.ts'
import { closingStatement, statement } from '../postgres/statement.ts'

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

/** A user with its roles, in the order of their names. */
export interface UserWithRoles extends UserRecord {
  roles: RoleId[]
}

/** A user with the holdings that decide who may change it. */
export interface ManagedUser extends UserWithRoles {
  /** The names of `roles`, in the same order. */
  roleNames: string[]
  holdings: Holdings
  /** The asked roles that exist, locked against changes. */
  asked: GivenRole[]
  /** The other active holders of the role to keep, locked; null where this user does not leave it. */
  otherHolders: number | null
}

/** What else a change of a user is decided on. */
export interface UserQuestion {
  /** The ids of the roles that the user is to have. */
  roles?: readonly string[]
  /** The name of a role that must keep an active holder: when the user has it, and it is not among `roles`. */
  keptRole?: string
}

interface UserColumns {
  document_id: string
  email: string
  email_verified_at: Date | null
  name: string | null
  avatar_url: string | null
  has_password: boolean
  is_actived: boolean
  created_at: Date
  updated_at: Date
  deleted_at: Date | null
}

const COLUMNS = [
  'u.document_id',
  'u.email',
  'u.email_verified_at',
  'u.name',
  'u.avatar_url',
  'u.is_actived',
  'u.created_at',
  'u.updated_at',
  'u.deleted_at',
] as const

/** The hash is not selected. */
const HAS_PASSWORD = 'u.password_hash is not null'

/** The columns above of the user `u`, as SQL. */
const OF_USER = `${COLUMNS.join(', ')}, ${HAS_PASSWORD} as has_password`

const rolesOfUser = (column: string) => `
  array(select r.${column} from user_role ur join role r on r.document_id = ur.role
    where ur."user" = u.document_id order by r.name)`

function toUserRecord(row: UserColumns): UserRecord {
  return {
    id: row.document_id as UserId,
    email: row.email,
    emailVerifiedAt: row.email_verified_at,
    name: row.name,
    avatarUrl: row.avatar_url,
    hasPassword: row.has_password,
    isActived: row.is_actived,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
  }
}

/** Maps a user with its roles. */
export function toUserWithRoles(row: UserColumns & { roles: string[] }): UserWithRoles {
  return { ...toUserRecord(row), roles: row.roles as RoleId[] }
}

/** The users that are not deleted, with their roles, as the base of a list. */
export function selectUsers(db: Database) {
  return db
    .selectFrom('user as u')
    .select([
      ...COLUMNS,
      sql.raw<boolean>(HAS_PASSWORD).as('has_password'),
      sql.raw<string[]>(rolesOfUser('document_id')).as('roles'),
    ])
    .where('u.deleted_at', 'is', null)
}

const WITH_ROLES = `${OF_USER}, ${rolesOfUser('document_id')} as roles`
const LIVING = 'from "user" u where u.document_id = $1 and u.deleted_at is null'
const selectOne = statement<UserColumns & { roles: string[] }>(`select ${WITH_ROLES} ${LIVING}`)

/** The user with this id, not deleted. */
export async function findUser(db: Database, id: string): Promise<UserWithRoles | undefined> {
  const [row] = await selectOne(db, [id])
  return row && toUserWithRoles(row)
}

interface ManagedColumns extends UserColumns, HoldingsRow {
  roles: string[]
  role_names: string[]
  asked: GivenRole[]
  other_holders: number | null
}

/** Each part uses the one before, so that the locks are taken in this order: the user, the asked roles, the role to keep. */
const selectManaged = statement<ManagedColumns>(`
  with u as (
    select * ${LIVING} for no key update
  ), held as (
    select h.* from u ${HOLDINGS_OF_USER}
  ), asked as (
    select r.* from role r, (select count(*) from held) locked
    where r.document_id = any($2) order by r.document_id for share of r
  ), given as (
    select coalesce(json_agg(${GIVEN_ROLE}), '[]') as roles, coalesce(bool_or(r.name = $3), false) as is_kept from asked r
  )
  select ${OF_USER}, h.roles, h.role_names, ${HOLDINGS_COLUMNS}, g.roles as asked,
    case when $3 = any(h.role_names) and not g.is_kept then other_holders(u.document_id, $3) end as other_holders
  from u, held h, given g`)

/**
 * Locks the user with this id, not deleted, until the transaction ends, and reads behind the lock what decides on a change:
 * its holdings, and what `question` asks for. The lock blocks changes of its roles and memberships.
 */
export async function lockUser(
  db: Database,
  id: string,
  { roles = [], keptRole }: UserQuestion = {},
): Promise<ManagedUser | undefined> {
  const [row] = await selectManaged(db, [id, roles, keptRole ?? null])
  if (!row) return undefined
  const { role_names: roleNames, asked, other_holders: otherHolders } = row
  return { ...toUserWithRoles(row), roleNames, holdings: toHoldings(row), asked, otherHolders }
}

const lockWithTokens = statement<HoldingsRow & { sessions: string[]; api_keys: string[] }>(`
  with u as (select document_id ${LIVING} for no key update)
  select ${HOLDINGS_COLUMNS}, t.sessions, t.api_keys from u ${HOLDINGS_OF_USER} cross join lateral lock_tokens(u.document_id) t`)

/** Locks a user that is not deleted, with its unrevoked sessions and API keys, and reads its holdings. */
export async function lockUserTokens(
  db: Database,
  id: string,
): Promise<{ id: UserId; holdings: Holdings; sessions: number; apiKeys: number } | undefined> {
  const [row] = await lockWithTokens(db, [id])
  if (!row) return undefined
  return {
    id: id as UserId,
    holdings: toHoldings(row),
    sessions: row.sessions.length,
    apiKeys: row.api_keys.length,
  }
}

/** The condition of the user `u` with an address in any case, not deleted. */
export const hasEmail = (email: string) => `lower(u.email) = lower(${email}) and u.deleted_at is null`

const selectByEmail = statement<UserColumns>(`select ${OF_USER} from "user" u where ${hasEmail('$1')}`)

/** The user with this address in any case, not deleted. */
export async function findUserByEmail(db: Database, email: string): Promise<UserRecord | undefined> {
  const [row] = await selectByEmail(db, [email])
  return row && toUserRecord(row)
}

/** A user and the hash of the password. For a sign-in only. */
export interface Credentials {
  user: UserRecord
  passwordHash: string | null
}

/** The columns that `toCredentials` reads. */
export interface CredentialColumns extends UserColumns {
  password_hash: string | null
}

/** The columns above of the user `u`, as SQL. */
export const OF_CREDENTIALS = `${OF_USER}, u.password_hash`

/** Maps `OF_CREDENTIALS`. */
export function toCredentials(row: CredentialColumns): Credentials {
  return { user: toUserRecord(row), passwordHash: row.password_hash }
}

const insert = statement<UserColumns & { roles: string[] }>(`
  with u as (
    insert into "user" (document_id, email, email_verified_at, name, avatar_url, password_hash, created_at, updated_at)
    values ($1, $2, $3, $4, $5, $6, $7, $7)
    returning document_id, email, email_verified_at, name, avatar_url, password_hash, is_actived, created_at, updated_at,
      deleted_at
  ), given as (
    insert into user_role ("user", role, created_at)
    select u.document_id, r.document_id, u.created_at from u, role r where r.name = $8 or r.document_id = any($9)
    returning role
  )
  select ${OF_USER},
    array(select r.document_id from given join role r on r.document_id = given.role order by r.name) as roles
  from u`)

/** Inserts a user with the role of this name and those of these ids. Violates `user_email_key` when the address is taken. */
export async function insertUser(
  db: Database,
  row: {
    id: UserId
    email: string
    emailVerifiedAt: Date | null
    name: string | null
    avatarUrl: string | null
    passwordHash: string | null
    roleName: string
    roles: readonly RoleId[]
    now: Date
  },
): Promise<UserWithRoles> {
  const { id, email, emailVerifiedAt, name, avatarUrl, passwordHash, roleName, roles, now } = row
  const values = [id, email, emailVerifiedAt, name, avatarUrl, passwordHash, now, roleName, roles]
  const [inserted] = (await insert(db, values)) as [UserColumns & { roles: string[] }]
  return toUserWithRoles(inserted)
}

const insertAtEnd = closingStatement(`
  new_user as (
    insert into "user" (document_id, email, name, password_hash, created_at, updated_at)
    values ($1, $2, $3, $4, $5, $5) returning document_id
  ), new_user_roles as (
    insert into user_role ("user", role, created_at) select u.document_id, x.role, $5 from new_user u, unnest($6::uuid[]) x (role))`)

/**
 * Inserts a user with these roles, which are locked, with the last statement of the transaction. `explain` finds the problem
 * of a violated `user_email_key`: the address is taken.
 */
export async function insertCheckedUser(
  db: Database,
  row: { id: UserId; email: string; name: string | null; passwordHash: string | null; roles: RoleId[]; now: Date },
  explain: (error: unknown) => unknown,
): Promise<UserWithRoles> {
  const { id, email, name, passwordHash, roles, now } = row
  await insertAtEnd(db, [id, email, name, passwordHash, now, roles], { explain })
  return {
    id,
    email,
    emailVerifiedAt: null,
    name,
    avatarUrl: null,
    hasPassword: passwordHash !== null,
    isActived: true,
    roles,
    createdAt: now,
    updatedAt: now,
    deletedAt: null,
  }
}

/** The columns of a user that may change. */
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

/**
 * Changes the columns of `change`, with the last statement of the transaction. `explain` finds the problem of a violated
 * `user_email_key`: the address is taken.
 */
export async function updateUser(
  db: Database,
  id: UserId,
  change: UserChange,
  explain?: (error: unknown) => unknown,
): Promise<void> {
  const { sql: text, parameters: values } = db
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
    .compile()
  const parts = { name: text, text: `changed_user as (${text})`, values }
  const isNoted = change.isActived !== undefined || change.deletedAt !== undefined
  await writeAtEnd(db, { parts, ...(isNoted && { notes: `u:${id}` }), ...(explain && { explain }) })
}

/** The row of a user behind a change. Pure. */
export function applyUserChange(user: UserWithRoles, change: UserChange): UserWithRoles {
  const { passwordHash, now, ...columns } = change
  return { ...user, ...columns, ...(passwordHash !== undefined && { hasPassword: true }), updatedAt: now }
}
