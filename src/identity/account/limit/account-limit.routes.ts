import type { AccountId } from '../../../base/id.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { defineRead } from '../../../http/route/row-route.ts'
import { IdParams } from '../../../http/route/schema.ts'
import { AccountLimitRow, toAccountLimitRow, UpdateAccountLimitBody } from './account-limit.schema.ts'
import { type AccountLimitDeps, changeLimits, loadLimits } from './account-limit.ts'

/** The limits of an account are read at its path, by its id. */
const changedOf = (account: AccountId) => [{ id: account, account }]

/** Columns that a change can set. */
const SETTABLE = ['own'] as const

const OF_ACCOUNT_LIMIT = { resource: 'account-limit', accountScope: 'account', data: AccountLimitRow } as const

/** Limits of an account (docs/contract/delivery.md#limits-of-an-account). */
export const accountLimitRoutes: Routes<AccountLimitDeps> = [
  defineRead(
    {
      ...OF_ACCOUNT_LIMIT,
      path: '/api/v3/identity/account/{id}/limit',
      ownAccounts: true,
      rowTag: SETTABLE,
      summary: 'Read the limits and the usage of an account',
      params: IdParams,
    },
    {
      load: ({ db, params, scope }, deps: AccountLimitDeps) => loadLimits(deps, db, { id: params.id, scope }),
      toRow: toAccountLimitRow,
      message: 'Limits of the account.',
      changedOf: (target) => changedOf(target.account),
    },
  ),
  defineRoute(
    {
      ...OF_ACCOUNT_LIMIT,
      method: 'PATCH',
      path: '/api/v3/identity/account/{id}/limit',
      action: 'update',
      rowTag: SETTABLE,
      summary: 'Set limits of an account',
      description:
        'Null restores the default of the service; an absent member keeps its limit. Existing rows beyond a lower limit stay, except those beyond a shorter retention, which are deleted within minutes.',
      params: IdParams,
      body: UpdateAccountLimitBody,
    },
    {
      row: {
        find: (deps: AccountLimitDeps, { db, params, scope }) => loadLimits(deps, db, { id: params.id, scope }),
        neededBy: 'validation',
      },
      handle: async (deps, { db, params, body, caller, now }) => {
        const input = { account: params.id, change: body, by: caller.userId, now }
        const { isChanged, before, ...standing } = await changeLimits(deps, db, input)
        return {
          data: toAccountLimitRow(standing),
          before: toAccountLimitRow(before),
          message: isChanged ? 'Limits of the account updated.' : 'Limits of the account unchanged.',
          changed: isChanged ? changedOf(standing.account) : [],
        }
      },
    },
  ),
]
