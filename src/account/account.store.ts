import type { Selectable } from 'kysely'
import type { AccountId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { Account } from '../postgres/tables.generated.ts'

/** A row of the `account` table. */
export interface AccountRecord {
  id: AccountId
  name: string
  createdBy: UserId | null
  updatedBy: UserId | null
  createdAt: Date
  updatedAt: Date
  deletedAt: Date | null
}

/** Maps a row of the `account` table. */
export function toAccountRecord(row: Selectable<Account>): AccountRecord {
  return {
    id: row.document_id as AccountId,
    name: row.name,
    createdBy: row.created_by as UserId | null,
    updatedBy: row.updated_by as UserId | null,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
  }
}

/** The living accounts, as the base of a list; with `ids`, only these. */
export function selectAccounts(db: Database, ids: readonly AccountId[] | 'all') {
  const living = db.selectFrom('account').where('deleted_at', 'is', null)
  if (ids === 'all') return living
  return living.where((eb) => eb('document_id', '=', eb.fn.any(eb.val([...ids]))))
}

/**
 * How an account is locked until the transaction ends: `change` lets nobody else change or delete it, `keep` lets nobody
 * change or delete it while others may keep it too.
 */
export type AccountLock = 'change' | 'keep'

/** The living account with this id. */
export async function findAccount(
  db: Database,
  id: string,
  options: { lock?: AccountLock } = {},
): Promise<AccountRecord | undefined> {
  let query = db.selectFrom('account').selectAll().where('document_id', '=', id).where('deleted_at', 'is', null)
  if (options.lock === 'change') query = query.forNoKeyUpdate()
  if (options.lock === 'keep') query = query.forShare()
  const row = await query.executeTakeFirst()
  return row && toAccountRecord(row)
}

/** Inserts an account. */
export async function insertAccount(
  db: Database,
  row: { id: AccountId; name: string; by: UserId | null; now: Date },
): Promise<AccountRecord> {
  const inserted = await db
    .insertInto('account')
    .values({
      document_id: row.id,
      name: row.name,
      created_by: row.by,
      updated_by: row.by,
      created_at: row.now,
      updated_at: row.now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toAccountRecord(inserted)
}

/** Changes what `change` names. */
export async function updateAccount(
  db: Database,
  id: AccountId,
  change: { name?: string; deletedAt?: Date; by: UserId; now: Date },
): Promise<AccountRecord> {
  const updated = await db
    .updateTable('account')
    .set({
      ...(change.name !== undefined && { name: change.name }),
      ...(change.deletedAt !== undefined && { deleted_at: change.deletedAt }),
      updated_by: change.by,
      updated_at: change.now,
    })
    .where('document_id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  return toAccountRecord(updated)
}
