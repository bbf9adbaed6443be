import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineList } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { listHoldingsAt } from '../access/delegation.ts'
import { MEMBER_ROLE } from '../access/system-roles.ts'
import { AccountRoleRow } from './account.schema.ts'
import { selectAccountRoles, toAccountRoleRow } from './account-role.store.ts'
import { readOwnAccount, UNDER_ACCOUNT } from './own-account.ts'

const ROLE_FIELDS = rowFields({ name: { type: 'text', sortable: true, like: 'few-rows' } })

/** Roles that memberships of an account may have (docs/contract/identity.md#roles-of-an-account). */
export const accountRoleRoutes: Routes<object> = [
  defineList(
    {
      path: '/api/v3/identity/account/{id}/role',
      resource: 'account-member',
      action: 'find-roles',
      accountScope: 'account',
      ownAccounts: true,
      summary: 'List the roles for members of an account',
      description:
        'Account-scoped roles that the caller may give in this account (`is_givable`), and others that a member has. The role `member`, which every user has, is left out.',
      params: IdParams,
      data: AccountRoleRow,
      list: ROLE_FIELDS,
    },
    {
      ...UNDER_ACCOUNT,
      rows: ({ db, caller, ...request }) => {
        const account = readOwnAccount(request)
        const holdings = listHoldingsAt(caller, account)
        return buildWholeList(selectAccountRoles(db, { account, holdings, without: MEMBER_ROLE }), { table: 'role' })
      },
      toRow: toAccountRoleRow,
      message: 'Roles for members.',
    },
  ),
]
