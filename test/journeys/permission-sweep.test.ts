import { afterEach, expect, test } from 'vitest'
import { listPermissions, ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import { permissionOf, type RouteDeclaration } from '../../src/http/route/route.ts'
import { matchesPattern } from '../../src/http/shape/caller.ts'
import { createTestApp, type TestAnswer, type TestCall } from '../harness/app/app.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

const ROUTES: readonly RouteDeclaration[] = ROUTE_TREE
const GUARDED = ROUTES.filter((route) => (route.access ?? 'permission') === 'permission')
const SIGNED_IN = ROUTES.filter((route) => route.access === 'caller')
const PUBLIC = ROUTES.filter((route) => route.access === 'public')

/** Permissions of `member` in the accounts of the user (docs/contract/identity.md#system-roles). */
const MEMBER_PATTERNS = ['realtime:auth', 'account:find-one', 'contract:*']
const isOpenToMembers = (route: RouteDeclaration) =>
  route.ownAccounts === true && MEMBER_PATTERNS.some((pattern) => matchesPattern(pattern, permissionOf(route)))

const NO_ONE = '01990000-0000-7000-8000-000000000000'
const titleOf = (route: RouteDeclaration) => `${route.method} ${route.path}`
const pathOf = (route: RouteDeclaration) => route.path.replaceAll(/\{\w+\}/g, NO_ONE)
const ask = (call: TestCall, route: RouteDeclaration): Promise<TestAnswer> => call(route.method, pathOf(route))

const keys: string[] = []

const app = await openForFile(createTestApp())
const member = (await app.signInMember()).call
/** Calls as a key of the administrator that holds these permissions, until the test ends. */
const administratorKey = async (permissions: string[]): Promise<TestCall> => {
  const { body } = await app.admin('POST', '/api/v3/identity/api-key', { name: 'sweep', permissions })
  keys.push(body.data.document_id)
  return app.callAs(body.data.key)
}
/** Calls as a user who holds these permissions in one account only, by the only role that it has. */
const holdInAccount = await buildAccountHolder()
/** The role is written to the table, since the API refuses one whose permissions have no effect in an account. */
async function buildAccountHolder() {
  const { pool } = app.database
  const account = (await app.admin('POST', '/api/v3/identity/account', { name: 'Sweep' })).body.data.document_id
  const made = { name: 'sweep', permissions: ['contract:create'], is_account_scoped: true }
  const role = (await app.admin('POST', '/api/v3/identity/role', made)).body.data.document_id
  const { call, userId } = await app.signInMember([account])
  const path = `/api/v3/identity/account/${account}/member`
  await app.admin('PATCH', path, { user: userId, roles: [role] })
  await app.admin('PATCH', `/api/v3/identity/user/${userId}`, { roles: [] })
  return async (permissions: readonly string[]): Promise<TestCall> => {
    await pool.query('delete from role_permission where role = $1', [role])
    await pool.query('insert into role_permission (role, pattern) select $1, unnest($2::text[])', [role, permissions])
    return call
  }
}

// A user has 100 keys at most.
afterEach(async () => {
  for (const id of keys.splice(0)) await app.admin('DELETE', `/api/v3/identity/api-key/${id}`)
})

test('the sweep covers the whole tree: every route needs a permission, needs a caller, or is public', () => {
  expect(GUARDED.length + SIGNED_IN.length + PUBLIC.length).toBe(ROUTES.length)
  expect(GUARDED.length).toBeGreaterThan(40)
})

test('only sign-in, refresh, health, the settings of realtime connections, public keys and signed webhooks are public', () => {
  const modules = PUBLIC.map((route) => titleOf(route)).sort()
  expect(modules.filter((title) => !/ \/api\/v3\/(auth|health|oauth)(\/|$)/.test(title))).toEqual([
    'GET /api/v3/realtime/realtime/config',
    'GET /api/v3/webhook/webhook/{id}/jwks',
    'POST /api/v3/realtime/realtime/webhook',
  ])
})

test.each([...GUARDED, ...SIGNED_IN].map((route) => [titleOf(route), route] as const))(
  '%s refuses a caller without a token, with 401 and WWW-Authenticate',
  async (_title, route) => {
    for (const call of [app.anonymous, app.callAs('no.such.token'), app.callAs('sbx_forged')]) {
      const answer = await ask(call, route)
      expect(answer.status).toBe(401)
      expect(answer.body.code).toBe('unauthenticated')
      expect(answer.headers['www-authenticate']).toMatch(/^Bearer/)
    }
  },
)

test.each(GUARDED.filter((route) => !isOpenToMembers(route)).map((route) => [titleOf(route), route] as const))(
  '%s refuses a member, with 403 that names the permission',
  async (_title, route) => {
    const answer = await ask(member, route)
    expect(answer.status).toBe(403)
    expect(answer.body.code).toBe('permission_denied')
    expect(answer.body.detail).toContain(permissionOf(route))
  },
)

test.each(GUARDED.filter(isOpenToMembers).map((route) => [titleOf(route), route] as const))(
  '%s is open to members, for rows of their accounts',
  async (_title, route) => {
    const answer = await ask(member, route)
    expect([200, 404, 422]).toContain(answer.status)
    expect(answer.body.code).not.toBe('permission_denied')
  },
)

test('a member reaches only the contracts of own accounts, and reads these accounts', () => {
  const open = GUARDED.filter(isOpenToMembers).map((route) => permissionOf(route))
  for (const permission of open) expect(permission).toMatch(/^(contract:[a-z-]+|account:find-one|realtime:auth)$/)
  expect(open).toEqual(expect.arrayContaining(['contract:create', 'contract:find-all', 'account:find-one']))
})

test.each(GUARDED.map((route) => [titleOf(route), route] as const))(
  '%s is open with exactly its permission, and refused with all others',
  async (_title, route) => {
    const permission = permissionOf(route)
    const opened = await ask(await administratorKey([permission]), route)
    expect([401, 403], JSON.stringify(opened.body)).not.toContain(opened.status)
    const others = listPermissions(ROUTES).filter(({ name }) => name !== permission)
    const refused = await ask(await administratorKey(others.map(({ name }) => name)), route)
    expect(refused.status).toBe(403)
    expect(refused.body.detail).toContain(permission)
  },
)

test.each(GUARDED.map((route) => [titleOf(route), route] as const))(
  '%s is open with its permission in one account exactly if it looks at the owner, and a refusal says what is missing',
  async (_title, route) => {
    const permission = permissionOf(route)
    const asked = await ask(await holdInAccount([permission]), route)
    if (route.ownAccounts) expect([401, 403], JSON.stringify(asked.body)).not.toContain(asked.status)
    else expect(asked).toMatchObject({ status: 403, body: { missing: { what: 'scope', permission } } })
    const others = listPermissions(ROUTES).filter(({ name }) => name !== permission)
    const refused = await ask(await holdInAccount(others.map(({ name }) => name)), route)
    expect(refused).toMatchObject({ status: 403, body: { missing: { what: 'permission', permission } } })
  },
)

test('an account-scoped role takes exactly the permissions that have an effect in an account', async () => {
  const open = ROUTES.filter((route) => route.ownAccounts).map(permissionOf)
  for (const { name: permission } of listPermissions(ROUTES)) {
    const body = { name: `in an account: ${permission}`, permissions: [permission], is_account_scoped: true }
    const made = await app.admin('POST', '/api/v3/identity/role', body)
    const errors = [{ path: 'permissions.0', code: 'no_effect_in_scope' }]
    if (open.includes(permission)) expect(made.status, permission).toBe(201)
    else expect(made, permission).toMatchObject({ status: 422, body: { errors } })
    if (made.status === 201) await app.admin('DELETE', `/api/v3/identity/role/${made.body.data.document_id}`)
  }
})

test('the built-in account roles hold nothing without an effect', async () => {
  const { body } = await app.admin('GET', '/api/v3/identity/role?filters=is_system|eq|true&page_size=200')
  const scoped = body.data.filter((role: { is_account_scoped: boolean }) => role.is_account_scoped)
  const open = ROUTES.filter((route) => route.ownAccounts).map(permissionOf)
  expect(scoped.length).toBeGreaterThan(4)
  for (const { permissions } of scoped)
    for (const pattern of permissions)
      expect(
        open.some((item) => matchesPattern(pattern, item)),
        pattern,
      ).toBe(true)
})

test.each(PUBLIC.map((route) => [titleOf(route), route] as const))('%s needs no token', async (_title, route) => {
  const answer = await ask(app.anonymous, route)
  expect(answer.body.code).not.toBe('unauthenticated')
  expect(answer.status).not.toBe(403)
})

test('the permissions of the database are those of the declarations, each with its description', async () => {
  const { body } = await app.admin('GET', '/api/v3/identity/permission?page_size=200&count=true')
  const rows = body.data.map((row: { name: string; description: string }) => ({
    name: row.name,
    description: row.description,
  }))
  const needed = listPermissions(ROUTES)
  expect(body.pagination.total).toBe(needed.length)
  expect(rows.toSorted((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1))).toEqual(needed)
})

test('no refusal changed anything: the sweep recorded only events of its own keys', async () => {
  const { rows } = await app.database.pool.query('select distinct event from event_occurrence')
  const expected = [
    'account.create',
    'account-member.create',
    'account-member.update',
    'api-key.create',
    'api-key.delete',
    'role.create',
    'role.delete',
    'user.update',
    'webhook.catalogue-sync',
  ]
  expect(rows.map((row) => row.event).filter((event) => !expected.includes(event))).toEqual([])
})
