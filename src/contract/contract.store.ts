import type { AccountId, Id, UserId } from '../base/id.ts'
import type { OwnAccount } from '../http/listing/page.ts'
import type { PermissionScope } from '../http/shape/caller.ts'
import { columnsOf, wireOf } from '../http/shape/wire-row.ts'
import type { Database } from '../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../postgres/statement/record.ts'
import { isNull, rowStatement } from '../postgres/statement/statement.ts'
import { ContractRow, type ContractStatus } from './contract.schema.ts'

export type ContractId = Id<'contract'>

const contract = defineRecord('contract', columnsOf(ContractRow)).typed<{ status: ContractStatus }>()
export type ContractRecord = RecordOf<typeof contract>
export const toContractRow = wireOf(contract, ContractRow)

/** The contracts of an account, or of all, that are not deleted, as the base of a list. */
export function selectContracts(db: Database, own?: OwnAccount) {
  const living = selectRecord(db.selectFrom('contract'), contract).where('deleted_at', 'is', null)
  return own ? living.where('account', '=', own) : living
}

const FIND = `select ${contract.members()} from contract where document_id = $id and ${isNull('deleted_at')}`
const selectOne = rowStatement<ContractRecord, { id: string }>(FIND)
const selectOneOf = rowStatement<ContractRecord, { id: string; accounts: readonly AccountId[] }>(
  `${FIND} and account = any($accounts)`,
)

/** The contract with this id within `scope`, not deleted. */
export async function findContract(
  db: Database,
  id: string,
  scope: PermissionScope,
): Promise<ContractRecord | undefined> {
  return scope === 'all' ? selectOne(db, { id }) : selectOneOf(db, { id, accounts: scope })
}

interface NewContract {
  id: ContractId
  account: string
  name: string
  status: ContractStatus
  by: UserId
  now: Date
}

/** Inserts a contract; undefined when its account does not exist. The account is not deleted before the contract is there. */
export const insertContract = rowStatement<ContractRecord, NewContract>(`
  insert into contract (document_id, account, name, status, created_by, updated_by, created_at, updated_at)
  select $id::uuid, a.document_id, $name::text, $status::text, $by::uuid, $by::uuid, $now::timestamptz, $now::timestamptz
  from account a where a.document_id = $account and a.deleted_at is null for share
  returning ${contract.members()}`)

interface Target {
  id: string
  scope: PermissionScope
}

const IN_SCOPE = `document_id = $id and ${isNull('deleted_at')}
    and ($accounts::uuid[] is null or account = any($accounts))`

interface InScope {
  id: string
  /** Null for all. */
  accounts: readonly AccountId[] | null
}

const toAccounts = (scope: PermissionScope) => (scope === 'all' ? null : scope)

const update = rowStatement<
  ContractRecord,
  InScope & { name: string | null; status: ContractStatus | null; by: UserId; now: Date }
>(`
  update contract set name = coalesce($name, name), status = coalesce($status, status), updated_by = $by,
    updated_at = $now
  where ${IN_SCOPE} and (name, status) is distinct from (coalesce($name, name), coalesce($status, status))
  returning ${contract.members()}`)

/** Changes a contract in one statement. Undefined when none is within `scope`, or when nothing would differ. */
export async function changeIfDifferent(
  db: Database,
  { id, scope }: Target,
  change: { name?: string; status?: ContractStatus; by: UserId; now: Date },
): Promise<ContractRecord | undefined> {
  const { name = null, status = null, by, now } = change
  return update(db, { id, accounts: toAccounts(scope), name, status, by, now })
}

const markDeleted = rowStatement<ContractRecord, InScope & { by: UserId; now: Date }>(`
  update contract set deleted_at = $now, updated_by = $by, updated_at = $now where ${IN_SCOPE} returning ${contract.members()}`)

/** Soft-deletes the contract with this id; undefined when there is none within `scope`. */
export async function softDeleteContract(
  db: Database,
  { id, scope }: Target,
  { by, now }: { by: UserId; now: Date },
): Promise<ContractRecord | undefined> {
  return markDeleted(db, { id, accounts: toAccounts(scope), by, now })
}
