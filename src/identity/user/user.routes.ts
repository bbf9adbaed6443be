import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList, defineRow } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { PasswordDeps } from '../password/password.ts'
import { checkNewPassword, type PasswordOwner } from '../password/password-rule.ts'
import { hasOneOfEmails, hasRole, isMemberOf, selectUsers, signsInWith } from '../user-record/user.store.ts'
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
  email: { type: 'text', sortable: true, like: 'indexed', equals: hasOneOfEmails },
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

/** Columns that a change can set. */
const SETTABLE = ['email', 'name', 'roles'] as const

const OF_USER = { resource: 'user', accountScope: 'none' } as const

const user = defineRow(
  { ...OF_USER, path: '/api/v3/identity/user/{id}', rowTag: SETTABLE, params: IdParams, data: UserRow },
  { noun: 'User', load: ({ db, params }) => loadUser(db, params.id), toRow: toUserRow },
)

/** Users (docs/contract/identity.md#tables). */
export const userRoutes: Routes<UserRouteDeps> = [
  user.create(
    {
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
        const row = await createUser(deps, db, { email, name, roles, ...prepared, caller, now })
        return { row, audit: { roles: row.roles } }
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
  user.read({ permission: READ_USER_PERMISSION, summary: 'Read one user' }),
  user.update(
    {
      fresh: 'factor',
      summary: 'Change a user',
      description:
        '`roles` is the full list. A new password or e-mail address signs the user out everywhere. A new password also revokes the API keys of the user, unless `keep_api_keys` is true, and clears the sign-in throttle. The caller must hold everything that the user holds, everywhere and in each account of the user.',
      body: UpdateUserBody,
      problems: ['conflict'],
    },
    {
      prepare: prepareUpdate,
      handle: async (_deps, { db, params, body, prepared, caller, now }) => {
        const before = await loadManagedUser(db, params.id, { roles: body.roles })
        const { keep_api_keys: keepApiKeys, password: _, ...rest } = body
        const keep = keepApiKeys === undefined ? {} : { keepApiKeys }
        const changed = await changeUser(db, before, { ...rest, ...prepared, ...keep, caller, now })
        const row = changed ?? before
        const audit = { members: Object.keys(body), ...(body.roles && { roles: row.roles }) }
        return { row, before, isChanged: changed !== undefined, audit }
      },
    },
  ),
  user.delete(
    { summary: 'Delete a user (soft)', problems: ['conflict'] },
    {
      row: {
        find: (_deps: UserDeps, { db, params }) => loadManagedUser(db, params.id, { roles: [] }),
        neededBy: 'handle',
      },
      handle: async (_deps, { db, target, caller, now }) => ({
        row: await deleteUser(db, { user: target, caller, now }),
      }),
    },
  ),
  user.change(
    {
      method: 'POST',
      path: '/api/v3/identity/user/{id}/disable',
      action: 'disable',
      summary: 'Disable a user, at once',
      description: 'Ends the sessions of the user and, unless `keep_api_keys` is true, its API keys.',
      body: EndTokensBody,
    },
    async (_deps, { db, params, body, caller, now }) => {
      const before = await loadManagedUser(db, params.id, { roles: [] })
      const keepApiKeys = body?.keep_api_keys ?? false
      const changed = await disableUser(db, { user: before, keepApiKeys, caller, now })
      const message = changed ? 'User disabled.' : 'The user was disabled already.'
      return { row: changed ?? before, before, isChanged: changed !== undefined, message }
    },
  ),
  user.change(
    {
      method: 'POST',
      path: '/api/v3/identity/user/{id}/enable',
      action: 'enable',
      summary: 'Enable a user',
      description: 'The user has to sign in again. Revoked sessions and API keys stay revoked.',
    },
    {
      row: { find: (_deps: UserDeps, { db, params }) => loadManagedUser(db, params.id), neededBy: 'handle' },
      handle: async (_deps, { db, target: before, caller, now }) => {
        const changed = await enableUser(db, { user: before, caller, now })
        const message = changed ? 'User enabled.' : 'The user was enabled already.'
        return { row: changed ?? before, before, isChanged: changed !== undefined, message }
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
          changed: ended.sessions + ended.apiKeys > 0 ? [{ id: ended.id, account: null }] : [],
        }
      },
    },
  ),
]
