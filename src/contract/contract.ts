import { type Caller, canReachAccount } from '../http/caller.ts'
import { notFound, Problem } from '../http/problem.ts'
import type { AccountId, IdMaker } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import {
  type ContractRecord,
  type ContractStatus,
  findContract,
  insertContract,
  updateContract,
} from './contract.store.ts'

/** What the operations on contracts use. */
export interface ContractDeps {
  ids: IdMaker
  /** Throws a 422 on `account` when there is no such account. */
  checkAccountExists: (db: Database, account: string) => Promise<AccountId>
}

/**
 * The contract with this id, or a 404: also for a caller who may not see it, so that ids of others stay unknown. A change
 * locks it, so that two changes follow each other and nothing changes what was deleted.
 */
export async function loadContract(
  db: Database,
  input: { id: string; caller: Caller; permission: string; lock?: boolean },
): Promise<ContractRecord> {
  const contract = await findContract(db, input.id, { lock: input.lock ?? false })
  if (!contract || !canReachAccount(input.caller, input.permission, contract.account)) throw notFound('contract')
  return contract
}

/** Creates a contract for an account that the caller may act for. */
export async function createContract(
  deps: ContractDeps,
  db: Database,
  input: { account: string; name: string; status: ContractStatus; caller: Caller; now: Date },
): Promise<ContractRecord> {
  const { caller, name, status, now } = input
  if (!canReachAccount(caller, 'contract:create', input.account as AccountId))
    throw new Problem('permission_denied', 'This needs the permission contract:create for this account.')
  const account = await deps.checkAccountExists(db, input.account)
  return insertContract(db, { id: deps.ids.next(), account, name, status, by: caller.userId, now })
}

/** Changes name or status of a locked contract. Returns undefined when both are the same. */
export async function changeContract(
  db: Database,
  contract: ContractRecord,
  input: { name?: string; status?: ContractStatus; caller: Caller; now: Date },
): Promise<ContractRecord | undefined> {
  const { name = contract.name, status = contract.status, caller, now } = input
  if (name === contract.name && status === contract.status) return undefined
  return updateContract(db, contract.id, { name, status, by: caller.userId, now })
}

/** Soft-deletes a contract. */
export function deleteContract(
  db: Database,
  contract: ContractRecord,
  input: { caller: Caller; now: Date },
): Promise<ContractRecord> {
  return updateContract(db, contract.id, { deletedAt: input.now, by: input.caller.userId, now: input.now })
}
