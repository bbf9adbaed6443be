import { describe, expect, test } from 'vitest'
import { buildIdentityApp, NO_ID } from '../../../test/harness/app/identity-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { syncPermissions } from './permission.store.ts'
import { findRoleByName } from './role.store.ts'
import { ensureSystemRoles, hasAdministrator } from './system-roles.ts'

const ROLES = '/api/v3/identity/role'
const USERS = '/api/v3/identity/user'

const app = await openForFile(buildIdentityApp())
const root = await app.administrator()
const plain = await app.user('plain')

const asRoot = (method: string, path: string, body?: unknown) => app.call(method, path, { token: root.token, body })

async function createRole(name: string, permissions: string[] = []) {
  const reply = await asRoot('POST', ROLES, { name, permissions })
  expect(reply.status).toBe(201)
  return reply.body.data
}

describe('every route on roles and permissions', () => {
  test.each([
    ['POST', ROLES],
    ['GET', ROLES],
    ['GET', `${ROLES}/{id}`],
    ['PATCH', `${ROLES}/{id}`],
    ['DELETE', `${ROLES}/{id}`],
    ['GET', '/api/v3/identity/permission'],
    ['GET', '/api/v3/audit/log'],
  ])('%s %s is 401 without a token, 403 for a member, and 404 for an unknown id', async (method, template) => {
    const path = template.replace('{id}', NO_ID)
    expect((await app.call(method, path)).status).toBe(401)
    expect((await app.call(method, path, { token: plain.token })).status).toBe(403)
    if (template !== path) expect((await asRoot(method, path, { nonsense: 1 })).status).toBe(404)
  })
})

describe('roles', () => {
  test('are created, read, listed, changed and deleted, each with its event', async () => {
    const role = await createRole('Support', ['user:find-one', 'user:find-all'])
    const path = `${ROLES}/${role.document_id}`
    expect(role).toMatchObject({
      name: 'Support',
      description: null,
      permissions: ['user:find-all', 'user:find-one'],
      is_system: false,
      is_account_scoped: false,
    })
    expect((await asRoot('GET', path)).body.data).toEqual(role)
    expect((await asRoot('GET', `${ROLES}?filters=name|like|supp`)).body.data).toEqual([role])
    const changed = await asRoot('PATCH', path, { permissions: ['user:*'], description: 'All of it' })
    expect(changed.body.data).toMatchObject({ name: 'Support', permissions: ['user:*'], description: 'All of it' })
    const renamed = await asRoot('PATCH', path, { name: 'Helpers' })
    expect(renamed.body.data).toMatchObject({ name: 'Helpers', permissions: ['user:*'], description: 'All of it' })
    expect((await asRoot('GET', path)).body.data).toEqual(renamed.body.data)
    // Each change counts alone, and none of the same twice.
    for (const change of [
      { requires_second_factor: true },
      { is_account_scoped: true, permissions: ['account:update'] },
    ]) {
      expect((await asRoot('PATCH', path, change)).body.data).toMatchObject(change)
      expect((await asRoot('GET', path)).body.data).toMatchObject(change)
      await asRoot('PATCH', path, change)
    }
    expect((await asRoot('DELETE', path)).status).toBe(200)
    expect((await asRoot('GET', path)).status).toBe(404)
    const events = (await app.events()).filter((event) => event.endsWith(role.document_id))
    expect(events.map((event) => event.split(' ')[0])).toEqual([
      'role.create',
      ...Array(4).fill('role.update'),
      'role.delete',
    ])
  })

  test.each([
    ['no permissions member', { name: 'x' }],
    ['a permission that no route needs', { name: 'x', permissions: ['user:fly'] }],
    ['a resource that does not exist', { name: 'x', permissions: ['dragon:*'] }],
    ['a half pattern', { name: 'x', permissions: ['*:create'] }],
    ['a bare star', { name: 'x', permissions: ['*'] }],
    ['the same twice', { name: 'x', permissions: ['user:*', 'user:*'] }],
    ['an unknown member', { name: 'x', permissions: [], is_system: true }],
  ])('with %s are refused with 422', async (_name, body) => {
    expect(await asRoot('POST', ROLES, body)).toMatchObject({ status: 422, body: { code: 'validation_failed' } })
  })

  test('a 422 names an unknown permission and its index', async () => {
    const reply = await asRoot('POST', ROLES, { name: 'x', permissions: ['user:create', 'user:fly'] })
    const errors = [{ path: 'permissions.1', code: 'unknown_permission' }]
    expect(reply.body.errors).toMatchObject(errors)
    const role = (await asRoot('POST', ROLES, { name: 'without flights', permissions: [] })).body.data
    const change = { permissions: ['user:create', 'user:fly'] }
    expect((await asRoot('PATCH', `${ROLES}/${role.document_id}`, change)).body.errors).toMatchObject(errors)
  })

  test('of accounts hold only permissions that have an effect in one', async () => {
    const body = { name: 'account clerk', permissions: ['account:update', 'role:create'], is_account_scoped: true }
    const refused = { status: 422, body: { errors: [{ path: 'permissions.1', code: 'no_effect_in_scope' }] } }
    expect(await asRoot('POST', ROLES, body)).toMatchObject(refused)
    expect((await asRoot('POST', ROLES, { ...body, is_account_scoped: false })).status).toBe(201)
  })

  test('with a name in use are a conflict, at create and at update', async () => {
    await createRole('Taken')
    const other = await createRole('Free')
    expect((await asRoot('POST', ROLES, { name: 'Taken', permissions: [] })).status).toBe(409)
    expect((await asRoot('PATCH', `${ROLES}/${other.document_id}`, { name: 'Taken' })).status).toBe(409)
  })

  test('of the service cannot be changed or deleted', async () => {
    for (const name of ['administrator', 'member']) {
      const path = `${ROLES}/${(await findRoleByName(app.db, name))!.id}`
      expect(await asRoot('DELETE', path)).toMatchObject({ status: 409, body: { code: 'conflict' } })
      expect((await asRoot('PATCH', path, { description: 'other' })).status).toBe(409)
      expect((await asRoot('PATCH', path, { permissions: [] })).status).toBe(409)
    }
  })

  test('take effect with the next request when assigned, changed, removed or deleted', async () => {
    const someone = await app.user('changing')
    const mayList = async () => (await app.call('GET', USERS, { token: someone.token })).status
    const setRoles = (roles: string[]) => asRoot('PATCH', `${USERS}/${someone.user.id}`, { roles })
    const role = await createRole('Reader', ['user:find-all'])
    expect(await mayList()).toBe(403)
    await setRoles([role.document_id])
    expect(await mayList()).toBe(200)
    await asRoot('PATCH', `${ROLES}/${role.document_id}`, { permissions: ['user:find-one'] })
    expect(await mayList()).toBe(403)
    await asRoot('PATCH', `${ROLES}/${role.document_id}`, { permissions: ['user:*'] })
    expect(await mayList()).toBe(200)
    await setRoles([])
    expect(await mayList()).toBe(403)
    await setRoles([role.document_id])
    await asRoot('DELETE', `${ROLES}/${role.document_id}`)
    expect(await mayList()).toBe(403)
  })
})

describe('at start', () => {
  test('the system roles are restored, repeatedly and by concurrent processes', async () => {
    const now = new Date(app.clock.now())
    const administrator = (await findRoleByName(app.db, 'administrator'))!
    await app.db.deleteFrom('role_permission').where('role', '=', administrator.id).execute()
    await app.db.insertInto('role_permission').values({ role: administrator.id, pattern: 'user:create' }).execute()
    const makeRoles = () => app.db.transaction().execute((tx) => ensureSystemRoles(tx, { ids: app.ids, now }))
    await Promise.all([makeRoles(), makeRoles(), makeRoles()])
    const roles = (await asRoot('GET', `${ROLES}?filters=is_system|eq|true&sort=name`)).body.data
    expect(roles.slice(0, 4)).toMatchObject([
      { name: 'account-admin', is_account_scoped: true },
      { name: 'account-developer', is_account_scoped: true },
      { name: 'account-publisher', is_account_scoped: true },
      { name: 'account-viewer', is_account_scoped: true },
    ])
    expect(roles.slice(4)).toMatchObject([
      { name: 'administrator', permissions: ['*:*'], is_account_scoped: false },
      { name: 'member', permissions: ['account:find-one', 'contract:*', 'realtime:auth'], is_account_scoped: true },
    ])
    expect(roles[4].document_id).toBe(administrator.id)
  })

  test('only an active user counts as an administrator', async () => {
    expect(await hasAdministrator(app.db)).toBe(true)
    const setActive = (is_actived: boolean) =>
      app.db.updateTable('user').set({ is_actived }).where('document_id', '=', root.user.id).execute()
    await setActive(false)
    expect(await hasAdministrator(app.db)).toBe(false)
    await setActive(true)
  })

  test('the table of permissions is synchronized with the routes, and its list has pages', async () => {
    const now = new Date(app.clock.now())
    const names = ['a:one', 'b:two', 'c:three']
    const permissions = names.map((name) => ({ name, description: `About ${name}` }))
    await syncPermissions(app.db, { permissions, now })
    const first = await asRoot('GET', '/api/v3/identity/permission?sort=name&page_size=2&count=true')
    expect(first.body.pagination.total).toBe(3)
    const cursor = encodeURIComponent(first.body.pagination.next_cursor)
    const second = await asRoot('GET', `/api/v3/identity/permission?sort=name&page_size=2&cursor=${cursor}`)
    expect([...first.body.data, ...second.body.data].map(({ name }) => name)).toEqual(names)
    await syncPermissions(app.db, { permissions: [{ name: 'a:one', description: 'Other words' }], now })
    const left = await asRoot('GET', '/api/v3/identity/permission')
    expect(left.body.data).toMatchObject([{ name: 'a:one', description: 'Other words' }])
  })
})
