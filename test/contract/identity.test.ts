import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../harness/app/app.ts'
import { TEST_SECRETS } from '../harness/app/test-secrets.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { startHere } from '../harness/process/local-start.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { expectProblem, type Json } from './contract-fixture.ts'

const IDENTITY = '/api/v3/identity'
const WEBHOOKS = '/api/v3/webhook/webhook'
const CONTRACTS = '/api/v3/contract/contract'
const LOGIN = '/api/v3/auth/login/local'
let database: TestDatabase
let app: TestApp
/** A second process on the same database. */
let other: TestApp

beforeAll(async () => {
  database = await createTestDatabase({ content: 'prepared' })
  app = await createTestApp({ database })
  other = await createTestApp({ database, clock: app.clock })
})
afterAll(async () => {
  await other[Symbol.asyncDispose]()
  await app[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

/** The permissions of the contract's table (Authentication 2) that are built. */
const CONTRACT_PERMISSIONS = [
  'webhook:find-all',
  'webhook:find-one',
  'webhook:create',
  'webhook:update',
  'webhook:delete',
  'webhook:purge',
  'webhook:active',
  'webhook:rotate-secret',
  'webhook:test',
  'webhook:export',
  'webhook:dashboard',
  'webhook:catalogue-status',
  'webhook-event:set',
  'webhook-event:create',
  'webhook-event:find-all',
  'webhook-event:find-one',
  'webhook-event:update',
  'webhook-event:delete',
  'webhook-dispatch:find-all',
  'webhook-dispatch:find-one',
  'webhook-dispatch:replay',
  'event:find-all',
  'event:find-one',
]

async function createAccount() {
  return (await app.admin('POST', `${IDENTITY}/account`, { name: 'Acme' })).body.data.document_id
}

async function createRole(permissions: string[], more: object = {}) {
  const name = `role-${permissions.join('-').replace(/[^a-z-]/g, '')}-${Math.floor(app.clock.now())}`
  app.clock.advance(1)
  return (await app.admin('POST', `${IDENTITY}/role`, { name, permissions, ...more })).body.data
}

/** A signed-in user who holds exactly these roles besides `member`. */
async function signInWith(roles: string[]) {
  const member = await app.signInMember()
  const changed = await app.admin('PATCH', `${IDENTITY}/user/${member.userId}`, { roles })
  expect(changed.status, JSON.stringify(changed.body)).toBe(200)
  return member
}

async function listPermissions(): Promise<string[]> {
  const { body } = await app.admin('GET', `${IDENTITY}/permission?page_size=200`)
  expect(body.pagination.next_cursor).toBeNull()
  return body.data.map((row: Json) => row.name)
}

test('identity#permissions: every permission of the table exists', async () => {
  expect(await listPermissions()).toEqual(expect.arrayContaining(CONTRACT_PERMISSIONS))
})

test('identity#system-roles: all permissions on webhooks, events and the ledger are granted to administrator only, the account roles to nobody', async () => {
  const { body } = await app.admin('GET', `${IDENTITY}/role?page_size=200`)
  const holders = body.data
    .filter((role: Json) => role.is_system)
    .filter((role: Json) =>
      role.permissions.some((pattern: string) => /^(\*|webhook|webhook-event|webhook-dispatch|event):/.test(pattern)),
    )
  const names = holders.map((role: Json) => role.name)
  expect(names.filter((name: string) => !name.startsWith('account-'))).toEqual(['administrator'])
  const { rowCount } = await app.database.pool.query(
    `select from role r where r.is_system and r.name like 'account-%' and (
       exists (select from user_role ur where ur.role = r.document_id)
       or exists (select from account_member_role mr where mr.role = r.document_id))`,
  )
  expect(rowCount).toBe(0)
})

test('identity#system-roles: one matching permission opens its route only', async () => {
  const role = await createRole(['webhook:find-all'])
  const { call } = await signInWith([role.document_id])
  expect((await call('GET', WEBHOOKS)).status).toBe(200)
  const refused = expectProblem(await call('POST', WEBHOOKS, {}), 403, 'permission_denied')
  expect(refused.detail).toContain('webhook:create')
})

test('identity#tables: the tables have their names', async () => {
  const { rows } = await database.pool.query(
    `select table_name from information_schema.tables where table_schema = 'public'`,
  )
  const names = rows.map((row) => row.table_name)
  for (const name of [
    'user',
    'account',
    'account_member',
    'role',
    'permission',
    'role_permission',
    'user_role',
    'session',
    'identity',
    'audit_log',
  ])
    expect(names).toContain(name)
})

test('identity#tables: users, accounts and roles have their CRUD under /api/v3/identity', async () => {
  const bodies = {
    user: [{ email: 'crud@example.com' }, { name: 'Crud' }],
    account: [{ name: 'Crud' }, { name: 'Cruder' }],
    role: [{ name: 'crud', permissions: [] }, { description: 'of the test' }],
  } as const
  for (const [noun, [create, update]] of Object.entries(bodies)) {
    const path = `${IDENTITY}/${noun}`
    const created = await app.admin('POST', path, create)
    expect(created.status, noun).toBe(201)
    const own = `${path}/${created.body.data.document_id}`
    expect((await app.admin('GET', own)).body.data).toEqual(created.body.data)
    expect((await app.admin('PATCH', own, update)).body.data).toMatchObject(update)
    expect((await app.admin('GET', path)).body.data.length).toBeGreaterThan(0)
    expect((await app.admin('DELETE', own)).status).toBe(200)
    expectProblem(await app.admin('GET', own), 404, 'not_found')
  }
})

test('identity#tables: a user is created with email, name?, password? and roles?, and can sign in with the password', async () => {
  const role = await createRole(['webhook:find-all'])
  const body = {
    email: 'whole@example.com',
    name: 'Whole',
    password: 'correct horse battery',
    roles: [role.document_id],
  }
  const created = await app.admin('POST', `${IDENTITY}/user`, body)
  expect(created.body.data).toMatchObject({ email: body.email, name: 'Whole', has_password: true })
  expect(created.body.data.roles).toContain(role.document_id)
  expect(JSON.stringify(created.body)).not.toContain(body.password)
  const login = await app.anonymous('POST', '/api/v3/auth/login/local', { email: body.email, password: body.password })
  expect(login.status).toBe(200)
  expect((await app.callAs(login.body.data.jwt)('GET', WEBHOOKS)).status).toBe(200)
})

test('identity#tables: members are added, listed and removed under the account with { user }', async () => {
  const account = await createAccount()
  const { userId } = await app.signInMember()
  const path = `${IDENTITY}/account/${account}/member`
  expect((await app.admin('POST', path, { user: userId })).body.data).toMatchObject({ account, user: userId })
  expect((await app.admin('GET', path)).body.data).toMatchObject([{ user: userId }])
  expect((await app.admin('DELETE', path, { user: userId })).status).toBe(200)
  expect((await app.admin('GET', path)).body.data).toEqual([])
})

test('identity#system-roles: administrator holds *:*, member holds realtime:auth, account:find-one and contract:* for own accounts', async () => {
  const { body } = await app.admin('GET', `${IDENTITY}/role?filters=is_system|eq|true`)
  const byName = Object.fromEntries(body.data.map((role: Json) => [role.name, role]))
  expect(byName.administrator).toMatchObject({ permissions: ['*:*'], is_account_scoped: false })
  expect(byName.member.is_account_scoped).toBe(true)
  expect(byName.member.permissions.toSorted()).toEqual(['account:find-one', 'contract:*', 'realtime:auth'])
})

test('identity#system-roles: a role change takes effect on the next request, in every process', async () => {
  const role = await createRole(['webhook:find-all'])
  const member = await app.signInMember()
  const ask = async () => [
    (await member.call('GET', WEBHOOKS)).status,
    (await other.callAs(member.token)('GET', WEBHOOKS)).status,
  ]
  expect(await ask()).toEqual([403, 403])
  await app.admin('PATCH', `${IDENTITY}/user/${member.userId}`, { roles: [role.document_id] })
  expect(await ask()).toEqual([200, 200])
  await app.admin('PATCH', `${IDENTITY}/role/${role.document_id}`, { permissions: ['webhook:*'] })
  expect(await ask()).toEqual([200, 200])
  await app.admin('PATCH', `${IDENTITY}/role/${role.document_id}`, { permissions: ['contract:*'] })
  expect(await ask()).toEqual([403, 403])
})

test('identity#system-roles, identity#tables: disable and revoke-sessions take effect on the next request, in every process', async () => {
  for (const action of ['disable', 'revoke-sessions']) {
    const member = await app.signInMember()
    const ask = async () => [
      (await member.call('GET', '/api/v3/auth/session')).status,
      (await other.callAs(member.token)('GET', '/api/v3/auth/session')).status,
    ]
    expect(await ask()).toEqual([200, 200])
    expect((await app.admin('POST', `${IDENTITY}/user/${member.userId}/${action}`)).status).toBe(200)
    expect(await ask()).toEqual([401, 401])
  }
})

test('api#worked-example: a member has the CRUD of contracts of own accounts, and of no others', async () => {
  const [own, foreign] = [await createAccount(), await createAccount()]
  const { call } = await app.signInMember([own])
  const created = await call('POST', CONTRACTS, { account: own, name: 'Lease' })
  expect(created.status).toBe(201)
  expect(created.body.data).toMatchObject({ name: 'Lease', account: own, status: expect.any(String) })
  const path = `${CONTRACTS}/${created.body.data.document_id}`
  expect((await call('GET', path)).status).toBe(200)
  expect((await call('PATCH', path, { status: 'active' })).body.data.status).toBe('active')
  const strange = (await app.admin('POST', CONTRACTS, { account: foreign, name: 'Not yours' })).body.data
  const list = (await call('GET', `${CONTRACTS}?page_size=200`)).body.data
  expect(list.map((row: Json) => row.document_id)).toEqual([created.body.data.document_id])
  for (const method of ['GET', 'DELETE'] as const)
    expect([403, 404]).toContain((await call(method, `${CONTRACTS}/${strange.document_id}`)).status)
  expect([403, 404, 422]).toContain((await call('POST', CONTRACTS, { account: foreign, name: 'x' })).status)
  expect((await call('DELETE', path)).status).toBe(200)
})

test('identity#first-administrator: signalbox admin create creates an administrator who can sign in', async () => {
  const env = {
    APP_ENV: 'test',
    DATABASE_URL: database.connectionString,
    SECRET_KEY: TEST_SECRETS.secretKey.join(),
    SESSION_JWT_SECRET: TEST_SECRETS.sessionJwt.join(),
    SSO_HANDSHAKE_SECRET: TEST_SECRETS.ssoHandshake.join(),
    OAUTH_HOOK_SECRET: TEST_SECRETS.oauthHook.join(),
    SIGNALBOX_ADMIN_PASSWORD: 'correct horse battery',
  }
  const { stdout } = await runCommand(['admin', 'create', '--email', 'first@example.com'], { env })
  expect(stdout).toContain('first@example.com')
  expect(stdout).not.toContain('correct horse battery')
  const login = await app.anonymous('POST', '/api/v3/auth/login/local', {
    email: 'first@example.com',
    password: 'correct horse battery',
  })
  expect(login.status).toBe(200)
  expect((await app.callAs(login.body.data.jwt)('GET', WEBHOOKS)).status).toBe(200)
})

test('identity#first-administrator: in development the first start creates an administrator, whose password is configured or printed once', async () => {
  const check = async (given: string | undefined) => {
    await using fresh = await createTestDatabase()
    const env = {
      ...buildServiceEnvironment(fresh.connectionString),
      APP_ENV: 'development',
      SIGNALBOX_ADMIN_EMAIL: 'boss@example.com',
      ...(given !== undefined && { SIGNALBOX_ADMIN_PASSWORD: given }),
    }
    await using first = startHere(env)
    const [, printed] = await first.waitForOutput(/Sign in as boss@example\.com with the password (?:of )?(\S+)/)
    expect(printed === 'SIGNALBOX_ADMIN_PASSWORD.').toBe(given !== undefined)
    if (given === 'Password123!') await first.waitForOutput(/that password is refused: it is one of the passwords/)
    const { rows } = await fresh.pool.query('select password_hash from "user"')
    expect(rows).toEqual([{ password_hash: expect.stringMatching(/^\$argon2id\$v=19\$m=64,t=1,/) }])
    const password = given ?? printed
    const login = await app.anonymous('POST', '/api/v3/auth/login/local', { email: 'boss@example.com', password })
    expect(login.status, 'of another database').toBe(401)
    await using same = await createTestApp({ database: fresh })
    expect(
      (await same.anonymous('POST', '/api/v3/auth/login/local', { email: 'boss@example.com', password })).status,
    ).toBe(200)
    await first.stop()
    if (given !== undefined) return
    await using second = startHere(env)
    await second.waitForOutput(/Sign in as boss@example\.com/)
    expect(second.stdout()).not.toContain(password)
  }
  await Promise.all([check('correct horse battery'), check('Password123!'), check(undefined)])
})

test('identity#api-keys: an API key is sbx_ and 32 random bytes, shown once, stored hashed, and a bearer token', async () => {
  const created = await app.admin('POST', `${IDENTITY}/api-key`, { name: 'ci', permissions: ['webhook:find-all'] })
  const { key, document_id: id } = created.body.data
  expect(key).toMatch(/^sbx_[A-Za-z0-9_-]{43}$/)
  const call = app.callAs(key)
  expect((await call('GET', WEBHOOKS)).status).toBe(200)
  expectProblem(await call('POST', WEBHOOKS, {}), 403, 'permission_denied')
  for (const path of [`${IDENTITY}/api-key`, `${IDENTITY}/api-key/${id}`])
    expect(JSON.stringify((await app.admin('GET', path)).body)).not.toContain(key)
  const { rows } = await database.pool.query('select k::text as text from api_key k')
  for (const { text } of rows) expect(text).not.toContain(key.slice(4))
})

test('identity#api-keys: last use is recorded, an expired key is refused, a revoked one at once in every process', async () => {
  const expiresAt = new Date(app.clock.now() + 600_000).toISOString()
  const body = { name: 'short', permissions: ['webhook:find-all'], expires_at: expiresAt }
  const { key, document_id: id } = (await app.admin('POST', `${IDENTITY}/api-key`, body)).body.data
  await app.callAs(key)('GET', WEBHOOKS)
  expect((await app.admin('GET', `${IDENTITY}/api-key/${id}`)).body.data.last_used_at).not.toBeNull()
  app.clock.advance(600_000)
  expectProblem(await app.callAs(key)('GET', WEBHOOKS), 401, 'unauthenticated')
  const second = (await app.admin('POST', `${IDENTITY}/api-key`, { name: 'gone', permissions: ['webhook:find-all'] }))
    .body.data
  expect((await other.callAs(second.key)('GET', WEBHOOKS)).status).toBe(200)
  await app.admin('DELETE', `${IDENTITY}/api-key/${second.document_id}`)
  for (const process of [app, other])
    expectProblem(await process.callAs(second.key)('GET', WEBHOOKS), 401, 'unauthenticated')
})

test('identity#api-keys: a key holds a subset of the permissions of its owner', async () => {
  const { call } = await app.signInMember()
  const created = await call('POST', `${IDENTITY}/api-key`, { name: 'all', permissions: ['*:*'] })
  if (created.status === 201)
    expectProblem(await app.callAs(created.body.data.key)('GET', WEBHOOKS), 403, 'permission_denied')
  else expectProblem(created, 403, 'permission_denied')
})

test('identity#delegation: a token without the permissions of an owner cannot take over the owner, join the account, or delete or empty its role', async () => {
  const owning = await createRole(['account:*', 'webhook:create'], { is_account_scoped: true })
  const account = await createAccount()
  const owner = await signInWith([owning.document_id])
  await app.admin('POST', `${IDENTITY}/account/${account}/member`, { user: owner.userId })
  const clerk = await app.signInMember()
  const roles = [
    ...(await app.admin('GET', `${IDENTITY}/user/${clerk.userId}`)).body.data.roles,
    (await createRole(['user:*', 'role:*', 'account-member:*'])).document_id,
  ]
  await app.admin('PATCH', `${IDENTITY}/user/${clerk.userId}`, { roles })
  const user = `${IDENTITY}/user/${owner.userId}`
  const role = `${IDENTITY}/role/${owning.document_id}`
  for (const [method, path, body] of [
    ['PATCH', user, { password: 'now it is mine' }],
    ['PATCH', user, { email: 'mine@example.com' }],
    ['POST', `${user}/disable`, undefined],
    ['POST', `${user}/revoke-sessions`, undefined],
    ['DELETE', user, undefined],
    ['POST', `${IDENTITY}/account/${account}/member`, { user: clerk.userId }],
    ['DELETE', `${IDENTITY}/account/${account}/member`, { user: owner.userId }],
    ['PATCH', role, { permissions: [] }],
    ['DELETE', role, undefined],
  ] as const) {
    const refused = expectProblem(await clerk.call(method, path, body), 403, 'permission_denied')
    expect(refused.detail, `${method} ${path}`).toMatch(
      /[a-z-]+:(\*|[a-z-]+) (everywhere|in the account [0-9a-f-]{36})/,
    )
  }
  expect((await owner.call('GET', `${IDENTITY}/account/${account}`)).status).toBe(200)
})

test('identity#api-keys: a password reset, revoke-sessions and disabling revoke the keys unless keep_api_keys is true, and enabling restores none', async () => {
  for (const [method, suffix, body] of [
    ['PATCH', '', { password: 'another horse battery' }],
    ['POST', '/revoke-sessions', {}],
    ['POST', '/disable', {}],
  ] as const)
    for (const keep of [false, true]) {
      const member = await app.signInMember()
      const made = await member.call('POST', `${IDENTITY}/api-key`, { name: 'ci', permissions: ['contract:*'] })
      const path = `${IDENTITY}/user/${member.userId}`
      const ended = await app.admin(method, `${path}${suffix}`, { ...body, ...(keep && { keep_api_keys: true }) })
      expect(ended.status, JSON.stringify(ended.body)).toBe(200)
      await app.admin('POST', `${path}/enable`)
      const call = app.callAs(made.body.data.key)
      expect((await call('GET', CONTRACTS)).status, `${suffix} ${keep}`).toBe(keep ? 200 : 401)
    }
})

test('identity#api-keys: a key created with a key expires no later than it, and a user has at most 100 valid keys', async () => {
  const path = `${IDENTITY}/api-key`
  const role = await createRole(['api-key:create'])
  const member = await signInWith([role.document_id])
  const expires_at = new Date(app.clock.now() + 60_000).toISOString()
  const body = { name: 'maker', permissions: ['api-key:create'] }
  const maker = await member.call('POST', path, { ...body, expires_at })
  const made = await app.callAs(maker.body.data.key)('POST', path, body)
  expect(made.body.data.expires_at).toBe(expires_at)
  for (let live = 2; live < 100; live += 1) expect((await member.call('POST', path, body)).status).toBe(201)
  expect(expectProblem(await member.call('POST', path, body), 409, 'limit_reached').detail).toContain('100')
})

test('delivery#holding: deleting an account makes its webhooks inactive with account-deleted, and they cannot be activated', async () => {
  const account = await createAccount()
  const created = await app.admin('POST', WEBHOOKS, { url: 'https://hooks.example.com/', account })
  const path = `${WEBHOOKS}/${created.body.data.document_id}`
  expect((await app.admin('DELETE', `${IDENTITY}/account/${account}`)).status).toBe(200)
  const { data } = (await app.admin('GET', path)).body
  expect(data).toMatchObject({ is_actived: false, disabled_reason: 'account-deleted' })
  expectProblem(await app.admin('PATCH', `${path}/active`, { is_actived: true }), 409, 'conflict')
})

test('sessions#local-sign-in: failures lock e-mail and address together, delay the e-mail from other addresses by at most 30 s, and a reset clears both', async () => {
  const email = 'guessed@example.com'
  const password = 'correct horse battery'
  const user = (await app.admin('POST', `${IDENTITY}/user`, { email, password })).body.data
  const attempt = async (word: string, remoteAddress: string) => {
    const payload = { email, password: word }
    const reply = await app.app.server.inject({ method: 'POST', url: LOGIN, payload, remoteAddress })
    return { status: reply.statusCode, waitSeconds: Number(reply.headers['retry-after'] ?? 0) }
  }
  for (let step = 1; step <= 10; step += 1) {
    expect((await attempt('wrong', '192.0.2.1')).status).toBe(401)
    if (step < 10) app.clock.advance(30_000)
  }
  expect(await attempt(password, '192.0.2.1')).toEqual({ status: 429, waitSeconds: 900 })
  expect(await attempt(password, '192.0.2.2')).toEqual({ status: 429, waitSeconds: 30 })
  app.clock.advance(30_000)
  expect((await attempt(password, '192.0.2.2')).status).toBe(200)
  expect((await attempt(password, '192.0.2.1')).status).toBe(429)
  const changed = await app.admin('PATCH', `${IDENTITY}/user/${user.document_id}`, {
    password: 'another horse battery',
  })
  expect(changed.status).toBe(200)
  expect((await attempt('another horse battery', '192.0.2.1')).status).toBe(200)
})

test('configuration#cost-of-password-hashes: passwords are hashed at the cost of the settings, and a sign-in renews a hash of another cost, lower or higher', async () => {
  const email = 'renewed@example.com'
  const password = 'correct horse battery'
  const made = await app.admin('POST', `${IDENTITY}/user`, { email, password })
  const readHash = async () => {
    const read = 'select password_hash from "user" where document_id = $1'
    return (await database.pool.query(read, [made.body.data.document_id])).rows[0].password_hash
  }
  expect(await readHash()).toMatch(/^\$argon2id\$v=19\$m=64,t=1,/)
  const env = { PASSWORD_HASH_MEMORY: '128', PASSWORD_HASH_PASSES: '3' }
  await using changed = await createTestApp({ database, clock: app.clock, env })
  expect((await changed.anonymous('POST', LOGIN, { email, password })).status).toBe(200)
  expect(await readHash()).toMatch(/^\$argon2id\$v=19\$m=128,t=3,/)
  expect((await app.anonymous('POST', LOGIN, { email, password })).status).toBe(200)
  expect(await readHash()).toMatch(/^\$argon2id\$v=19\$m=64,t=1,/)
})
