import type { AccountId, Id, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'

export type ContractId = Id<'contract'>
export type ContractStatus = 'draft' | 'active' | 'ended'

/** A row of the `contract` table. */
export interface ContractRecord {
  id: ContractId
  account: AccountId
  name: string
  status: ContractStatus
  createdBy: UserId | null
  updatedBy: UserId | null
  createdAt: Date
  updatedAt: Date
  deletedAt: Date | null
}

interface ContractColumns {
  document_id: string
  account: string
  name: string
  status: string
  created_by: string | null
  updated_by: string | null
  created_at: Date
  updated_at: Date
  deleted_at: Date | null
}

/** Maps a row of the `contract` table. */
export function toContractRecord(row: ContractColumns): ContractRecord {
  return {
    id: row.document_id as ContractId,
    account: row.account as AccountId,
    name: row.name,
    status: row.status as ContractStatus,
    createdBy: row.created_by as UserId | null,
    updatedBy: row.updated_by as UserId | null,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
  }
}

/** The living contracts, as the base of a list; with `accounts`, those of these owners only. */
export function selectContracts(db: Database, accounts: readonly AccountId[] | 'all') {
  const living = db.selectFrom('contract').where('deleted_at', 'is', null)
  if (accounts === 'all') return living
  return living.where((eb) => eb('account', '=', eb.fn.any(eb.val([...accounts]))))
}

/** The living contract with this id; `lock` keeps it from changing until the transaction ends. */
export async function findContract(
  db: Database,
  id: string,
  options: { lock?: boolean } = {},
): Promise<ContractRecord | undefined> {
  let query = db.selectFrom('contract').selectAll().where('document_id', '=', id).where('deleted_at', 'is', null)
  if (options.lock) query = query.forUpdate()
  const row = await query.executeTakeFirst()
  return row && toContractRecord(row)
}

/** Inserts a contract. */
export async function insertContract(
  db: Database,
  row: { id: ContractId; account: AccountId; name: string; status: ContractStatus; by: UserId; now: Date },
): Promise<ContractRecord> {
  const inserted = await db
    .insertInto('contract')
    .values({
      document_id: row.id,
      account: row.account,
      name: row.name,
      status: row.status,
      created_by: row.by,
      updated_by: row.by,
      created_at: row.now,
      updated_at: row.now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toContractRecord(inserted)
}

/** Changes what `change` names. */
export async function updateContract(
  db: Database,
  id: ContractId,
  change: { name?: string; status?: ContractStatus; deletedAt?: Date; by: UserId; now: Date },
): Promise<ContractRecord> {
  const updated = await db
    .updateTable('contract')
    .set({
      ...(change.name !== undefined && { name: change.name }),
      ...(change.status !== undefined && { status: change.status }),
      ...(change.deletedAt !== undefined && { deleted_at: change.deletedAt }),
      updated_by: change.by,
      updated_at: change.now,
    })
    .where('document_id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  return toContractRecord(updated)
}
