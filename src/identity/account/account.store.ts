import type { AccountId, UserId } from '../../base/id.ts'
import type { OwnAccount } from '../../http/listing/page.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { columnsOf, wireOf } from '../../http/shape/wire-row.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { rowStatement, soleRowStatement } from '../../postgres/statement/statement.ts'
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
/** The existing account with this id. */
export const findAccount = rowStatement<AccountRecord, { id: string }>(FIND)
/** The account with this id, not deleted, locked against changes and deletion until the transaction ends. */
export const keepAccount = rowStatement<AccountRecord, { id: string }>(`${FIND} for share`)

/** A new account. */
interface NewAccount {
  id: AccountId
  name: string
  by: UserId | null
  now: Date
}

/** Inserts an account. */
export const insertAccount = soleRowStatement<AccountRecord, NewAccount>(`
  insert into account (document_id, name, created_by, updated_by, created_at, updated_at)
  values ($id, $name, $by, $by, $now, $now) returning ${account.members()}`)

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
/** The values by which a statement finds the account of a request. */
export const withinScope = ({ id, scope }: AccountTarget): ScopedAccount => ({
  id,
  accounts: scope === 'all' ? null : scope,
})

/** Locks the account with this id; undefined when there is none within the scope. */
export const lockForRename = rowStatement<AccountRecord, ScopedAccount>(
  `select ${account.members()} from account where ${IN_SCOPE} for no key update`,
)

/** Changes the name of an account. Undefined for an unknown one, one outside the scope, or an unchanged name. */
export const renameIfDifferent = rowStatement<AccountRecord, ScopedAccount & { name: string; by: UserId; now: Date }>(`
  update account set name = $name, updated_by = $by, updated_at = $now
  where ${IN_SCOPE} and name <> $name returning ${account.members()}`)

/** Soft-deletes the account with this id. Undefined when there is none within the scope. */
export const softDeleteAccount = rowStatement<AccountRecord, ScopedAccount & { by: UserId; now: Date }>(`
  update account set deleted_at = $now, updated_by = $by, updated_at = $now where ${IN_SCOPE} returning ${account.members()}`)
