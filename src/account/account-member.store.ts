import { sql } from 'kysely'
import { HOLDINGS_COLUMNS, type HoldingsRow, toHoldings } from '../access/delegation.store.ts'
import type { Holdings } from '../access/delegation.ts'
import type { RoleId } from '../access/role.store.ts'
import type { AccountId, Id, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { aheadStatement, statement } from '../postgres/statement.ts'

export type AccountMemberId = Id<'account member'>

/** A row of the `account_member` table. */
export interface AccountMemberRecord {
  id: AccountMemberId
  account: AccountId
  userId: UserId
  /** The account-scoped roles of this membership. */
  roles: RoleId[]
  createdAt: Date
  updatedAt: Date
}

/** A member with e-mail address and name. */
export interface NamedAccountMember extends AccountMemberRecord {
  /** Null for a reader who may not see the user. */
  email: string | null
  name: string | null
}

interface MemberColumns {
  document_id: string
  account: string
  user: string
  roles: string[]
  created_at: Date
  updated_at: Date
}

/** The roles of a row of `account_member`. */
const ROLES = `array(select mr.role from account_member_role mr
  where mr.member = account_member.document_id order by mr.role)`
const ROLES_COLUMN = `${ROLES} as roles`

/** The columns above, as SQL. */
const RETURNED = `document_id, account, "user", created_at, updated_at, ${ROLES_COLUMN}`

function toAccountMemberRecord(row: MemberColumns): AccountMemberRecord {
  return {
    id: row.document_id as AccountMemberId,
    account: row.account as AccountId,
    userId: row.user as UserId,
    roles: row.roles as RoleId[],
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** Maps a row of `selectAccountMembers`. */
export function toNamedMember(row: MemberColumns & { email: string; name: string | null }): NamedAccountMember {
  return { ...toAccountMemberRecord(row), email: row.email, name: row.name }
}

/** The memberships of an account, without deleted users, as the base of a list. Empty for an account that does not exist. */
export function selectAccountMembers(db: Database, account: string) {
  return db
    .selectFrom('account_member')
    .innerJoin('user', 'user.document_id', 'account_member.user')
    .innerJoin('account', 'account.document_id', 'account_member.account')
    .select([
      'account_member.document_id',
      'account_member.account',
      'account_member.user',
      'account_member.created_at',
      'account_member.updated_at',
      sql.raw<string[]>(ROLES).as('roles'),
      'user.email',
      'user.name',
    ])
    .where('account_member.account', '=', account)
    .where('account.deleted_at', 'is', null)
    .where('user.deleted_at', 'is', null)
}

/** The facts that decide whether a user may be added to an account, or removed from it. */
export interface Candidate {
  /** Whether the account exists. */
  hasAccount: boolean
  /** Whether the user exists, not deleted. */
  isLiving: boolean
  email: string | null
  name: string | null
  holdings: Holdings
}

interface CandidateColumns extends HoldingsRow {
  has_account: boolean
  is_living: boolean
  email: string | null
  name: string | null
}

/** Locks the account before the user: one order prevents deadlocks. */
const lockBoth = aheadStatement(`
  select (select true from account where document_id = $1 and deleted_at is null for share),
    (select true from "user" where document_id = $2 and deleted_at is null for no key update)`)

const selectCandidate = statement<CandidateColumns>(`
  select exists (select from account where document_id = $1 and deleted_at is null) as has_account,
    u.document_id is not null and u.deleted_at is null as is_living, u.email, u.name, ${HOLDINGS_COLUMNS}
  from (select $2::uuid as id) asked left join "user" u on u.document_id = asked.id`)

/**
 * Locks account and user until the transaction ends, then reads what decides on a membership. The locks block a deletion
 * of the account and changes of the user's roles and memberships.
 */
export async function lockCandidate(
  db: Database,
  { account, userId }: { account: string; userId: string },
): Promise<Candidate> {
  await lockBoth(db, [account, userId])
  const [row] = (await selectCandidate(db, [account, userId])) as [CandidateColumns]
  const { has_account: hasAccount, is_living: isLiving, email, name } = row
  return { hasAccount, isLiving, email, name, holdings: toHoldings(row) }
}

const insert = statement<MemberColumns>(`
  insert into account_member (document_id, account, "user", created_at, updated_at) values ($1, $2, $3, $4, $4)
  on conflict (account, "user") do nothing returning ${RETURNED}`)

/** Adds a user to an account. Undefined when the user is a member already. */
export async function insertAccountMember(
  db: Database,
  row: { id: AccountMemberId; account: AccountId; userId: UserId; now: Date },
): Promise<AccountMemberRecord | undefined> {
  const [inserted] = await insert(db, [row.id, row.account, row.userId, row.now])
  return inserted && toAccountMemberRecord(inserted)
}

const remove = statement<MemberColumns>(
  `delete from account_member where account = $1 and "user" = $2 returning ${RETURNED}`,
)

/** Removes a user from an account. Undefined when the user is not a member. */
export async function deleteAccountMember(
  db: Database,
  account: AccountId,
  userId: UserId,
): Promise<AccountMemberRecord | undefined> {
  const [row] = await remove(db, [account, userId])
  return row && toAccountMemberRecord(row)
}

const selectOne = statement<MemberColumns>(`select ${RETURNED} from account_member where account = $1 and "user" = $2`)

/** The membership of a user in an account. */
export async function findAccountMember(
  db: Database,
  account: AccountId,
  userId: UserId,
): Promise<AccountMemberRecord | undefined> {
  const [row] = await selectOne(db, [account, userId])
  return row && toAccountMemberRecord(row)
}

const replaceRoles = aheadStatement(`
  with taken as (delete from account_member_role where member = $1 and not role = any($2::uuid[])),
    changed as (update account_member set updated_at = $3 where document_id = $1)
  insert into account_member_role (member, role, created_at) select $1, x.role, $3 from unnest($2::uuid[]) as x (role)
  on conflict do nothing`)

/** Replaces the roles of a membership; sent with the next statement of the transaction. */
export async function replaceMemberRoles(
  db: Database,
  input: { member: AccountMemberId; roles: readonly RoleId[]; now: Date },
): Promise<void> {
  await replaceRoles(db, [input.member, input.roles, input.now])
}
