import { defineRoute, type Routes } from '../http/route.ts'
import { IdParams } from '../http/schema.ts'
import { readPage } from '../listing/page.ts'
import {
  AccountMemberRow,
  AddAccountMemberBody,
  RemoveAccountMemberBody,
  toAccountMemberRow,
} from './account.schema.ts'
import { type AccountDeps, addMember, loadAccount, nameMembers, removeMember } from './account.ts'
import { type NamedAccountMember, selectAccountMembers, toAccountMemberRecord } from './account-member.store.ts'

const MEMBER_FIELDS = {
  document_id: { type: 'uuid' },
  user: { type: 'uuid' },
  created_at: { type: 'timestamp', sortable: true },
  updated_at: { type: 'timestamp', sortable: true },
} as const

const changedOf = (member: NamedAccountMember) => [{ id: member.id, account: member.account }]

/** Who belongs to an account (docs/contract/identity.md#tables). */
export const accountMemberRoutes: Routes<AccountDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/identity/account/{id}/member',
      resource: 'account-member',
      action: 'create',
      accountScope: 'account',
      ownAccounts: true,
      status: 201,
      summary: 'Make a user a member of an account',
      description: 'The caller holds, in this account, everything that the account-scoped roles of the user hold.',
      params: IdParams,
      body: AddAccountMemberBody,
      data: AccountMemberRow,
    },
    {
      load: (_deps: AccountDeps, { db, params, scope }) => loadAccount(db, { id: params.id, scope, lock: 'keep' }),
      handle: async (deps, { db, target, body, caller, now }) => {
        const member = await addMember(deps, db, { account: target, userId: body.user, caller, now })
        return {
          data: toAccountMemberRow(member),
          message: 'Member added.',
          changed: changedOf(member),
          location: `/api/v3/identity/account/${target.id}/member`,
          audit: { user: member.userId },
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
      load: (_deps: AccountDeps, { db, params, scope }) => loadAccount(db, { id: params.id, scope }),
      handle: async (_deps, { db, target, caller, listing }) => {
        const page = await readPage(selectAccountMembers(db, target.id), {
          listing,
          fields: MEMBER_FIELDS,
          toRow: toAccountMemberRecord,
        })
        const members = await nameMembers(db, page.data, caller)
        return {
          ...page,
          data: members.map(toAccountMemberRow),
          message: 'Members.',
          changed: [{ id: null, account: target.id }],
        }
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
      description: 'The caller holds, in this account, everything that the account-scoped roles of the user hold.',
      params: IdParams,
      body: RemoveAccountMemberBody,
      data: AccountMemberRow,
    },
    {
      load: (_deps: AccountDeps, { db, params, scope }) => loadAccount(db, { id: params.id, scope, lock: 'keep' }),
      handle: async (_deps, { db, target, body, caller, now }) => {
        const member = await removeMember(db, { account: target, userId: body.user, caller, now })
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
