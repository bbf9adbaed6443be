import type { Selectable } from 'kysely'
import type { AccountId, Id, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { AccountMember } from '../postgres/tables.generated.ts'

export type AccountMemberId = Id<'account member'>

/** A row of the `account_member` table. */
export interface AccountMemberRecord {
  id: AccountMemberId
  account: AccountId
  userId: UserId
  createdAt: Date
  updatedAt: Date
}

/** A member with how a person recognises them. */
export interface NamedAccountMember extends AccountMemberRecord {
  /** Null for a reader who may not see the person. */
  email: string | null
  name: string | null
}

/** Maps a row of the `account_member` table. */
export function toAccountMemberRecord(row: Selectable<AccountMember>): AccountMemberRecord {
  return {
    id: row.document_id as AccountMemberId,
    account: row.account as AccountId,
    userId: row.user as UserId,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** The living users' memberships of an account, as the base of a list. */
export function selectAccountMembers(db: Database, account: AccountId) {
  return db
    .selectFrom('account_member')
    .where('account', '=', account)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('user')
          .select('user.document_id')
          .whereRef('user.document_id', '=', 'account_member.user')
          .where('user.deleted_at', 'is', null),
      ),
    )
}

/** Adds to each member how a person recognises them. */
export async function withUserNames(
  db: Database,
  members: readonly AccountMemberRecord[],
): Promise<NamedAccountMember[]> {
  if (members.length === 0) return []
  const ids = members.map(({ userId }) => userId)
  const rows = await db
    .selectFrom('user')
    .select(['document_id', 'email', 'name'])
    .where('document_id', 'in', ids)
    .execute()
  const users = new Map(rows.map((row) => [row.document_id, row]))
  return members.map((member) => {
    const user = users.get(member.userId)
    return { ...member, email: user?.email ?? null, name: user?.name ?? null }
  })
}

/** Whether there is a living user with this id, locked until the transaction ends so that its roles stay what they are. */
export async function lockLivingUser(db: Database, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('user')
    .select('document_id')
    .where('document_id', '=', id)
    .where('deleted_at', 'is', null)
    .forNoKeyUpdate()
    .executeTakeFirst()
  return row !== undefined
}

/** Adds a user to an account. Undefined when the user is a member already. */
export async function insertAccountMember(
  db: Database,
  row: { id: AccountMemberId; account: AccountId; userId: UserId; now: Date },
): Promise<AccountMemberRecord | undefined> {
  const inserted = await db
    .insertInto('account_member')
    .values({ document_id: row.id, account: row.account, user: row.userId, created_at: row.now, updated_at: row.now })
    .onConflict((conflict) => conflict.columns(['account', 'user']).doNothing())
    .returningAll()
    .executeTakeFirst()
  return inserted && toAccountMemberRecord(inserted)
}

/** Removes a user from an account. Undefined when the user is no member. */
export async function deleteAccountMember(
  db: Database,
  account: AccountId,
  userId: string,
): Promise<AccountMemberRecord | undefined> {
  const row = await db
    .deleteFrom('account_member')
    .where('account', '=', account)
    .where('user', '=', userId)
    .returningAll()
    .executeTakeFirst()
  return row && toAccountMemberRecord(row)
}
