import type { AccountId } from '../../base/id.ts'
import { readPage } from '../../http/listing/page.ts'
import { notFound } from '../../http/problem/problem.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { includesAccount } from '../../http/shape/caller.ts'
import {
  AccountMemberRow,
  AddAccountMemberBody,
  RemoveAccountMemberBody,
  UpdateAccountMemberBody,
} from './account.schema.ts'
import { type AccountDeps, addMember, changeMemberRoles, loadAccount, removeMember, showMember } from './account.ts'
import { type NamedAccountMember, selectAccountMembers, toAccountMemberRow } from './account-member.store.ts'

const MEMBER_FIELDS = {
  document_id: { type: 'uuid' },
  user: { type: 'uuid' },
  created_at: { type: 'timestamp', sortable: true },
  updated_at: { type: 'timestamp', sortable: true },
} as const

const changedOf = (member: NamedAccountMember) => [{ id: member.id, account: member.account }]

/** Members of an account (docs/contract/identity.md#tables). */
export const accountMemberRoutes: Routes<AccountDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/identity/account/{id}/member',
      resource: 'account-member',
      action: 'create',
      accountScope: 'account',
      status: 201,
      summary: 'Add a user to an account',
      description:
        'Needs the permission everywhere; with it in one account only, invite the person instead. The caller must hold, in this account, everything that `roles` and the account-scoped roles of the user hold.',
      params: IdParams,
      body: AddAccountMemberBody,
      data: AccountMemberRow,
    },
    {
      row: {
        find: (_deps: AccountDeps, { db, params, scope }) => loadAccount(db, { id: params.id, scope }),
        neededBy: 'validation',
      },
      handle: async (deps, { db, params, scope, body, caller, now }) => {
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
      method: 'PATCH',
      path: '/api/v3/identity/account/{id}/member',
      resource: 'account-member',
      action: 'update',
      accountScope: 'account',
      ownAccounts: true,
      summary: 'Replace the roles of a membership',
      description:
        '`roles` is the full list. The caller must hold, in this account, everything that each given and each taken role holds. The change takes effect with the next request of the user.',
      params: IdParams,
      body: UpdateAccountMemberBody,
      data: AccountMemberRow,
    },
    {
      row: {
        find: (_deps: AccountDeps, { db, params, scope }) => loadAccount(db, { id: params.id, scope }),
        neededBy: 'validation',
      },
      handle: async (_deps, { db, params, scope, body, caller, now }) => {
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
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/identity/account/{id}/member',
      resource: 'account-member',
      action: 'find-all',
      accountScope: 'account',
      ownAccounts: true,
      summary: 'List the members of an account',
      description: 'E-mail addresses are shown to a caller with the permission `user:find-one`.',
      params: IdParams,
      data: AccountMemberRow,
      list: MEMBER_FIELDS,
    },
    {
      row: {
        find: (_deps: AccountDeps, { db, params, scope }) => loadAccount(db, { id: params.id, scope }),
        neededBy: 'validation',
      },
      handle: async (_deps, { db, params, scope, caller, listing }) => {
        const account = params.id as AccountId
        if (!includesAccount(scope, account)) throw notFound('account')
        const page = await readPage(db, selectAccountMembers(db, account), {
          listing,
          fields: MEMBER_FIELDS,
          source: { table: 'account_member' },
          toRow: (row) => toAccountMemberRow(showMember(row, caller)),
        })
        // A row proves that the account exists; only an empty list needs a check.
        if (page.data.length === 0) await loadAccount(db, { id: account, scope })
        return { ...page, message: 'Members.', changed: [{ id: null, account }] }
      },
    },
  ),
  defineRoute(
    {
      method: 'DELETE',
      path: '/api/v3/identity/account/{id}/member',
      resource: 'account-member',
      action: 'delete',
      accountScope: 'account',
      ownAccounts: true,
      summary: 'Remove a user from an account',
      description:
        'The caller must hold, in this account, everything that the roles of the membership and the account-scoped roles of the user hold.',
      params: IdParams,
      body: RemoveAccountMemberBody,
      data: AccountMemberRow,
    },
    {
      row: {
        find: (_deps: AccountDeps, { db, params, scope }) => loadAccount(db, { id: params.id, scope }),
        neededBy: 'validation',
      },
      handle: async (_deps, { db, params, scope, body, caller, now }) => {
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
