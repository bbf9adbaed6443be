import { sql } from 'kysely'
import type { PermissionScope } from '../http/caller.ts'
import type { AccountId, Id, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { statement } from '../postgres/statement.ts'

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

const COLUMNS = [
  'document_id',
  'account',
  'name',
  'status',
  'created_by',
  'updated_by',
  'created_at',
  'updated_at',
  'deleted_at',
] as const

/** The living contracts that `scope` reaches, as the base of a list. */
export function selectContracts(db: Database, scope: PermissionScope) {
  const living = db.selectFrom('contract').where('deleted_at', 'is', null)
  return scope === 'all' ? living : living.where((eb) => eb('account', '=', eb.fn.any(eb.val([...scope]))))
}

const FIND = `select ${COLUMNS.join(', ')} from contract where document_id = $1 and deleted_at is null`
const selectOne = statement<ContractColumns>(FIND)
const selectOneOf = statement<ContractColumns>(`${FIND} and account = any($2)`)

/** The living contract with this id, when `scope` reaches it. */
export async function findContract(
  db: Database,
  id: string,
  scope: PermissionScope,
): Promise<ContractRecord | undefined> {
  const [row] = scope === 'all' ? await selectOne(db, [id]) : await selectOneOf(db, [id, scope])
  return row && toContractRecord(row)
}

/** Inserts a contract; undefined when its account does not exist. */
export async function insertContract(
  db: Database,
  row: { id: ContractId; account: string; name: string; status: ContractStatus; by: UserId; now: Date },
): Promise<ContractRecord | undefined> {
  const { rows } = await sql<ContractColumns>`
    insert into contract (document_id, account, name, status, created_by, updated_by, created_at, updated_at)
    select ${row.id}::uuid, a.document_id, ${row.name}::text, ${row.status}::text, ${row.by}::uuid, ${row.by}::uuid,
      ${row.now}::timestamptz, ${row.now}::timestamptz
    from account a where a.document_id = ${row.account} and a.deleted_at is null for key share
    returning ${sql.join(COLUMNS.map((column) => sql.ref(column)))}`.execute(db)
  return rows[0] && toContractRecord(rows[0])
}

/** What may change in a contract. Members left out stay. */
export interface ContractChange {
  name?: string
  status?: ContractStatus
  deletedAt?: Date
  by: UserId
  now: Date
}

/** Changes the living contract with this id in one statement; undefined when there is none, or `scope` does not reach it. */
export async function updateContract(
  db: Database,
  target: { id: string; scope: PermissionScope },
  change: ContractChange,
): Promise<ContractRecord | undefined> {
  const { id, scope } = target
  let query = db
    .updateTable('contract')
    .set({
      ...(change.name !== undefined && { name: change.name }),
      ...(change.status !== undefined && { status: change.status }),
      ...(change.deletedAt !== undefined && { deleted_at: change.deletedAt }),
      updated_by: change.by,
      updated_at: change.now,
    })
    .where('document_id', '=', id)
    .where('deleted_at', 'is', null)
  if (scope !== 'all') query = query.where((eb) => eb('account', '=', eb.fn.any(eb.val([...scope]))))
  const row = await query.returning(COLUMNS).executeTakeFirst()
  return row && toContractRecord(row)
}
