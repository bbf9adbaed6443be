import { rowFields } from '../http/listing/listing.ts'
import { buildList } from '../http/listing/page.ts'
import { defineRoute, type Routes } from '../http/route/route.ts'
import { defineList, defineRead } from '../http/route/row-route.ts'
import { IdParams } from '../http/route/schema.ts'
import { ContractRow, CreateContractBody, UpdateContractBody } from './contract.schema.ts'
import { type ContractRecord, selectContracts, toContractRow } from './contract.store.ts'
import { type ContractDeps, changeContract, createContract, deleteContract, loadContract } from './contract.ts'

const CONTRACT_FIELDS = rowFields({
  account: { type: 'uuid' },
  name: { type: 'text', sortable: true, like: 'of-accounts' },
  status: { type: 'text', sortable: true, like: 'of-accounts' },
})

const changedOf = (contract: ContractRecord) => [{ id: contract.id, account: contract.account }]

const OF_CONTRACT = { resource: 'contract', accountScope: 'account', ownAccounts: true, data: ContractRow } as const

/** The worked example of a platform's own resource (docs/contract/api.md#worked-example). CONTRIBUTING shows how to add another one. */
export const contractRoutes: Routes<ContractDeps> = [
  defineRoute(
    {
      ...OF_CONTRACT,
      method: 'POST',
      path: '/api/v3/contract/contract',
      action: 'create',
      status: 201,
      summary: 'Create a contract',
      body: CreateContractBody,
    },
    async (deps: ContractDeps, { db, body, caller, scope, permission, now }) => {
      const status = body.status ?? 'draft'
      const contract = await createContract(deps, db, { ...body, status, scope, permission, caller, now })
      return {
        data: toContractRow(contract),
        message: 'Contract created.',
        changed: changedOf(contract),
        location: `/api/v3/contract/contract/${contract.id}`,
      }
    },
  ),
  defineList(
    {
      ...OF_CONTRACT,
      path: '/api/v3/contract/contract',
      accountScope: 'none',
      summary: 'List contracts',
      list: CONTRACT_FIELDS,
      readsReplica: true,
    },
    {
      rows: ({ db, scope }) => buildList(scope, (own) => selectContracts(db, own)),
      toRow: toContractRow,
      message: 'Contracts.',
    },
  ),
  defineRead(
    {
      ...OF_CONTRACT,
      path: '/api/v3/contract/contract/{id}',
      summary: 'Read one contract',
      params: IdParams,
    },
    {
      load: ({ db, params, scope }) => loadContract(db, { id: params.id, scope }),
      toRow: toContractRow,
      message: 'Contract.',
      changedOf,
    },
  ),
  defineRoute(
    {
      ...OF_CONTRACT,
      method: 'PATCH',
      path: '/api/v3/contract/contract/{id}',
      action: 'update',
      summary: 'Change a contract',
      params: IdParams,
      body: UpdateContractBody,
    },
    {
      row: {
        find: (_deps: ContractDeps, { db, params, scope }) => loadContract(db, { id: params.id, scope }),
        neededBy: 'validation',
      },
      handle: async (_deps, { db, params, scope, body, caller, now }) => {
        const { contract, isChanged } = await changeContract(db, { id: params.id, scope }, { ...body, caller, now })
        return {
          data: toContractRow(contract),
          message: isChanged ? 'Contract updated.' : 'Contract unchanged.',
          changed: isChanged ? changedOf(contract) : [],
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_CONTRACT,
      method: 'DELETE',
      path: '/api/v3/contract/contract/{id}',
      action: 'delete',
      summary: 'Delete a contract (soft)',
      params: IdParams,
    },
    async (_deps: ContractDeps, { db, params, scope, caller, now }) => {
      const contract = await deleteContract(db, { id: params.id, scope }, { caller, now })
      return { data: toContractRow(contract), message: 'Contract deleted.', changed: changedOf(contract) }
    },
  ),
]
