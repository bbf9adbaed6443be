import { rowFields } from '../http/listing/listing.ts'
import { buildList } from '../http/listing/page.ts'
import type { Routes } from '../http/route/route.ts'
import { defineRow } from '../http/route/row-route.ts'
import { IdParams } from '../http/route/schema.ts'
import { ContractRow, CreateContractBody, UpdateContractBody } from './contract.schema.ts'
import { selectContracts, toContractRow } from './contract.store.ts'
import { type ContractDeps, changeContract, createContract, deleteContract, loadContract } from './contract.ts'

const CONTRACT_FIELDS = rowFields({
  account: { type: 'uuid' },
  name: { type: 'text', sortable: true, like: 'of-accounts' },
  status: { type: 'text', sortable: true, like: 'of-accounts' },
})

const contract = defineRow(
  {
    resource: 'contract',
    path: '/api/v3/contract/contract/{id}',
    accountScope: 'account',
    ownAccounts: true,
    params: IdParams,
    data: ContractRow,
  },
  {
    noun: 'Contract',
    load: ({ db, params, scope }) => loadContract(db, { id: params.id, scope }),
    toRow: toContractRow,
  },
)

/** The worked example of a platform's own resource (docs/contract/api.md#worked-example). CONTRIBUTING shows how to add another one. */
export const contractRoutes: Routes<ContractDeps> = [
  contract.create(
    { summary: 'Create a contract', body: CreateContractBody },
    async (deps, { db, body, caller, scope, permission, now }) => {
      const status = body.status ?? 'draft'
      return { row: await createContract(deps, db, { ...body, status, scope, permission, caller, now }) }
    },
  ),
  contract.list(
    { accountScope: 'none', summary: 'List contracts', list: CONTRACT_FIELDS, readsReplica: true },
    { rows: ({ db, scope }) => buildList(scope, (own) => selectContracts(db, own)), message: 'Contracts.' },
  ),
  contract.read({ summary: 'Read one contract' }),
  contract.update(
    { summary: 'Change a contract', body: UpdateContractBody },
    async (_deps, { db, params, scope, body, caller, now }) =>
      changeContract(db, { id: params.id, scope }, { ...body, caller, now }),
  ),
  contract.delete({ summary: 'Delete a contract (soft)' }, async (_deps, { db, params, scope, caller, now }) => ({
    row: await deleteContract(db, { id: params.id, scope }, { caller, now }),
  })),
]
