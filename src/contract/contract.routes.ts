import { buildList, readScopedPage } from '../http/listing/page.ts'
import { defineRoute, type Routes } from '../http/route/route.ts'
import { IdParams } from '../http/route/schema.ts'
import { ContractRow, CreateContractBody, UpdateContractBody } from './contract.schema.ts'
import { type ContractRecord, selectContracts, toContractRow } from './contract.store.ts'
import { type ContractDeps, changeContract, createContract, deleteContract, loadContract } from './contract.ts'

const CONTRACT_FIELDS = {
  document_id: { type: 'uuid' },
  account: { type: 'uuid' },
  name: { type: 'text', sortable: true, like: 'of-accounts' },
  status: { type: 'text', sortable: true, like: 'of-accounts' },
  created_at: { type: 'timestamp', sortable: true },
  updated_at: { type: 'timestamp', sortable: true },
} as const

const changedOf = (contract: ContractRecord) => [{ id: contract.id, account: contract.account }]

/** The worked example of a platform's own resource (docs/contract/api.md#worked-example). CONTRIBUTING shows how to add another one. */
export const contractRoutes: Routes<ContractDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/contract/contract',
      resource: 'contract',
      action: 'create',
      accountScope: 'account',
      ownAccounts: true,
      status: 201,
      summary: 'Create a contract',
      body: CreateContractBody,
      data: ContractRow,
    },
    {
      handle: async (deps: ContractDeps, { db, body, caller, scope, permission, now }) => {
        const status = body.status ?? 'draft'
        const contract = await createContract(deps, db, { ...body, status, scope, permission, caller, now })
        return {
          data: toContractRow(contract),
          message: 'Contract created.',
          changed: changedOf(contract),
          location: `/api/v3/contract/contract/${contract.id}`,
        }
      },
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/contract/contract',
      resource: 'contract',
      action: 'find-all',
      accountScope: 'none',
      ownAccounts: true,
      summary: 'List contracts',
      data: ContractRow,
      list: CONTRACT_FIELDS,
    },
    {
      handle: async (_deps: ContractDeps, { db, scope, listing }) => {
        const page = await readScopedPage(
          db,
          buildList(scope, (own) => selectContracts(db, own)),
          {
            listing,
            fields: CONTRACT_FIELDS,
            toRow: toContractRow,
          },
        )
        return { ...page, message: 'Contracts.' }
      },
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/contract/contract/{id}',
      resource: 'contract',
      action: 'find-one',
      accountScope: 'account',
      ownAccounts: true,
      summary: 'Read one contract',
      params: IdParams,
      data: ContractRow,
    },
    {
      row: {
        find: (_deps: ContractDeps, { db, params, scope }) => loadContract(db, { id: params.id, scope }),
        neededBy: 'handle',
      },
      handle: async (_deps, { target }) => ({
        data: toContractRow(target),
        message: 'Contract.',
        changed: changedOf(target),
      }),
    },
  ),
  defineRoute(
    {
      method: 'PATCH',
      path: '/api/v3/contract/contract/{id}',
      resource: 'contract',
      action: 'update',
      accountScope: 'account',
      ownAccounts: true,
      summary: 'Change a contract',
      params: IdParams,
      body: UpdateContractBody,
      data: ContractRow,
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
      method: 'DELETE',
      path: '/api/v3/contract/contract/{id}',
      resource: 'contract',
      action: 'delete',
      accountScope: 'account',
      ownAccounts: true,
      summary: 'Delete a contract (soft)',
      params: IdParams,
      data: ContractRow,
    },
    {
      handle: async (_deps: ContractDeps, { db, params, scope, caller, now }) => {
        const contract = await deleteContract(db, { id: params.id, scope }, { caller, now })
        return { data: toContractRow(contract), message: 'Contract deleted.', changed: changedOf(contract) }
      },
    },
  ),
]
