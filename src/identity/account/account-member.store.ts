import { sql } from 'kysely'
import type { AccountId, Id, UserId } from '../../base/id.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { aheadStatement, closingStatement, type Joined, statement } from '../../postgres/statement/statement.ts'
import { HOLDINGS, HOLDINGS_OF_USER } from '../access/delegation.store.ts'
import type { Holdings } from '../access/delegation.ts'
import { GIVEN_ROLE, type GivenRole, type RoleId } from '../access/role.store.ts'
import { AccountMemberRow } from './account.schema.ts'

export type AccountMemberId = Id<'account member'>

/** A membership without its roles. */
const member = defineRecord('account_member', ['document_id', 'account', 'user', 'created_at', 'updated_at'], {
  user: 'userId',
})

export interface AccountMemberRecord extends RecordOf<typeof member> {
  /** The account-scoped roles of this membership. */
  roles: RoleId[]
}

/** A member with e-mail address and name. */
export interface NamedAccountMember extends AccountMemberRecord {
  /** Null for a reader who may not see the user. */
  email: string | null
  name: string | null
}

const toStoredRow = wireOf(member, AccountMemberRow)

/** Maps a member for the wire. */
export function toAccountMemberRow(named: NamedAccountMember): Static<typeof AccountMemberRow> {
  const { email, name, roles } = named
  return { ...toStoredRow(named), email, name, roles }
}

/** The roles of a row of `account_member`. */
const ROLES = `array(select mr.role from account_member_role mr
  where mr.member = account_member.document_id order by mr.role)`

/** The memberships of an account, without deleted users, as the base of a list. Empty for an account that does not exist. */
export function selectAccountMembers(db: Database, account: string) {
  const members = db
    .selectFrom('account_member')
    .innerJoin('user', 'user.document_id', 'account_member.user')
    .innerJoin('account', 'account.document_id', 'account_member.account')
  return selectRecord(members, member, 'account_member')
    .select([sql.raw<RoleId[]>(ROLES).as('roles'), 'user.email', 'user.name'])
    .where('account_member.account', '=', account)
    .where('account.deleted_at', 'is', null)
    .where('user.deleted_at', 'is', null)
}

/** The users among these who are members of the account. */
export const listMembersAmong = statement<{ user: UserId }, { account: string; users: readonly string[] }, UserId>(
  `select m."user" from account_member m where m.account = $account and m."user" = any($users::uuid[])`,
  ({ user }) => user,
)

/** The facts that decide whether a user may be added to an account, or removed from it. */
export interface Candidate {
  /** Whether the account exists. */
  hasAccount: boolean
  /** Whether the user exists, not deleted. */
  isLiving: boolean
  email: string | null
  name: string | null
  holdings: Holdings
  hasPassword: boolean
  isEmailVerified: boolean
  /** Whether a connection of another account knows the user. */
  isConnectedElsewhere: boolean
  /** Whether the account signs members with the address of this user in by a connection alone. */
  isClosedThere: boolean
  /** Whether the only account that the user belongs to signs it in by a connection alone. */
  isClosedElsewhere: boolean
  /** The membership of the user in the account. */
  member: AccountMemberRecord | undefined
  /** The existing requested roles, and those of the membership, locked against changes. */
  asked: GivenRole[]
}

/** The membership has null for each member where there is none. */
type CandidateRow = Omit<Candidate, 'member'> & Joined<Omit<AccountMemberRecord, 'account' | 'userId'>>

/** Each part uses the one before, so that the locks are taken in this order: the account, the user, the roles. */
const lockAll = statement<CandidateRow, { account: string; userId: string; roles: readonly string[] }>(`
  with a as (
    select document_id from account where document_id = $account and deleted_at is null for share
  ), u as (
    select x.* from "user" x, (select count(*) from a) locked where x.document_id = $userId for no key update of x
  ), held as (
    select h.*, m.* from u ${HOLDINGS_OF_USER} left join lateral membership_of(u.document_id, $account) m on true
  ), asked as (
    select r.* from role r, (select member_roles from held) locked
    where r.document_id = any($roles::uuid[] || locked.member_roles) order by r.document_id for share of r
  ), given as (
    select coalesce(json_agg(${GIVEN_ROLE} order by r.name), '[]') as roles from asked r
  )
  select exists (select from a) as "hasAccount", u.document_id is not null and u.deleted_at is null as "isLiving",
    u.email, u.name, u.password_hash is not null as "hasPassword", u.email_verified_at is not null as "isEmailVerified",
    ${HOLDINGS}, is_connected_elsewhere(u.document_id, $account) as "isConnectedElsewhere",
    closes_ways_in($account, u.document_id) as "isClosedThere",
    required_connection_of(u.document_id, u.email) is not null as "isClosedElsewhere",
    h.member as id, h.member_roles as roles, h.member_created_at as "createdAt", h.member_updated_at as "updatedAt",
    g.roles as asked
  from given g left join u on true left join held h on true`)

/**
 * Locks account and user until the transaction ends, and reads behind the locks the facts for a membership with the
 * roles of these ids. They block a deletion of the account and changes of the user's roles and memberships.
 */
export async function lockCandidate(
  db: Database,
  { account, userId, roles }: { account: string; userId: string; roles: readonly string[] },
): Promise<Candidate> {
  const [row] = (await lockAll(db, { account, userId, roles })) as [CandidateRow]
  const { id, roles: given, createdAt, updatedAt, ...candidate } = row
  const ids = { account: account as AccountId, userId: userId as UserId }
  const found = { id, ...ids, roles: given, createdAt, updatedAt }
  return { ...candidate, member: id === null ? undefined : (found as AccountMemberRecord) }
}

/** A new membership. */
interface NewMember {
  id: AccountMemberId
  account: AccountId
  userId: UserId
  now: Date
}

const INSERT = `
  insert into account_member (document_id, account, "user", created_at, updated_at)
  values ($id, $account, $userId, $now, $now)`
/** Adds the first member to a new account; sent with the next statement of the transaction. */
export const insertFirstMember = aheadStatement<NewMember>(INSERT)
const insertAtEnd = closingStatement<NewMember & { roles: readonly RoleId[] }>(`
  new_member as (${INSERT} returning document_id),
  new_member_roles as (
    insert into account_member_role (member, role, created_at)
    select m.document_id, x.role, $now from new_member m, unnest($roles::uuid[]) as x (role))`)

/** Adds a user who is not a member to an account, with these locked roles. */
export async function insertAccountMember(
  db: Database,
  row: NewMember & { roles: RoleId[] },
): Promise<AccountMemberRecord> {
  const { id, account, userId, roles, now } = row
  await insertAtEnd(db, row, { invalidations: `u:${userId}` })
  return { id, account, userId, roles, createdAt: now, updatedAt: now }
}

const replaceRoles = closingStatement<{ member: AccountMemberId; roles: readonly RoleId[]; now: Date }>(`
  changed_member as (update account_member set updated_at = $now where document_id = $member),
  taken_member_roles as (delete from account_member_role where member = $member and not role = any($roles::uuid[])),
  given_member_roles as (
    insert into account_member_role (member, role, created_at)
    select $member, x.role, $now from unnest($roles::uuid[]) as x (role)
    on conflict do nothing)`)

/** Replaces the roles of a locked membership, with the last statement of the transaction. */
export async function replaceMemberRoles(
  db: Database,
  input: { member: AccountMemberRecord; roles: readonly RoleId[]; now: Date },
): Promise<void> {
  const { member, roles, now } = input
  await replaceRoles(db, { member: member.id, roles, now }, { invalidations: `u:${member.userId}` })
}
