import type { AccountId } from '../../base/id.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { named, namedObject, nullable, UuidSchema } from '../../http/route/schema.ts'
import { findPermissionScope, includesAccount } from '../../http/shape/caller.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { COUNT_LIMIT, readAccountActivity } from './account-activity.store.ts'
import { placeFigures } from './add-up.ts'
import { OF_DASHBOARD } from './range.schema.ts'

/** Maximum number of accounts in one request: each may have `COUNT_LIMIT` members to look up. */
const ACCOUNTS_LIMIT = 50

/** Permission without which a caller learns nothing of the members of an account. */
const READ_MEMBERS = 'account-member:find-all'

const Count = Type.Integer()

const ActivitySchema = namedObject('AccountActivity', {
  account: UuidSchema,
  members: nullable(
    Type.Integer({
      description: `At most ${COUNT_LIMIT}. Null for a caller who does not hold \`${READ_MEMBERS}\` there.`,
    }),
  ),
  webhooks: Type.Integer({ description: `At most ${COUNT_LIMIT}; deleted ones are not counted.` }),
  success: Count,
  exhausted: Count,
  failed: Type.Integer({ description: 'Deliveries that ended at once: a refusal, or what is not repeated.' }),
})

/** Figures of accounts (docs/contract/delivery.md#dashboard-series). */
export const accountActivityRoutes: Routes<object> = [
  defineRoute(
    {
      ...OF_DASHBOARD,
      path: '/api/v3/webhook/dashboard/account',
      action: 'dashboard-accounts',
      ownAccounts: true,
      summary: 'Members, webhooks and deliveries of accounts',
      description:
        'The figures of up to 50 accounts, in the order of the request: their members, their webhooks, and what became ' +
        'of the deliveries to these in the last 24 hours, by the hour in which they ended. Accounts that are deleted, or ' +
        'that the caller does not reach, are left out.',
      query: Type.Object({
        account: Type.Array(UuidSchema, { minItems: 1, maxItems: ACCOUNTS_LIMIT, description: 'Ids of accounts.' }),
      }),
      data: named('AccountActivities', Type.Array(ActivitySchema)),
    },
    async (_deps: object, { readEach, query, scope, caller, now }) => {
      const readable = findPermissionScope(caller, READ_MEMBERS)
      const accounts = query.account as AccountId[]
      // Home has the members of all, and the rest of those that are there.
      const [home = [], ...cells] = await readEach(
        ({ cell, db, scope: there }) =>
          readAccountActivity(db, { accounts, now, scope: cell === null ? scope : there }),
        accounts,
      )
      const activities = placeFigures(home, cells)
      return {
        data: activities.map((activity) => ({
          ...activity,
          members: readable && includesAccount(readable, activity.account) ? activity.members : null,
        })),
        message: 'Accounts and their last 24 hours.',
      }
    },
  ),
]
