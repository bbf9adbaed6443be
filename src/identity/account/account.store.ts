import type { AccountId, UserId } from '../../base/id.ts'
import type { OwnAccount } from '../../http/listing/page.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'

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

interface AccountColumns {
  document_id: string
  name: string
  created_by: string | null
  updated_by: string | null
  created_at: Date
  updated_at: Date
  deleted_at: Date | null
}

const COLUMNS = ['document_id', 'name', 'created_by', 'updated_by', 'created_at', 'updated_at', 'deleted_at'] as const

/** The columns above, as SQL. */
const RETURNED = COLUMNS.join(', ')

/** Maps a row of the `account` table. */
export function toAccountRecord(row: AccountColumns): AccountRecord {
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

/** The accounts within `scope` that are not deleted, as the base of a list. */
export function selectAccounts(db: Database, own?: OwnAccount) {
  const living = db.selectFrom('account').select(COLUMNS).where('deleted_at', 'is', null)
  return own ? living.where('document_id', '=', own) : living
}

const FIND = `select ${RETURNED} from account where document_id = $id and deleted_at is null`
const selectOne = statement<AccountColumns, { id: string }>(FIND)
const selectAndKeep = statement<AccountColumns, { id: string }>(`${FIND} for share`)

/** The living account with this id. */
export async function findAccount(db: Database, id: string): Promise<AccountRecord | undefined> {
  const [row] = await selectOne(db, { id })
  return row && toAccountRecord(row)
}

/** The account with this id, not deleted, locked against changes and deletion until the transaction ends. */
export async function keepAccount(db: Database, id: string): Promise<AccountRecord | undefined> {
  const [row] = await selectAndKeep(db, { id })
  return row && toAccountRecord(row)
}

/** An account that is to be. */
interface NewAccount {
  id: AccountId
  name: string
  by: UserId | null
  now: Date
}

const insert = statement<AccountColumns, NewAccount>(`
  insert into account (document_id, name, created_by, updated_by, created_at, updated_at)
  values ($id, $name, $by, $by, $now, $now) returning ${RETURNED}`)

/** Inserts an account. */
export async function insertAccount(db: Database, row: NewAccount): Promise<AccountRecord> {
  const [inserted] = await insert(db, row)
  return toAccountRecord(inserted as AccountColumns)
}

/** An account as a request names it. */
export interface AccountTarget {
  id: string
  scope: PermissionScope
}

/** The values of `IN_SCOPE`. */
interface ScopedAccount {
  id: string
  accounts: readonly AccountId[] | null
}

const IN_SCOPE =
  'document_id = $id and deleted_at is null and ($accounts::uuid[] is null or document_id = any($accounts))'
const withinScope = ({ id, scope }: AccountTarget): ScopedAccount => ({ id, accounts: scope === 'all' ? null : scope })

const rename = statement<AccountColumns, ScopedAccount & { name: string; by: UserId; now: Date }>(`
  update account set name = $name, updated_by = $by, updated_at = $now
  where ${IN_SCOPE} and name <> $name returning ${RETURNED}`)

/**
 * Changes the name of the account with this id. Undefined when there is none, when it is outside `scope`, or when it has
 * this name already.
 */
export async function renameIfDifferent(
  db: Database,
  target: AccountTarget,
  { name, by, now }: { name: string; by: UserId; now: Date },
): Promise<AccountRecord | undefined> {
  const [row] = await rename(db, { ...withinScope(target), name, by, now })
  return row && toAccountRecord(row)
}

const markDeleted = statement<AccountColumns, ScopedAccount & { by: UserId; now: Date }>(`
  update account set deleted_at = $now, updated_by = $by, updated_at = $now where ${IN_SCOPE} returning ${RETURNED}`)

/** Soft-deletes the account with this id. Undefined when there is none within `scope`. */
export async function softDeleteAccount(
  db: Database,
  target: AccountTarget,
  { by, now }: { by: UserId; now: Date },
): Promise<AccountRecord | undefined> {
  const [row] = await markDeleted(db, { ...withinScope(target), by, now })
  return row && toAccountRecord(row)
}
