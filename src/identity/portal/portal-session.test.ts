import { describe, expect, test } from 'vitest'
import { type Json, startContractFixture } from '../../../test/contract/contract-fixture.ts'
import { createTestApp, type TestAnswer, type TestCall } from '../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../test/harness/app/known-password.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { ROUTE_TREE } from '../../app/feature/route-tree.ts'
import { operationIdOf, type RouteDeclaration } from '../../http/route/route.ts'
import { matchesPattern } from '../../http/shape/caller.ts'
import { PORTAL_ROLES } from '../access/system-roles.ts'

const KEYS = '/api/v3/identity/api-key'
const HOOKS = '/api/v3/webhook/webhook'
const OPEN = '/api/v3/auth/portal-session/open'
const END = '/api/v3/auth/portal-session/end'
const pathOf = (account: string) => `/api/v3/identity/account/${account}/portal-session`

const fixture = await openForFile(startContractFixture({ env: { RATE_LIMIT_STRICT_PER_MINUTE: '100000' } }))
const mine: string = (await fixture.createAccount()).document_id
const other: string = (await fixture.createAccount()).document_id

const administrator = () => fixture.app.callAs(fixture.app.adminToken)

/** A key of the administrator, as a platform has one. */
async function makeKey(
  body: object = {},
  maker: TestCall = administrator(),
): Promise<{ id: string; key: string; call: TestCall }> {
  const made = await maker('POST', KEYS, { name: 'platform', permissions: ['*:*'], ...body })
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  const { document_id: id, key } = made.body.data
  return { id, key, call: fixture.app.callAs(key) }
}

const linkOf = (made: TestAnswer): string => made.body.data.url.split('#token=')[1]

async function makeLink(call: TestCall, body: object = {}, account = mine): Promise<{ id: string; link: string }> {
  const made = await call('POST', pathOf(account), { role: 'account-developer', ...body })
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  return { id: made.body.data.document_id, link: linkOf(made) }
}

const open = (token: string) => fixture.app.anonymous('POST', OPEN, { token })

async function openSession(call: TestCall, body: object = {}, account = mine) {
  const { link } = await makeLink(call, body, account)
  const { data } = (await open(link)).body
  return { id: data.document_id as string, token: data.token as string, data, call: fixture.app.callAs(data.token) }
}

const audit = async (filter: string): Promise<Json[]> =>
  (await administrator()('GET', `/api/v3/audit/log?filters=${filter}&sort=-created_at`)).body.data

describe('a link', () => {
  test('opens the portal of one account once, for a visitor who is not a user', async () => {
    const { call, id: key } = await makeKey()
    const made = await call('POST', pathOf(mine), {
      role: 'account-developer',
      external_user: 'jo@customer.example',
      theme: 'dark',
      language: 'de',
    })
    expect(made.status).toBe(201)
    expect(made.body.data).toMatchObject({ account: mine, api_key: key, role: 'account-developer', status: 'waiting' })
    expect(made.body.data.url).toMatch(/\/portal\?theme=dark&language=de#token=sbl_[\w-]{43}$/)
    const opened = await open(linkOf(made))
    expect(opened.status).toBe(200)
    expect(opened.body.data).toMatchObject({
      document_id: made.body.data.document_id,
      account: { document_id: mine },
      role: 'account-developer',
      external_user: 'jo@customer.example',
      permissions: [...PORTAL_ROLES['account-developer']],
    })
    const hooks = await fixture.app.callAs(opened.body.data.token)('GET', HOOKS)
    expect(hooks.status).toBe(200)
    const [listed] = (await call('GET', `${pathOf(mine)}?filters=document_id|eq|${made.body.data.document_id}`)).body
      .data
    expect(listed).toMatchObject({ status: 'open', external_user: 'jo@customer.example' })
    expect(JSON.stringify(listed)).not.toMatch(/sb[lp]_/)
  })

  test('that was used opens nothing again, ends nothing, and leaves an entry that names its session', async () => {
    const { call } = await makeKey()
    const { id, link } = await makeLink(call, { external_user: 'jo' })
    const { token } = (await open(link)).body.data
    const replay = await open(link)
    expect([replay.status, replay.body.code]).toEqual([410, 'link_invalid'])
    expect((await fixture.app.callAs(token)('GET', HOOKS)).status).toBe(200)
    const [entry] = await audit(`action|eq|portal-session.open&filters=target|eq|${id}&filters=outcome|eq|failure`)
    expect(entry).toMatchObject({ portal_session: id, external_user: 'jo', detail: { reason: 'link_used' } })
  })

  test('is refused with the same words when it is used, expired, revoked, forged, or of a key that ended', async () => {
    const { call } = await makeKey()
    const brief = await makeKey()
    const used = await makeLink(call)
    await open(used.link)
    const revoked = await makeLink(call)
    expect((await call('DELETE', `${pathOf(mine)}/${revoked.id}`)).status).toBe(200)
    const ofKey = await makeLink(brief.call)
    await administrator()('DELETE', `${KEYS}/${brief.id}`)
    const expired = await makeLink(call)
    const links = [used.link, revoked.link, ofKey.link, `sbl_${'A'.repeat(43)}`, 'x', expired.link]
    fixture.app.clock.advance(119_999)
    const inTime = await makeLink(call)
    fixture.app.clock.advance(1)
    const answers = await Promise.all(links.map(open))
    for (const { status, body } of answers) {
      expect(status).toBe(410)
      expect({ ...body, request_id: '' }).toEqual({ ...answers[0]?.body, request_id: '' })
    }
    expect((await open(inTime.link)).status).toBe(200)
  })

  test('opened by two at once gives one token', async () => {
    const { call } = await makeKey()
    const { link } = await makeLink(call)
    const answers = await Promise.all(Array.from({ length: 5 }, () => open(link)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 410, 410, 410, 410])
  })

  test('is no token of the API, and neither is a token a link', async () => {
    const { call } = await makeKey()
    const { link } = await makeLink(call)
    expect((await fixture.app.callAs(link)('GET', HOOKS)).status).toBe(401)
    const { token } = (await open(link)).body.data
    expect((await open(token)).status).toBe(410)
    for (const forged of [`${token}x`, token.slice(0, -1), token.replace('sbp_', 'sbx_')])
      expect((await fixture.app.callAs(forged)('GET', HOOKS)).status).toBe(401)
  })

  test('is shown once: a repeat with the same Idempotency-Key has none', async () => {
    const { call } = await makeKey()
    const headers = { 'idempotency-key': 'portal-1' }
    const first = await call('POST', pathOf(mine), { role: 'account-viewer' }, headers)
    const again = await call('POST', pathOf(mine), { role: 'account-viewer' }, headers)
    expect(again.body.data).toEqual({ ...first.body.data, url: null })
  })
})

describe('making a link', () => {
  test('is for an API key: a user, an app of a user and a portal session make none', async () => {
    const { call } = await makeKey()
    expect((await administrator()('POST', pathOf(mine), { role: 'account-viewer' })).status).toBe(403)
    const session = await openSession(call, { role: 'account-admin' })
    expect(await session.call('POST', pathOf(mine), { role: 'account-viewer' })).toMatchObject({
      status: 403,
      body: { missing: { what: 'permission', permission: 'portal-session:create' } },
    })
  })

  test('needs all that the role gives, at that account', async () => {
    const narrow = await makeKey({ permissions: ['portal-session:*', 'webhook:*'] })
    expect(await narrow.call('POST', pathOf(mine), { role: 'account-viewer' })).toMatchObject({
      status: 403,
      body: { missing: { what: 'permission', account: mine } },
    })
    const developer = ['portal-session:*', ...PORTAL_ROLES['account-developer']]
    const wide = await makeKey({ permissions: developer })
    expect((await wide.call('POST', pathOf(mine), { role: 'account-developer' })).status).toBe(201)
    expect((await wide.call('POST', pathOf(mine), { role: 'account-admin' })).status).toBe(403)
    const bound = await makeKey({ account: mine })
    expect((await bound.call('POST', pathOf(mine), { role: 'account-admin' })).status).toBe(201)
    for (const account of [other, '01990000-0000-7000-8000-000000000000'])
      expect((await bound.call('POST', pathOf(account), { role: 'account-viewer' })).status).toBe(404)
  })

  test('takes a return URL over TLS or of this machine, and a lifetime of 5 minutes to 12 hours', async () => {
    const { call } = await makeKey()
    const ask = async (body: object) => (await call('POST', pathOf(mine), { role: 'account-viewer', ...body })).status
    for (const return_url of ['https://app.example/settings', 'http://localhost:3000/', 'http://127.0.0.1/'])
      expect(await ask({ return_url })).toBe(201)
    for (const return_url of [
      'http://app.example/',
      'javascript:alert(1)',
      'data:text/html,x',
      'https://a:b@c.example/',
      '/x',
    ])
      expect(await ask({ return_url })).toBe(422)
    for (const [lifetime_seconds, status] of [
      [299, 422],
      [300, 201],
      [43_200, 201],
      [43_201, 422],
    ])
      expect(await ask({ lifetime_seconds })).toBe(status)
    expect(await ask({ role: 'administrator' })).toBe(422)
    expect(await ask({ external_user: 'two\nlines' })).toBe(422)
  })

  test('ends at 1,000 links and sessions of one account that have not ended', async () => {
    const { call, id: key } = await makeKey()
    const full = (await fixture.createAccount()).document_id as string
    const { id } = await makeLink(call, {}, full)
    const { pool } = fixture.app.database
    await pool.query(
      `insert into portal_session (document_id, account, api_key, role, lifetime_seconds, link_hash, expires_at, created_at, updated_at)
       select gen_random_uuid(), account, $2, role, 300, sha256(n::text::bytea), expires_at, created_at, updated_at
       from portal_session, generate_series(1, 998) n where document_id = $1`,
      [id, key],
    )
    const ask = () => call('POST', pathOf(full), { role: 'account-viewer' })
    const answers = await Promise.all([ask(), ask(), ask()])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    expect(answers.find(({ status }) => status === 409)?.body.code).toBe('limit_reached')
    fixture.app.clock.advance(120_001)
    expect((await ask()).status).toBe(201)
  })
})

describe('a session', () => {
  test('reads and changes its account as its role may, and sees no other one', async () => {
    const { call } = await makeKey()
    const viewer = await openSession(call, { role: 'account-viewer' })
    const developer = await openSession(call)
    const foreign = await fixture.createWebhook({ account: other })
    const url = `${fixture.receiver.origin}/portal`
    expect((await viewer.call('POST', HOOKS, { url, account: mine })).status).toBe(403)
    const made = await developer.call('POST', HOOKS, { url, account: mine })
    expect(made.status).toBe(201)
    for (const account of [other, undefined])
      expect((await developer.call('POST', HOOKS, { url, account, is_global: account === undefined })).status).toBe(403)
    for (const caller of [viewer, developer]) {
      expect((await caller.call('GET', `${HOOKS}/${made.body.data.document_id}`)).status).toBe(200)
      expect((await caller.call('GET', `${HOOKS}/${foreign.id}`)).status).toBe(404)
      expect((await caller.call('GET', `/api/v3/identity/account/${mine}/limit`)).status).toBe(200)
      expect((await caller.call('GET', `/api/v3/identity/account/${other}/limit`)).status).toBe(404)
    }
    const accounts = new Set((await developer.call('GET', HOOKS)).body.data.map((row: Json) => row.account))
    expect(accounts).toEqual(new Set([mine]))
  })

  const routes = (ROUTE_TREE as readonly RouteDeclaration[]).filter(
    ({ access, readsCaller }) => access === 'caller' || readsCaller,
  )
  test('of an account administrator reaches nothing that is of a user', async () => {
    const { call } = await makeKey()
    const session = await openSession(call, { role: 'account-admin' })
    for (const route of routes) {
      const path = route.path.replace(/\{\w+\}/g, '01990000-0000-7000-8000-000000000000')
      expect((await session.call(route.method, path)).status, operationIdOf(route)).toBe(403)
    }
  })

  test('of an account administrator renames its account, but gives and takes no access that lasts', async () => {
    const { call } = await makeKey()
    const account = (await fixture.createAccount()).document_id as string
    const session = await openSession(call, { role: 'account-admin' }, account)
    const path = `/api/v3/identity/account/${account}`
    const { userId } = await fixture.signInWithRoles([account], ['account-viewer'])
    expect((await session.call('PATCH', path, { name: 'Renamed' })).status).toBe(200)
    expect((await session.call('GET', `${path}/member`)).body.data).toHaveLength(1)
    for (const [method, route, body] of [
      ['POST', `${path}/member`, { user: userId, roles: [] }],
      ['PATCH', `${path}/member`, { user: userId, roles: [] }],
      ['DELETE', `${path}/member`, { user: userId }],
      ['POST', `${path}/invitation`, { email: 'friend@customer.example', roles: [] }],
      ['POST', KEYS, { name: 'kept', permissions: ['webhook:*'], account }],
      ['DELETE', path, undefined],
    ] as const)
      expect((await session.call(method, route, body)).status, `${method} ${route}`).toBe(403)
    expect((await administrator()('GET', `${path}/member`)).body.data).toMatchObject([{ user: userId }])
  })

  test('of every role changes only what the portal is for, and the name of the account', () => {
    const changes = (ROUTE_TREE as readonly RouteDeclaration[])
      .filter(({ method, access }) => method !== 'GET' && access === undefined)
      .filter(({ resource, action }) =>
        Object.values(PORTAL_ROLES)
          .flat()
          .some((pattern) => matchesPattern(pattern, `${resource}:${action}`)),
      )
      .map(({ resource, action }) => (resource === 'account' ? `${resource}:${action}` : resource))
    expect([...new Set(changes)].sort()).toEqual([
      'account:update',
      ...['contract', 'replay-job', 'webhook', 'webhook-dispatch', 'webhook-event'],
    ])
  })

  test('does no more than its key and the owner of the key may, at each call', async () => {
    const user = await fixture.signInWithRoles([mine], ['account-developer'])
    const role = await administrator()('POST', '/api/v3/identity/role', {
      name: 'portal maker',
      permissions: ['portal-session:create'],
      is_account_scoped: true,
    })
    const roleOf = async (name: string) =>
      (await administrator()('GET', `/api/v3/identity/role?filters=name|eq|${name}`)).body.data[0].document_id
    const setRoles = async (...roles: string[]) =>
      administrator()('PATCH', `/api/v3/identity/account/${mine}/member`, { user: user.userId, roles })
    const maker = role.body.data.document_id
    expect((await setRoles(await roleOf('account-developer'), maker)).status).toBe(200)
    const permissions = ['portal-session:create', ...PORTAL_ROLES['account-developer']]
    const key = await makeKey({ permissions }, user.call)
    const session = await openSession(key.call)
    expect((await session.call('GET', HOOKS)).status).toBe(200)
    await setRoles(await roleOf('account-viewer'), maker)
    expect((await session.call('GET', HOOKS)).status).toBe(200)
    const url = `${fixture.receiver.origin}/lost`
    expect((await session.call('POST', HOOKS, { url, account: mine })).status).toBe(403)
    await setRoles(maker)
    expect((await session.call('GET', HOOKS)).status).toBe(403)
  })

  test('is named by the audit entries of what it does, with the name that the platform gave', async () => {
    const { call, id: key } = await makeKey()
    const session = await openSession(call, { external_user: 'jo@customer.example' })
    const made = await session.call('POST', HOOKS, { url: `${fixture.receiver.origin}/audited`, account: mine })
    const entries = await audit(`portal_session|eq|${session.id}`)
    expect(entries.map(({ action }) => action)).toEqual(['webhook.create', 'portal-session.open'])
    for (const entry of entries)
      expect(entry).toMatchObject({ api_key: key, account: mine, external_user: 'jo@customer.example' })
    expect(entries[0]?.target).toBe(made.body.data.document_id)
  })

  test('has Idempotency-Keys and limits of its own, so that two under one key do not meet', async () => {
    const { call } = await makeKey()
    const [first, second] = [await openSession(call), await openSession(call)]
    const body = { url: `${fixture.receiver.origin}/same`, account: mine }
    const headers = { 'idempotency-key': 'same-key' }
    const answers = [await first.call('POST', HOOKS, body, headers), await second.call('POST', HOOKS, body, headers)]
    expect(answers.map(({ status }) => status)).toEqual([201, 201])
    expect(answers[0]?.body.data.document_id).not.toBe(answers[1]?.body.data.document_id)
    expect(answers[1]?.headers['idempotency-replayed']).toBeUndefined()
    const left = (answer: TestAnswer) => Number(/"caller";r=(\d+)/.exec(String(answer.headers.ratelimit))?.[1])
    const before = left(await second.call('GET', HOOKS))
    await first.call('GET', HOOKS)
    expect(left(await second.call('GET', HOOKS))).toBe(before - 1)
  })
})

describe('a session ends', () => {
  /** Each ending, with what it needs of the session. */
  const endings: [
    string,
    (session: { key: Awaited<ReturnType<typeof makeKey>>; account: string; id: string; token: string }) => unknown,
  ][] = [
    ['by hand', ({ key, account, id }) => key.call('DELETE', `${pathOf(account)}/${id}`)],
    ['as its end user leaves', ({ token }) => fixture.app.anonymous('POST', END, { token })],
    ['with its key', ({ key }) => administrator()('DELETE', `${KEYS}/${key.id}`)],
    ['with its account', ({ account }) => administrator()('DELETE', `/api/v3/identity/account/${account}`)],
    ['by its time', () => fixture.app.clock.advance(300_000)],
  ]
  test.each(endings)('%s, with the next request', async (_how, end) => {
    const key = await makeKey()
    const account = (await fixture.createAccount()).document_id as string
    const session = await openSession(key.call, { lifetime_seconds: 300 }, account)
    expect((await session.call('GET', HOOKS)).status).toBe(200)
    await end({ key, account, ...session })
    expect((await session.call('GET', HOOKS)).status).toBe(401)
  })

  test.each(endings.slice(0, 4))('%s, within a second in another process', async (_how, end) => {
    const { database, clock } = fixture.app
    await using other = await createTestApp({ database, clock })
    await other.app.start()
    const key = await makeKey()
    const account = (await fixture.createAccount()).document_id as string
    const session = await openSession(key.call, {}, account)
    const ask = async () => (await other.callAs(session.token)('GET', HOOKS)).status
    expect(await ask()).toBe(200)
    await end({ key, account, ...session })
    await expect.poll(ask, { timeout: 1_000, interval: 50 }).toBe(401)
  })

  test('when the owner of its key is disabled or deleted', async () => {
    for (const end of ['disable', 'delete'] as const) {
      const email = `${end}@platform.example`
      const userId = await createUserWithPassword(fixture.app, { email }, 'correct horse battery')
      const roles = await administrator()('GET', '/api/v3/identity/role?filters=name|eq|administrator')
      await administrator()('PATCH', `/api/v3/identity/user/${userId}`, { roles: [roles.body.data[0].document_id] })
      const signedIn = await fixture.app.anonymous('POST', '/api/v3/auth/login/local', {
        email,
        password: 'correct horse battery',
      })
      const key = await makeKey({}, fixture.app.callAs(signedIn.body.data.jwt))
      const session = await openSession(key.call)
      expect((await session.call('GET', HOOKS)).status).toBe(200)
      const path = `/api/v3/identity/user/${userId}`
      await (end === 'disable' ? administrator()('POST', `${path}/disable`, {}) : administrator()('DELETE', path))
      expect((await session.call('GET', HOOKS)).status).toBe(401)
    }
  })

  test('with a key that expires first, and its link too', async () => {
    const expires_at = new Date(fixture.app.clock.now() + 60_000).toISOString()
    const key = await makeKey({ expires_at })
    const made = await key.call('POST', pathOf(mine), { role: 'account-viewer' })
    expect(made.body.data.expires_at).toBe(expires_at)
    const opened = await open(linkOf(made))
    expect(opened.body.data.expires_at).toBe(expires_at)
    fixture.app.clock.advance(60_000)
    expect((await fixture.app.callAs(opened.body.data.token)('GET', HOOKS)).status).toBe(401)
  })

  test('once: a second revocation, and one of another account, find nothing', async () => {
    const key = await makeKey()
    const session = await openSession(key.call)
    expect((await key.call('DELETE', `${pathOf(other)}/${session.id}`)).status).toBe(404)
    expect((await session.call('GET', HOOKS)).status).toBe(200)
    const path = `${pathOf(mine)}/${session.id}`
    expect((await key.call('DELETE', path)).status).toBe(200)
    expect((await key.call('DELETE', path)).status).toBe(404)
    const [listed] = (await key.call('GET', `${pathOf(mine)}?filters=document_id|eq|${session.id}`)).body.data
    expect(listed.status).toBe('ended')
    const ends = [session.token, 'sbp_forged'].map((token) => fixture.app.anonymous('POST', END, { token }))
    for (const { status, body } of await Promise.all(ends))
      expect([status, body.data]).toEqual([200, { is_ended: true }])
  })
})
