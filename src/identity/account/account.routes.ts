import { rowFields } from '../../http/listing/listing.ts'
import { buildList } from '../../http/listing/page.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineRow } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { AccountRow, CreateAccountBody, UpdateAccountBody } from './account.schema.ts'
import { selectAccounts, toAccountRow } from './account.store.ts'
import { type AccountDeps, createAccount, deleteAccount, loadAccount, lockAccount, renameAccount } from './account.ts'

const ACCOUNT_FIELDS = rowFields({
  name: { type: 'text', sortable: true, like: 'indexed' },
})

/** Columns that a change can set. */
const SETTABLE = ['name'] as const

const account = defineRow(
  {
    resource: 'account',
    path: '/api/v3/identity/account/{id}',
    accountScope: 'account',
    ownAccounts: true,
    rowTag: SETTABLE,
    params: IdParams,
    data: AccountRow,
  },
  {
    noun: 'Account',
    load: ({ db, params, scope }) => loadAccount(db, { id: params.id, scope }),
    toRow: toAccountRow,
    /** An account owns itself: its events reach the webhooks of that account. */
    changedOf: ({ id }) => [{ id, account: id }],
  },
)

/** Accounts (docs/contract/identity.md#tables). */
export const accountRoutes: Routes<AccountDeps> = [
  account.create(
    {
      ownAccounts: false,
      summary: 'Create an account',
      description: 'The account has no members.',
      body: CreateAccountBody,
    },
    async (deps, { db, body, caller, now }) => ({
      row: await createAccount(deps, db, { name: body.name, by: caller.userId, now }),
    }),
  ),
  account.list(
    { accountScope: 'none', summary: 'List accounts', list: ACCOUNT_FIELDS },
    { rows: ({ db, scope }) => buildList(scope, (own) => selectAccounts(db, own)), message: 'Accounts.' },
  ),
  account.read({ summary: 'Read one account' }),
  account.update(
    { summary: 'Rename an account', body: UpdateAccountBody },
    async (_deps, { db, params, scope, body, caller, headers, now }) => {
      const target = { id: params.id, scope }
      // The rename reads no row first: only a request with a condition pays for that.
      const before = headers['if-match'] === undefined ? undefined : await lockAccount(db, target)
      const renamed = await renameAccount(db, target, { name: body.name, by: caller.userId, now })
      return { ...renamed, ...(before && { before }) }
    },
  ),
  account.delete(
    {
      summary: 'Delete an account (soft)',
      description:
        'Its webhooks become inactive with the reason `account-deleted`, and sessions lose it as their current account.',
    },
    async (deps: AccountDeps, { db, params, scope, caller, now }) => ({
      row: await deleteAccount(deps, db, { target: { id: params.id, scope }, by: caller.userId, now }),
    }),
  ),
]
