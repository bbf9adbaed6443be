import type { AccountId, UserId } from '../../base/id.ts'
import type { OwnAccount } from '../../http/listing/page.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { columnsOf, wireOf } from '../../http/shape/wire-row.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { AccountRow } from './account.schema.ts'

/** An account: every column that the API shows. */
const account = defineRecord('account', columnsOf(AccountRow))
export type AccountRecord = RecordOf<typeof account>
export const toAccountRow = wireOf(account, AccountRow)

/** The accounts within `scope` that are not deleted, as the base of a list. */
export function selectAccounts(db: Database, own?: OwnAccount) {
  const living = selectRecord(db.selectFrom('account'), account).where('deleted_at', 'is', null)
  return own ? living.where('document_id', '=', own) : living
}

const FIND = `select ${account.members()} from account where document_id = $id and deleted_at is null`
const selectOne = statement<AccountRecord, { id: string }>(FIND)
const selectAndKeep = statement<AccountRecord, { id: string }>(`${FIND} for share`)

/** The existing account with this id. */
export async function findAccount(db: Database, id: string): Promise<AccountRecord | undefined> {
  const [row] = await selectOne(db, { id })
  return row
}

/** The account with this id, not deleted, locked against changes and deletion until the transaction ends. */
export async function keepAccount(db: Database, id: string): Promise<AccountRecord | undefined> {
  const [row] = await selectAndKeep(db, { id })
  return row
}

/** A new account. */
interface NewAccount {
  id: AccountId
  name: string
  by: UserId | null
  now: Date
}

const insert = statement<AccountRecord, NewAccount>(`
  insert into account (document_id, name, created_by, updated_by, created_at, updated_at)
  values ($id, $name, $by, $by, $now, $now) returning ${account.members()}`)

/** Inserts an account. */
export async function insertAccount(db: Database, row: NewAccount): Promise<AccountRecord> {
  const [inserted] = await insert(db, row)
  return inserted as AccountRecord
}

/** The account of a request. */
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

const lockOne = statement<AccountRecord, ScopedAccount>(
  `select ${account.members()} from account where ${IN_SCOPE} for no key update`,
)

/** Locks the account with this id; undefined when there is none within the scope. */
export async function lockForRename(db: Database, target: AccountTarget): Promise<AccountRecord | undefined> {
  const [row] = await lockOne(db, withinScope(target))
  return row
}

const rename = statement<AccountRecord, ScopedAccount & { name: string; by: UserId; now: Date }>(`
  update account set name = $name, updated_by = $by, updated_at = $now
  where ${IN_SCOPE} and name <> $name returning ${account.members()}`)

/**
 * Changes the name of the account with this id. Undefined for an unknown account, one outside `scope`, or an unchanged
 * name.
 */
export async function renameIfDifferent(
  db: Database,
  target: AccountTarget,
  { name, by, now }: { name: string; by: UserId; now: Date },
): Promise<AccountRecord | undefined> {
  const [row] = await rename(db, { ...withinScope(target), name, by, now })
  return row
}

const markDeleted = statement<AccountRecord, ScopedAccount & { by: UserId; now: Date }>(`
  update account set deleted_at = $now, updated_by = $by, updated_at = $now where ${IN_SCOPE} returning ${account.members()}`)

/** Soft-deletes the account with this id. Undefined when there is none within `scope`. */
export async function softDeleteAccount(
  db: Database,
  target: AccountTarget,
  { by, now }: { by: UserId; now: Date },
): Promise<AccountRecord | undefined> {
  const [row] = await markDeleted(db, { ...withinScope(target), by, now })
  return row
}
