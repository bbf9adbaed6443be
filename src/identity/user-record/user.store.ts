import { type SqlBool, sql } from 'kysely'
import type { UserId } from '../../base/id.ts'
import { buildCondition, type ListFilter } from '../../http/listing/filter.ts'
import { writeAtEnd } from '../../postgres/statement/closing.ts'
import { asPart, columnChange } from '../../postgres/statement/column-change.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { closingStatement, rowStatement, soleRowStatement } from '../../postgres/statement/statement.ts'
import type { RoleId } from '../access/role.store.ts'
import { foldEmail } from './email-key.ts'

/** The columns of a user, without the hash of its password. */
export const user = defineRecord('user', [
  'document_id',
  'email',
  'email_verified_at',
  'name',
  'avatar_url',
  'is_actived',
  'last_sign_in_at',
  'created_at',
  'updated_at',
  'deleted_at',
])
export type UserRecord = RecordOf<typeof user> & { hasPassword: boolean }

/** A user with its roles, in the order of their names. */
export interface UserWithRoles extends UserRecord {
  roles: RoleId[]
}

/** The hash is not selected. */
const HAS_PASSWORD = 'u.password_hash is not null'

/** The columns above of the user `u`, as SQL. */
export const OF_USER = `${user.members('u')}, ${HAS_PASSWORD} as "hasPassword"`

/** An array of one column of the roles of the user `u`, in the order of their names. */
export const rolesOfUser = (column: string) => `
  array(select r.${column} from user_role ur join role r on r.document_id = ur.role
    where ur."user" = u.document_id order by r.name)`

/** Memberships of a user that a list shows, the longest first. */
export const ACCOUNTS_SHOWN = 10

/** A user as a list shows it. */
export interface ListedUser extends UserWithRoles {
  providers: string[]
  /** One more than `ACCOUNTS_SHOWN`, where there are more. */
  accounts: { document_id: string; name: string }[]
}

const PROVIDERS = `
  array(select i.provider from identity i where i."user" = u.document_id order by i.provider)`
const ACCOUNTS = `
  array(select json_build_object('document_id', a.document_id, 'name', a.name)
    from account_member m join account a on a.document_id = m.account and a.deleted_at is null
    where m."user" = u.document_id order by m.created_at limit ${ACCOUNTS_SHOWN + 1})`

/** Conditions of a user by rows about it. Each reads those of one user or of one value, by index. */
export const hasRole = buildMembership('user_role', 'role', 'uuid')
export const isMemberOf = buildMembership('account_member', 'account', 'uuid')
export const signsInWith = buildMembership('identity', 'provider', 'text')

function buildMembership(table: string, column: string, type: 'uuid' | 'text') {
  return (filter: ListFilter) => {
    const isOf = buildCondition(filter, sql.ref(`x.${column}`), type)
    return sql<SqlBool>`u.document_id in (select x."user" from ${sql.table(table)} x where ${isOf})`
  }
}

/** The users that are not deleted, with their roles, as the base of a list. */
export function selectUsers(db: Database) {
  return selectRecord(db.selectFrom('user as u'), user, 'u')
    .select([
      sql.raw<boolean>(HAS_PASSWORD).as('hasPassword'),
      sql.raw<RoleId[]>(rolesOfUser('document_id')).as('roles'),
      sql.raw<string[]>(PROVIDERS).as('providers'),
      sql.raw<ListedUser['accounts']>(ACCOUNTS).as('accounts'),
    ])
    .where('u.deleted_at', 'is', null)
}

const WITH_ROLES = `${OF_USER}, ${rolesOfUser('document_id')} as roles`
/** The user `u` with the id `$id`, not deleted. */
export const LIVING = 'from "user" u where u.document_id = $id and u.deleted_at is null'
/** The user with this id, not deleted. */
export const findUser = rowStatement<UserWithRoles, { id: string }>(`select ${WITH_ROLES} ${LIVING}`)

/** The condition of the user `u` with an address in any case, not deleted (docs/contract/identity.md#e-mail-addresses). */
export const hasEmail = (email: string) =>
  `email_key(u.email) = email_key(${email}) and u.deleted_at is null and not u.is_email_shadowed`

/**
 * Whether a user `u` has one of these addresses in any case; a shadowed one is found by its own spelling alone. Each part
 * reads by an index of its own, where a plan may not join two.
 */
export const hasOneOfEmails = (_column: unknown, emails: readonly string[]) => sql<SqlBool>`u.document_id in (
    select x.document_id from "user" x where x.email = any(${emails}::text[])
    union all select x.document_id from "user" x
      where email_key(x.email) = any(${emails.map(foldEmail)}::text[]) and x.deleted_at is null and not x.is_email_shadowed)`

/** The user with this address in any case, not deleted. */
export const findUserOfAddress = rowStatement<UserRecord, { email: string }>(
  `select ${OF_USER} from "user" u where ${hasEmail('$email')}`,
)

/** A user and the hash of the password. For a sign-in only. */
export interface Credentials {
  user: UserRecord
  passwordHash: string | null
  /** Time of the last revocation of all access of the user (docs/contract/sessions.md#what-ends-what). */
  accessEndedAt: Date | null
}

/** A row with `OF_CREDENTIALS`. */
export type CredentialRow = UserRecord & Omit<Credentials, 'user'>

/** The columns above of the user `u`, as SQL. */
export const OF_CREDENTIALS = `${OF_USER}, u.password_hash as "passwordHash", u.access_ended_at as "accessEndedAt"`

/** Maps `OF_CREDENTIALS`. */
export function toCredentials({ passwordHash, accessEndedAt, ...user }: CredentialRow): Credentials {
  return { user, passwordHash, accessEndedAt }
}

/** A new user, with the role of this name and those of these ids. */
export interface NewUser {
  id: UserId
  email: string
  emailVerifiedAt: Date | null
  name: string | null
  avatarUrl: string | null
  passwordHash: string | null
  roleName: string
  roles: readonly RoleId[]
  now: Date
}

/** Inserts a user with the role of this name and those of these ids. Violates `user_email_key` when the address is taken. */
export const insertUser = soleRowStatement<UserWithRoles, NewUser>(`
  with u as (
    insert into "user" (document_id, email, email_verified_at, name, avatar_url, password_hash, created_at, updated_at)
    values ($id, $email, $emailVerifiedAt, $name, $avatarUrl, $passwordHash, $now, $now)
    returning ${user.select()}, password_hash
  ), given as (
    insert into user_role ("user", role, created_at)
    select u.document_id, r.document_id, u.created_at from u, role r
    where r.name = $roleName or r.document_id = any($roles)
    returning role
  )
  select ${OF_USER},
    array(select r.document_id from given join role r on r.document_id = given.role order by r.name) as roles
  from u`)

/** A new user, with the roles of these ids alone. */
interface NewCheckedUser {
  id: UserId
  email: string
  name: string | null
  passwordHash: string | null
  roles: RoleId[]
  now: Date
}

const insertAtEnd = closingStatement<NewCheckedUser>(`
  new_user as (
    insert into "user" (document_id, email, name, password_hash, created_at, updated_at)
    values ($id, $email, $name, $passwordHash, $now, $now) returning document_id
  ), new_user_roles as (
    insert into user_role ("user", role, created_at)
    select u.document_id, x.role, $now from new_user u, unnest($roles::uuid[]) x (role))`)

/** Inserts a user with these roles, which are locked. `explain` finds the problem of an address that is taken. */
export async function insertCheckedUser(
  db: Database,
  row: NewCheckedUser,
  explain: (error: unknown) => unknown,
): Promise<UserWithRoles> {
  const { id, email, name, passwordHash, roles, now } = row
  await insertAtEnd(db, row, { invalidations: `u:${id}`, explain })
  return {
    id,
    email,
    emailVerifiedAt: null,
    name,
    avatarUrl: null,
    hasPassword: passwordHash !== null,
    isActived: true,
    lastSignInAt: null,
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

const changeColumns = columnChange<UserChange>('"user"', {
  email: 'email = $email',
  emailVerifiedAt: 'email_verified_at = $emailVerifiedAt',
  name: 'name = $name',
  avatarUrl: 'avatar_url = $avatarUrl',
  passwordHash: 'password_hash = $passwordHash',
  isActived: 'is_actived = $isActived',
  // The row stays for those who refer to it, and no password opens it again.
  deletedAt: 'deleted_at = $deletedAt, password_hash = null',
  now: 'updated_at = $now',
})

/** Changes the columns of `change` at the end. `explain` finds the problem of an address that is taken. */
export async function updateUser(
  db: Database,
  id: UserId,
  change: UserChange,
  explain?: (error: unknown) => unknown,
): Promise<void> {
  const parts = asPart('changed_user', changeColumns(id, change))
  const isInvalidating = change.isActived !== undefined || change.deletedAt !== undefined
  await writeAtEnd(db, { parts, ...(isInvalidating && { invalidations: `u:${id}` }), ...(explain && { explain }) })
}

/** The row of a user after a change. Pure. */
export function applyUserChange(before: UserWithRoles, change: UserChange): UserWithRoles {
  const { passwordHash, now, ...columns } = change
  return { ...before, ...columns, ...(passwordHash !== undefined && { hasPassword: true }), updatedAt: now }
}
