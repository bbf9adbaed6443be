import { describe, expect, test } from 'vitest'
import { buildIdentityApp, type User } from '../../../test/harness/app/identity-app.ts'
import { untilWaiting } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { Problem } from '../../http/problem/problem.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { disableUser, loadManagedUser } from '../user/user.ts'
import { findRoleByName } from './role.store.ts'
import { hasAdministrator } from './system-roles.ts'

const USERS = '/api/v3/identity/user'
const ROLES = '/api/v3/identity/role'

const app = await openForFile(buildIdentityApp())
const root = await app.administrator()
const clerk = await app.callerWith('clerk', ['user:*', 'role:*', 'api-key:*', 'webhook:find-all'])

const asClerk = (method: string, path: string, body?: unknown) => app.call(method, path, { token: clerk.token, body })
const asRoot = (method: string, path: string, body?: unknown) => app.call(method, path, { token: root.token, body })
const denied = { status: 403, body: { code: 'permission_denied' } }
const roleId = async (name: string) => (await findRoleByName(app.db, name))!.id

describe('a caller gives only what it holds', () => {
  test('a created role holds only permissions of its creator', async () => {
    const body = (permissions: string[]) => ({ name: `made of ${permissions.join(' and ')}`, permissions })
    expect((await asClerk('POST', ROLES, body(['user:find-all', 'webhook:find-all']))).status).toBe(201)
    for (const permissions of [['webhook:*'], ['webhook:create'], ['*:*'], ['user:find-one', 'account:create']])
      expect(await asClerk('POST', ROLES, body(permissions))).toMatchObject(denied)
  })

  test('a role cannot be widened beyond its editor, or from own accounts to all', async () => {
    const made = await asRoot('POST', ROLES, {
      name: 'wide',
      permissions: ['webhook:find-all'],
      is_account_scoped: true,
    })
    const path = `${ROLES}/${made.body.data.document_id}`
    expect(await asClerk('PATCH', path, { permissions: ['webhook:create'] })).toMatchObject(denied)
    expect((await asClerk('PATCH', path, { is_account_scoped: false })).status).toBe(200)
    expect((await asClerk('PATCH', path, { permissions: ['user:find-one'] })).status).toBe(200)
    expect(await asClerk('PATCH', path, { permissions: ['user:find-one', '*:*'] })).toMatchObject(denied)
  })

  test('a caller cannot change, empty or delete a role that is wider than the caller', async () => {
    const made = await asRoot('POST', ROLES, { name: 'wider', permissions: ['user:find-all', 'webhook:create'] })
    const path = `${ROLES}/${made.body.data.document_id}`
    for (const body of [
      { permissions: [] },
      { permissions: ['user:find-all'] },
      { is_account_scoped: true },
      { name: 'harmless' },
      { description: 'harmless' },
    ])
      expect(await asClerk('PATCH', path, body)).toMatchObject(denied)
    const refused = await asClerk('DELETE', path)
    expect(refused).toMatchObject({ ...denied, body: { detail: expect.stringContaining('webhook:create everywhere') } })
    expect((await asRoot('GET', path)).body.data).toEqual(made.body.data)
    const system = `${ROLES}/${await roleId('administrator')}`
    for (const call of [asClerk('DELETE', system), asClerk('PATCH', system, { permissions: [] })])
      expect(await call).toMatchObject(denied)
  })

  test('a caller can assign only roles that it holds, to a new user, another user or itself', async () => {
    const roles = [await roleId('administrator')]
    expect(await asClerk('POST', USERS, { email: 'friend@example.test', roles })).toMatchObject(denied)
    const friend = await asClerk('POST', USERS, { email: 'friend@example.test', roles: [await roleId('member')] })
    expect(friend.status).toBe(201)
    expect(await asClerk('PATCH', `${USERS}/${friend.body.data.document_id}`, { roles })).toMatchObject(denied)
    expect(await asClerk('PATCH', `${USERS}/${clerk.user.id}`, { roles })).toMatchObject(denied)
  })

  test('an update may keep roles of the user that the caller does not hold', async () => {
    const kept = await asRoot('POST', ROLES, { name: 'kept', permissions: ['contract:*'], is_account_scoped: true })
    const role = kept.body.data.document_id
    const user = await asRoot('POST', USERS, { email: 'keeper@example.test', roles: [role] })
    const path = `${USERS}/${user.body.data.document_id}`
    expect((await asClerk('PATCH', path, { roles: [role] })).body.data.roles).toEqual([role])
    expect(await asRoot('PATCH', path, { roles: [] })).toMatchObject({ status: 200, body: { data: { roles: [] } } })
    expect(await asClerk('PATCH', path, { roles: [role] })).toMatchObject(denied)
  })

  test('user:update does not let a caller take over a user with more permissions', async () => {
    const path = `${USERS}/${root.user.id}`
    expect(await asClerk('PATCH', path, { password: 'now it is mine' })).toMatchObject(denied)
    expect(await asClerk('PATCH', path, { email: 'mine@example.test' })).toMatchObject(denied)
    expect(await asClerk('PATCH', path, { roles: [] })).toMatchObject(denied)
    expect(await asClerk('DELETE', path)).toMatchObject(denied)
    for (const action of ['disable', 'enable', 'revoke-sessions'])
      expect(await asClerk('POST', `${path}/${action}`)).toMatchObject(denied)
    expect((await asClerk('PATCH', `${USERS}/${clerk.user.id}`, { name: 'Myself' })).status).toBe(200)
  })

  test('a narrow API key of an administrator gives only what the key holds, also to its owner', async () => {
    const created = await asRoot('POST', '/api/v3/identity/api-key', {
      name: 'narrow',
      permissions: ['user:*', 'role:*'],
    })
    const { key } = created.body.data
    const asKey = (method: string, path: string, body: unknown) => app.call(method, path, { token: key, body })
    expect(await asKey('POST', ROLES, { name: 'by key', permissions: ['*:*'] })).toMatchObject(denied)
    expect((await asKey('POST', ROLES, { name: 'by key', permissions: ['user:create'] })).status).toBe(201)
    expect(await asKey('PATCH', `${USERS}/${root.user.id}`, { password: 'now it is mine' })).toMatchObject(denied)
    const roles = [await roleId('administrator')]
    expect(await asKey('POST', USERS, { email: 'backdoor@example.test', roles })).toMatchObject(denied)
    const wide = await asRoot('POST', ROLES, { name: 'wide for a key', permissions: ['webhook:find-all'] })
    const path = `${ROLES}/${wide.body.data.document_id}`
    expect(await asKey('PATCH', path, { permissions: [] })).toMatchObject(denied)
    expect(await asKey('DELETE', path, undefined)).toMatchObject(denied)
    expect((await asRoot('DELETE', path)).status).toBe(200)
  })
})

describe('an administrator always remains', () => {
  const conflict = { status: 409, body: { code: 'conflict' } }

  test('the last one cannot be disabled, deleted or lose the role, also by itself; with a second one it can', async () => {
    const path = `${USERS}/${root.user.id}`
    const member = [await roleId('member')]
    expect(await asRoot('POST', `${path}/disable`)).toMatchObject(conflict)
    expect(await asRoot('DELETE', path)).toMatchObject(conflict)
    expect(await asRoot('PATCH', path, { roles: member })).toMatchObject(conflict)
    expect((await asRoot('GET', path)).body.data.is_actived).toBe(true)

    const second = await app.administrator('second')
    const secondPath = `${USERS}/${second.user.id}`
    expect((await asRoot('POST', `${secondPath}/disable`)).status).toBe(200)
    expect(await asRoot('DELETE', path)).toMatchObject(conflict)
    expect((await asRoot('POST', `${secondPath}/enable`)).status).toBe(200)
    expect((await asRoot('PATCH', secondPath, { roles: member })).status).toBe(200)
    expect(await asRoot('POST', `${path}/disable`)).toMatchObject(conflict)
  })

  test('when two remove each other concurrently, the second waits for the first and is refused', async () => {
    const other = await app.administrator('other')
    const now = new Date(app.clock.now())
    const caller = { patterns: ['*:*'], ceiling: null } as unknown as Caller
    const disable = async (tx: Database, user: User) =>
      disableUser(tx, { user: await loadManagedUser(tx, user.user.id, { roles: [] }), caller, now })
    const disabled = Promise.withResolvers<void>()
    const mayCommit = Promise.withResolvers<void>()
    const first = inTransaction(app.db, async (tx) => {
      await disable(tx, other)
      disabled.resolve()
      await mayCommit.promise
    })
    await disabled.promise
    const second = inTransaction(app.db, (tx) => disable(tx, root)).catch((error: Problem) => error.code)
    await untilWaiting(app.db, 1)
    mayCommit.resolve()
    await first
    expect(await second).toBe('conflict')
    expect(await hasAdministrator(app.db)).toBe(true)
  })
})
