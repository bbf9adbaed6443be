import { rowFields } from '../../http/listing/listing.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import {
  AccountMemberRow,
  AddAccountMemberBody,
  RemoveAccountMemberBody,
  UpdateAccountMemberBody,
} from './account.schema.ts'
import { type AccountDeps, addMember, changeMemberRoles, type JoinDeps, removeMember, showMember } from './account.ts'
import { type NamedAccountMember, selectAccountMembers, toAccountMemberRow } from './account-member.store.ts'
import { ACCOUNT_ROW, listUnderAccount } from './own-account.ts'

const MEMBER_FIELDS = rowFields({
  user: { type: 'uuid' },
})

const changedOf = (member: NamedAccountMember) => [{ id: member.id, account: member.account }]

const OF_ACCOUNT_MEMBER = { resource: 'account-member', accountScope: 'account', data: AccountMemberRow } as const

/** Members of an account (docs/contract/identity.md#tables). */
export const accountMemberRoutes: Routes<AccountDeps & JoinDeps> = [
  defineRoute(
    {
      ...OF_ACCOUNT_MEMBER,
      method: 'POST',
      path: '/api/v3/identity/account/{id}/member',
      action: 'create',
      status: 201,
      summary: 'Add a user to an account',
      description:
        'Needs the permission everywhere; with it in one account only, invite the user instead. The caller must hold, in this account, everything that `roles` and the account-scoped roles of the user hold.',
      params: IdParams,
      body: AddAccountMemberBody,
    },
    {
      row: ACCOUNT_ROW,
      handle: async (deps: AccountDeps & JoinDeps, { db, params, scope, body, caller, now }) => {
        const target = { id: params.id, scope }
        const { user: userId, roles = [] } = body
        const member = await addMember(deps, db, { target, userId, roles, caller, now })
        return {
          data: toAccountMemberRow(member),
          message: 'Member added.',
          changed: changedOf(member),
          location: `/api/v3/identity/account/${member.account}/member`,
          audit: { user: member.userId, roles: member.roles },
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_ACCOUNT_MEMBER,
      method: 'PATCH',
      path: '/api/v3/identity/account/{id}/member',
      action: 'update',
      ownAccounts: true,
      summary: 'Replace the roles of a membership',
      description:
        '`roles` is the full list. The caller must hold, in this account, everything that each added and each removed role holds. The change takes effect with the next request of the user.',
      params: IdParams,
      body: UpdateAccountMemberBody,
    },
    {
      row: ACCOUNT_ROW,
      handle: async (_deps: AccountDeps, { db, params, scope, body, caller, now }) => {
        const change = { target: { id: params.id, scope }, userId: body.user, roles: body.roles, caller, now }
        const { member, before, isChanged } = await changeMemberRoles(db, change)
        return {
          data: toAccountMemberRow(member),
          before: toAccountMemberRow(before),
          message: isChanged ? 'Member updated.' : 'Member unchanged.',
          changed: isChanged ? changedOf(member) : [],
          audit: { user: member.userId, roles: member.roles },
        }
      },
    },
  ),
  defineList(
    {
      ...OF_ACCOUNT_MEMBER,
      path: '/api/v3/identity/account/{id}/member',
      ownAccounts: true,
      summary: 'List the members of an account',
      description: 'E-mail addresses are shown to a caller with the permission `user:find-one`.',
      params: IdParams,
      list: MEMBER_FIELDS,
    },
    {
      ...listUnderAccount(selectAccountMembers, { table: 'account_member' }),
      toRow: (row, { caller }) => toAccountMemberRow(showMember(row, caller)),
      message: 'Members.',
    },
  ),
  defineRoute(
    {
      ...OF_ACCOUNT_MEMBER,
      method: 'DELETE',
      path: '/api/v3/identity/account/{id}/member',
      action: 'delete',
      ownAccounts: true,
      summary: 'Remove a user from an account',
      description:
        'The caller must hold, in this account, everything that the roles of the membership and the account-scoped roles of the user hold.',
      params: IdParams,
      body: RemoveAccountMemberBody,
    },
    {
      row: ACCOUNT_ROW,
      handle: async (_deps: AccountDeps, { db, params, scope, body, caller, now }) => {
        const target = { id: params.id, scope }
        const member = await removeMember(db, { target, userId: body.user, caller, now })
        return {
          data: toAccountMemberRow(member),
          message: 'Member removed.',
          changed: changedOf(member),
          audit: { user: member.userId },
        }
      },
    },
  ),
]
