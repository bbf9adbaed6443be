import type { AccountId, IdMaker } from '../base/id.ts'
import { buildAccountMissing } from '../http/pipeline/caller-refusal.ts'
import { invalidField, notFound } from '../http/problem/problem.ts'
import type { RowChange } from '../http/route/row-route.ts'
import { type Caller, includesAccount, type PermissionScope } from '../http/shape/caller.ts'
import type { Database } from '../postgres/statement/database.ts'
import type { ContractStatus } from './contract.schema.ts'
import {
  type ContractRecord,
  changeIfDifferent,
  findContract,
  insertContract,
  softDeleteContract,
} from './contract.store.ts'

export interface ContractDeps {
  ids: IdMaker
}

/** A contract of a request: its id, and the scope of the caller. */
export interface ContractTarget {
  id: string
  scope: PermissionScope
}

/** The contract with this id. Throws 404, also outside the caller's scope, so that other accounts' ids stay unknown. */
export async function loadContract(db: Database, { id, scope }: ContractTarget): Promise<ContractRecord> {
  return (await findContract(db, id, scope)) ?? throwNotFound()
}

function throwNotFound(): never {
  throw notFound('contract')
}

/** Creates a contract for an account within the caller's scope. Throws 403 for another one, 422 for an unknown one. */
export async function createContract(
  deps: ContractDeps,
  db: Database,
  input: {
    account: string
    name: string
    status: ContractStatus
    scope: PermissionScope
    /** The permission of the route, for the text of a refusal. */
    permission: string
    caller: Caller
    now: Date
  },
): Promise<ContractRecord> {
  const { account, name, status, scope, permission, caller, now } = input
  if (!includesAccount(scope, account as AccountId)) throw buildAccountMissing(permission, account)
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
): Promise<RowChange<ContractRecord>> {
  const { caller, ...change } = input
  const changed = await changeIfDifferent(db, target, { ...change, by: caller.userId })
  if (changed) return { row: changed }
  return { row: await loadContract(db, target), isChanged: false }
}

/** Soft-deletes a contract. Throws 404, also for the second of two concurrent deletions. */
export async function deleteContract(
  db: Database,
  target: ContractTarget,
  input: { caller: Caller; now: Date },
): Promise<ContractRecord> {
  const { caller, now } = input
  return (await softDeleteContract(db, target, { by: caller.userId, now })) ?? throwNotFound()
}
