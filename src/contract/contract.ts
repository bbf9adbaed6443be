import { type Caller, includesAccount, type PermissionScope } from '../http/caller.ts'
import { invalidField, notFound, Problem } from '../http/problem.ts'
import type { AccountId, IdMaker } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import {
  type ContractRecord,
  type ContractStatus,
  changeIfDifferent,
  findContract,
  insertContract,
  softDeleteContract,
} from './contract.store.ts'

/** What the operations on contracts use. */
export interface ContractDeps {
  ids: IdMaker
}

/** A contract as a request names it: its id, and what the caller reaches. */
export interface ContractTarget {
  id: string
  scope: PermissionScope
}

/** The contract with this id, or a 404: also for a caller who does not reach it, so that ids of others stay unknown. */
export async function loadContract(db: Database, { id, scope }: ContractTarget): Promise<ContractRecord> {
  return (await findContract(db, id, scope)) ?? throwNotFound()
}

function throwNotFound(): never {
  throw notFound('contract')
}

/** Creates a contract for an account that the caller reaches. Throws 403 for another one, 422 when there is none. */
export async function createContract(
  deps: ContractDeps,
  db: Database,
  input: {
    account: string
    name: string
    status: ContractStatus
    scope: PermissionScope
    /** Of the route, for a refusal to name. */
    permission: string
    caller: Caller
    now: Date
  },
): Promise<ContractRecord> {
  const { account, name, status, scope, permission, caller, now } = input
  if (!includesAccount(scope, account as AccountId))
    throw new Problem('permission_denied', `This needs the permission ${permission} for this account.`)
  const contract = await insertContract(db, { id: deps.ids.next(), account, name, status, by: caller.userId, now })
  if (!contract)
    throw invalidField('account', 'unknown_account', 'There is no account with this id, or it was deleted.')
  return contract
}

/** Changes name or status; `isChanged` is false when both are the same. Throws 404. */
export async function changeContract(
  db: Database,
  target: ContractTarget,
  input: { name?: string; status?: ContractStatus; caller: Caller; now: Date },
): Promise<{ contract: ContractRecord; isChanged: boolean }> {
  const { caller, ...change } = input
  const changed = await changeIfDifferent(db, target, { ...change, by: caller.userId })
  if (changed) return { contract: changed, isChanged: true }
  return { contract: await loadContract(db, target), isChanged: false }
}

/** Soft-deletes a contract. Throws 404, also for the later of two deletions at once. */
export async function deleteContract(
  db: Database,
  target: ContractTarget,
  input: { caller: Caller; now: Date },
): Promise<ContractRecord> {
  const { caller, now } = input
  return (await softDeleteContract(db, target, { by: caller.userId, now })) ?? throwNotFound()
}
