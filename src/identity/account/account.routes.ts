import { rowFields } from '../../http/listing/listing.ts'
import { buildList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList, defineRead } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { AccountRow, CreateAccountBody, UpdateAccountBody } from './account.schema.ts'
import { type AccountRecord, selectAccounts, toAccountRow } from './account.store.ts'
import { type AccountDeps, createAccount, deleteAccount, loadAccount, lockAccount, renameAccount } from './account.ts'
import { ACCOUNT_ROW } from './own-account.ts'

const ACCOUNT_FIELDS = rowFields({
  name: { type: 'text', sortable: true, like: 'indexed' },
})

/** An account owns itself: its events reach the webhooks of that account. */
const changedOf = (account: AccountRecord) => [{ id: account.id, account: account.id }]

/** Columns that a change can set. */
const SETTABLE = ['name'] as const

const OF_ACCOUNT = { resource: 'account', accountScope: 'account', data: AccountRow } as const

/** Accounts (docs/contract/identity.md#tables). */
export const accountRoutes: Routes<AccountDeps> = [
  defineRoute(
    {
      ...OF_ACCOUNT,
      method: 'POST',
      path: '/api/v3/identity/account',
      action: 'create',
      status: 201,
      summary: 'Create an account',
      description: 'The account has no members.',
      body: CreateAccountBody,
    },
    async (deps: AccountDeps, { db, body, caller, now }) => {
      const account = await createAccount(deps, db, { name: body.name, by: caller.userId, now })
      return {
        data: toAccountRow(account),
        message: 'Account created.',
        changed: changedOf(account),
        location: `/api/v3/identity/account/${account.id}`,
      }
    },
  ),
  defineList(
    {
      ...OF_ACCOUNT,
      path: '/api/v3/identity/account',
      accountScope: 'none',
      ownAccounts: true,
      summary: 'List accounts',
      list: ACCOUNT_FIELDS,
    },
    {
      rows: ({ db, scope }) => buildList(scope, (own) => selectAccounts(db, own)),
      toRow: toAccountRow,
      message: 'Accounts.',
    },
  ),
  defineRead(
    {
      ...OF_ACCOUNT,
      path: '/api/v3/identity/account/{id}',
      ownAccounts: true,
      rowTag: SETTABLE,
      summary: 'Read one account',
      params: IdParams,
    },
    {
      load: ({ db, params, scope }) => loadAccount(db, { id: params.id, scope }),
      toRow: toAccountRow,
      message: 'Account.',
      changedOf,
    },
  ),
  defineRoute(
    {
      ...OF_ACCOUNT,
      method: 'PATCH',
      path: '/api/v3/identity/account/{id}',
      action: 'update',
      ownAccounts: true,
      rowTag: SETTABLE,
      summary: 'Rename an account',
      params: IdParams,
      body: UpdateAccountBody,
    },
    {
      row: ACCOUNT_ROW,
      handle: async (_deps: AccountDeps, { db, params, scope, body, caller, headers, now }) => {
        const change = { name: body.name, by: caller.userId, now }
        const target = { id: params.id, scope }
        // The rename reads no row first: only a request with a condition pays for that.
        const before = headers['if-match'] === undefined ? undefined : await lockAccount(db, target)
        const { account, isChanged } = await renameAccount(db, target, change)
        return {
          data: toAccountRow(account),
          ...(before && { before: toAccountRow(before) }),
          message: isChanged ? 'Account updated.' : 'Account unchanged.',
          changed: isChanged ? changedOf(account) : [],
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_ACCOUNT,
      method: 'DELETE',
      path: '/api/v3/identity/account/{id}',
      action: 'delete',
      ownAccounts: true,
      summary: 'Delete an account (soft)',
      description:
        'Its webhooks become inactive with the reason `account-deleted`, and sessions lose it as their current account.',
      params: IdParams,
    },
    {
      row: ACCOUNT_ROW,
      handle: async (deps: AccountDeps, { db, params, scope, caller, now }) => {
        const target = { id: params.id, scope }
        const account = await deleteAccount(deps, db, { target, by: caller.userId, now })
        return { data: toAccountRow(account), message: 'Account deleted.', changed: changedOf(account) }
      },
    },
  ),
]
