import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { PasswordDeps } from '../password/password.ts'
import { checkNewPassword, type PasswordOwner } from '../password/password-rule.ts'
import { hasRole, isMemberOf, selectUsers, signsInWith, type UserWithRoles } from '../user-record/user.store.ts'
import {
  CreateUserBody,
  EndTokensBody,
  ListedUserRow,
  TokensRevoked,
  toListedUserRow,
  toUserRow,
  UpdateUserBody,
  UserRow,
} from './user.schema.ts'
import {
  changeUser,
  createUser,
  deleteUser,
  disableUser,
  enableUser,
  endUserTokens,
  loadManagedUser,
  loadUser,
  READ_USER_PERMISSION,
  type UserDeps,
} from './user.ts'

type UserRouteDeps = UserDeps & PasswordDeps

const USER_FIELDS = rowFields({
  email: { type: 'text', sortable: true, like: 'indexed' },
  name: { type: 'text', like: 'indexed' },
  is_actived: { type: 'boolean' },
  role: { type: 'uuid', condition: hasRole },
  account: { type: 'uuid', condition: isMemberOf },
  provider: { type: 'text', condition: signsInWith },
  last_sign_in_at: { type: 'timestamp' },
})

/** Checks and hashes a new password before the transaction: hashing takes time. Throws a 422 on `password`. */
async function hashNewPassword({ passwords }: PasswordDeps, password: string, owner: PasswordOwner) {
  checkNewPassword(password, { path: 'password', owner })
  return { passwordHash: await passwords.hash(password) }
}

/** Prepares an update: with a new password, the user that it has to fit. Throws 404, 422. */
async function prepareUpdate(
  deps: PasswordDeps,
  { db, params, body }: { db: Database; params: { id: string }; body: Static<typeof UpdateUserBody> },
): Promise<{ passwordHash?: string }> {
  if (body.password === undefined) return {}
  const user = await loadUser(db, params.id)
  const { email = user.email, name = user.name, password } = body
  return hashNewPassword(deps, password, { email, name })
}

const changedOf = (user: Pick<UserWithRoles, 'id'>) => [{ id: user.id, account: null }]

/** Columns that a change can set. */
const SETTABLE = ['email', 'name', 'roles'] as const

const OF_USER = { resource: 'user', accountScope: 'none', data: UserRow } as const

/** Users (docs/contract/identity.md#tables). */
export const userRoutes: Routes<UserRouteDeps> = [
  defineRoute(
    {
      ...OF_USER,
      method: 'POST',
      path: '/api/v3/identity/user',
      action: 'create',
      status: 201,
      fresh: 'factor',
      summary: 'Create a user',
      description: 'Every user has the role `member`, and `roles` besides: none that holds more than the caller.',
      body: CreateUserBody,
    },
    {
      prepare: async (deps: UserRouteDeps, { body }): Promise<{ passwordHash?: string }> => {
        const { email, name = null, password } = body
        return password === undefined ? {} : hashNewPassword(deps, password, { email, name })
      },
      handle: async (deps, { db, body, prepared, caller, now }) => {
        const { email, name = null, roles = [] } = body
        const user = await createUser(deps, db, { email, name, roles, ...prepared, caller, now })
        return {
          data: toUserRow(user),
          message: 'User created.',
          changed: changedOf(user),
          location: `/api/v3/identity/user/${user.id}`,
          audit: { roles: user.roles },
        }
      },
    },
  ),
  defineList(
    {
      ...OF_USER,
      path: '/api/v3/identity/user',
      summary: 'List users',
      data: ListedUserRow,
      list: USER_FIELDS,
    },
    {
      rows: ({ db }) => buildWholeList(selectUsers(db), { table: 'u' }),
      toRow: toListedUserRow,
      message: 'Users.',
    },
  ),
  defineRoute(
    {
      ...OF_USER,
      method: 'GET',
      path: '/api/v3/identity/user/{id}',
      action: 'find-one',
      permission: READ_USER_PERMISSION,
      rowTag: SETTABLE,
      summary: 'Read one user',
      params: IdParams,
    },
    {
      row: { find: (_deps: UserDeps, { db, params }) => loadUser(db, params.id), neededBy: 'handle' },
      handle: async (_deps, { target }) => ({ data: toUserRow(target), message: 'User.', changed: changedOf(target) }),
    },
  ),
  defineRoute(
    {
      ...OF_USER,
      method: 'PATCH',
      path: '/api/v3/identity/user/{id}',
      action: 'update',
      fresh: 'factor',
      rowTag: SETTABLE,
      summary: 'Change a user',
      description:
        '`roles` is the full list. A new password or e-mail address signs the user out everywhere. A new password also revokes the API keys of the user, unless `keep_api_keys` is true, and clears the sign-in throttle. The caller must hold everything that the user holds, everywhere and in each account of the user.',
      params: IdParams,
      body: UpdateUserBody,
      problems: ['conflict'],
    },
    {
      row: { find: (_deps: UserRouteDeps, { db, params }) => loadUser(db, params.id), neededBy: 'validation' },
      prepare: prepareUpdate,
      handle: async (_deps, { db, params, body, prepared, caller, now }) => {
        const target = await loadManagedUser(db, params.id, { roles: body.roles })
        const { keep_api_keys: keepApiKeys, password: _, ...rest } = body
        const keep = keepApiKeys === undefined ? {} : { keepApiKeys }
        const user = await changeUser(db, target, { ...rest, ...prepared, ...keep, caller, now })
        return {
          data: toUserRow(user ?? target),
          before: toUserRow(target),
          message: user ? 'User updated.' : 'User unchanged.',
          changed: user ? changedOf(user) : [],
          audit: { members: Object.keys(body), ...(body.roles && { roles: (user ?? target).roles }) },
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_USER,
      method: 'DELETE',
      path: '/api/v3/identity/user/{id}',
      action: 'delete',
      summary: 'Delete a user (soft)',
      params: IdParams,
      problems: ['conflict'],
    },
    {
      row: {
        find: (_deps: UserDeps, { db, params }) => loadManagedUser(db, params.id, { roles: [] }),
        neededBy: 'handle',
      },
      handle: async (_deps, { db, target, caller, now }) => {
        const user = await deleteUser(db, { user: target, caller, now })
        return { data: toUserRow(user), message: 'User deleted.', changed: changedOf(user) }
      },
    },
  ),
  defineRoute(
    {
      ...OF_USER,
      method: 'POST',
      path: '/api/v3/identity/user/{id}/disable',
      action: 'disable',
      summary: 'Disable a user, at once',
      description: 'Ends the sessions of the user and, unless `keep_api_keys` is true, its API keys.',
      params: IdParams,
      body: EndTokensBody,
    },
    {
      row: { find: (_deps: UserDeps, { db, params }) => loadUser(db, params.id), neededBy: 'validation' },
      handle: async (_deps, { db, params, body, caller, now }) => {
        const target = await loadManagedUser(db, params.id, { roles: [] })
        const keepApiKeys = body?.keep_api_keys ?? false
        const user = await disableUser(db, { user: target, keepApiKeys, caller, now })
        const message = user ? 'User disabled.' : 'The user was disabled already.'
        const [data, before] = [toUserRow(user ?? target), toUserRow(target)]
        return { data, before, message, changed: user ? changedOf(user) : [] }
      },
    },
  ),
  defineRoute(
    {
      ...OF_USER,
      method: 'POST',
      path: '/api/v3/identity/user/{id}/enable',
      action: 'enable',
      summary: 'Enable a user',
      description: 'The user has to sign in again. Revoked sessions and API keys stay revoked.',
      params: IdParams,
    },
    {
      row: { find: (_deps: UserDeps, { db, params }) => loadManagedUser(db, params.id), neededBy: 'handle' },
      handle: async (_deps, { db, target, caller, now }) => {
        const user = await enableUser(db, { user: target, caller, now })
        const message = user ? 'User enabled.' : 'The user was enabled already.'
        const [data, before] = [toUserRow(user ?? target), toUserRow(target)]
        return { data, before, message, changed: user ? changedOf(user) : [] }
      },
    },
  ),
  defineRoute(
    {
      ...OF_USER,
      method: 'POST',
      path: '/api/v3/identity/user/{id}/revoke-sessions',
      action: 'revoke-sessions',
      summary: 'Sign a user out everywhere, at once',
      description: 'Ends the sessions of the user and, unless `keep_api_keys` is true, its API keys.',
      params: IdParams,
      body: EndTokensBody,
      data: TokensRevoked,
    },
    {
      row: { find: (_deps: UserDeps, { db, params }) => loadUser(db, params.id), neededBy: 'validation' },
      handle: async (_deps, { db, params, body, caller, now }) => {
        const keepApiKeys = body?.keep_api_keys ?? false
        const ended = await endUserTokens(db, params.id, { keepApiKeys, caller, now })
        return {
          data: { revoked: ended.sessions, api_keys_revoked: ended.apiKeys },
          message: keepApiKeys ? 'Sessions revoked.' : 'Sessions and API keys revoked.',
          changed: ended.sessions + ended.apiKeys > 0 ? changedOf(ended) : [],
        }
      },
    },
  ),
]
