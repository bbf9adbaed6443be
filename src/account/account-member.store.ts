import { HOLDINGS_COLUMNS, type HoldingsRow, toHoldings } from '../access/delegation.store.ts'
import type { Holdings } from '../access/delegation.ts'
import type { AccountId, Id, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { aheadStatement, closingStatement, statement } from '../postgres/statement.ts'

export type AccountMemberId = Id<'account member'>

/** A row of the `account_member` table. */
export interface AccountMemberRecord {
  id: AccountMemberId
  account: AccountId
  userId: UserId
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
  created_at: Date
  updated_at: Date
}

function toAccountMemberRecord(row: MemberColumns): AccountMemberRecord {
  return {
    id: row.document_id as AccountMemberId,
    account: row.account as AccountId,
    userId: row.user as UserId,
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
  /** The membership of the user in the account. */
  member: AccountMemberRecord | undefined
}

interface CandidateColumns extends HoldingsRow {
  has_account: boolean
  is_living: boolean
  email: string | null
  name: string | null
  member: string | null
  member_created_at: Date
  member_updated_at: Date
}

/** The account is locked before the user: one order prevents deadlocks. */
const lockBoth = statement<CandidateColumns>(`
  with a as (
    select document_id from account where document_id = $1 and deleted_at is null for share
  ), u as (
    select x.* from "user" x, (select count(*) from a) locked where x.document_id = $2 for no key update of x
  )
  select exists (select from a) as has_account, u.document_id is not null and u.deleted_at is null as is_living,
    u.email, u.name, ${HOLDINGS_COLUMNS},
    m.document_id as member, m.created_at as member_created_at, m.updated_at as member_updated_at
  from (select) one left join u on true
  left join lateral user_holdings(u.document_id) h on true
  left join lateral membership_of(u.document_id, $1) m on true`)

/**
 * Locks account and user until the transaction ends, and reads behind the locks what decides on a membership. They block a
 * deletion of the account and changes of the user's roles and memberships.
 */
export async function lockCandidate(
  db: Database,
  { account, userId }: { account: string; userId: string },
): Promise<Candidate> {
  const [row] = (await lockBoth(db, [account, userId])) as [CandidateColumns]
  const { has_account: hasAccount, is_living: isLiving, email, name } = row
  const times = { created_at: row.member_created_at, updated_at: row.member_updated_at }
  const member =
    row.member === null
      ? undefined
      : toAccountMemberRecord({ document_id: row.member, account, user: userId, ...times })
  return { hasAccount, isLiving, email, name, holdings: toHoldings(row), member }
}

/** A membership that is to be. */
interface NewMember {
  id: AccountMemberId
  account: AccountId
  userId: UserId
  now: Date
}

const INSERT = `
  insert into account_member (document_id, account, "user", created_at, updated_at) values ($1, $2, $3, $4, $4)`
const insert = aheadStatement(INSERT)
const insertAtEnd = closingStatement(`new_member as (${INSERT})`)

/** Adds the first member to a new account; sent with the next statement of the transaction. */
export async function insertFirstMember(db: Database, { id, account, userId, now }: NewMember): Promise<void> {
  await insert(db, [id, account, userId, now])
}

/** Adds a user who is no member to an account, with the last statement of the transaction. */
export async function insertAccountMember(db: Database, row: NewMember): Promise<AccountMemberRecord> {
  const { id, account, userId, now } = row
  await insertAtEnd(db, [id, account, userId, now], { notes: `u:${userId}` })
  return { id, account, userId, createdAt: now, updatedAt: now }
}

const remove = closingStatement('removed_member as (delete from account_member where document_id = $1)')

/** Removes a user from an account, with the last statement of the transaction. */
export async function deleteAccountMember(db: Database, member: AccountMemberRecord): Promise<void> {
  await remove(db, [member.id], { notes: `u:${member.userId}` })
}
