import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ADMIN_PATTERNS } from '../../src/identity/access/system-roles.ts'
import { COLLECT_MS } from '../../src/realtime/authorization/subscription-guard.ts'
import { createTestApp, type TestAnswer, type TestApp } from '../harness/app/app.ts'
import { PASSWORD } from '../harness/app/connection-app.ts'
import { createNarrowedApp, type NarrowedApp, type TwoAccounts } from '../harness/app/narrowed-app.ts'
import { PAGE_ENV } from '../harness/browser/page-visitor.ts'
import { holdUser, race } from '../harness/plan/race.ts'
import { type SimulatedProvider, startRealtimeProvider } from '../harness/realtime/realtime-provider.ts'
import { buildManualClock } from '../harness/run/manual-clock.ts'
import { waitFor } from '../harness/run/wait.ts'

/** What users of several accounts open besides sessions, and what joining and leaving end. */

let t: NarrowedApp
let provider: SimulatedProvider
/** Another process of the service. */
let other: TestApp

beforeAll(async () => {
  const clock = buildManualClock()
  provider = await startRealtimeProvider(() => clock.now())
  t = await createNarrowedApp({ clock, env: provider.env })
  other = await createTestApp({ database: t.app.database, clock, env: PAGE_ENV })
})
afterAll(async () => {
  await other?.[Symbol.asyncDispose]()
  await t?.[Symbol.asyncDispose]()
  await provider?.close()
})

const member = (account: string) => `/api/v3/identity/account/${account}/member`
const adminRole = async () => [await t.findRole('account-admin')]
const makeKey = async (jwt: string, body: object = {}): Promise<TestAnswer> =>
  t.app.callAs(jwt)('POST', '/api/v3/identity/api-key', { name: 'k', permissions: ['account-member:*'], ...body })
const keyOf = async (jwt: string, body?: object): Promise<string> => (await makeKey(jwt, body)).body.data.key
const isOpen = async (jwt: string) => (await t.app.callAs(jwt)('GET', '/api/v3/auth/session')).status === 200

describe('an API key of a user of several accounts', () => {
  test('lacks the account that enforces its connection, unless it is bound to it', async () => {
    const world = await t.prepare()
    const jwt = await t.login(world)
    const [whole, bound] = [await keyOf(jwt), await keyOf(jwt, { account: world.closed })]
    expect(await t.statuses(whole, world)).toEqual([200, 200])
    await t.enforce(world)
    expect(await t.statuses(whole, world)).toEqual([403, 200])
    const refused = (await t.reach(whole, world.closed)).body
    expect(refused).toMatchObject({ code: 'connection_required', detail: expect.stringContaining('bound') })
    expect((await t.reach(bound, world.closed)).status).toBe(200)
    await t.change(world, { is_enforced: false })
    expect(await t.statuses(whole, world)).toEqual([200, 200])
  })

  test('is bound to it in a proven session alone', async () => {
    const world = await t.narrow()
    const browser = await t.enterPassword(world)
    expect((await makeKey(browser.jwt, { account: world.closed })).status).toBe(403)
    await t.proveSession(world, browser)
    const bound = await keyOf(browser.jwt, { account: world.closed })
    expect((await t.reach(bound, world.closed)).status).toBe(200)
    // An unbound key does not widen.
    expect(await t.statuses(await keyOf(browser.jwt), world)).toEqual([403, 200])
  })

  test('opens no portal of the account, and one that it opened before lacks it', async () => {
    const world = await t.prepare()
    const platform = { name: `platform of ${world.domain}`, is_account_scoped: true, permissions: ['portal-session:*'] }
    const role = (await t.app.admin('POST', '/api/v3/identity/role', platform)).body.data.document_id
    for (const account of [world.closed, world.open])
      await t.app.admin('PATCH', member(account), { user: world.user, roles: [...(await adminRole()), role] })
    const jwt = await t.login(world)
    const key = await keyOf(jwt, { permissions: ['portal-session:*', ...ADMIN_PATTERNS] })
    const open = (account: string) =>
      t.app.callAs(key)('POST', `/api/v3/identity/account/${account}/portal-session`, { role: 'account-viewer' })
    const opened = await open(world.closed)
    expect(opened.status).toBe(201)
    const [token] = /sb\w_[\w-]{43}/.exec(opened.body.data.url) ?? []
    const exchanged = await t.app.anonymous('POST', '/api/v3/auth/portal-session/open', { token })
    const portal = t.app.callAs(exchanged.body.data.token)
    const read = async () => (await portal('GET', `/api/v3/identity/account/${world.closed}`)).status
    expect(await read()).toBe(200)
    await t.enforce(world)
    expect(await read()).toBe(403)
    expect(await open(world.closed)).toMatchObject({ status: 403, body: { code: 'connection_required' } })
    expect((await open(world.open)).status).toBe(201)
  })
})

describe('every process', () => {
  test('narrows and widens its cached callers', async () => {
    const world = await t.prepare()
    const browser = await t.enterPassword(world)
    const statusThere = async () => (await other.callAs(browser.jwt)('GET', member(world.closed))).status
    const becomes = (status: number) => waitFor(`the status ${status}`, async () => (await statusThere()) === status)
    expect(await statusThere()).toBe(200)
    await t.enforce(world)
    await becomes(403)
    await t.proveSession(world, browser)
    await becomes(200)
    await t.change(world, { is_enabled: false })
    await becomes(200)
    await t.change(world, { is_enabled: true })
    await becomes(403)
  })
})

describe('realtime', () => {
  const letGuardWork = async () => {
    t.app.clock.advance(COLLECT_MS)
    await t.app.app.realtime.guard?.settled()
  }
  // The reports of the database come by its listening connection.
  const becomesTerminated = (user: string) =>
    waitFor('the end of the connections', async () => {
      await letGuardWork()
      return provider.terminated.includes(user)
    })
  const authorize = (jwt: string, account: string) =>
    t.app.callAs(jwt)('POST', '/api/v3/realtime/realtime/auth', {
      socket_id: '1.1',
      channel_name: `private-account-${account}`,
    })

  test('ends what a session reached before the account was closed, and opens the channel to a proven one', async () => {
    const world = await t.prepare()
    const browser = await t.enterPassword(world)
    expect((await authorize(browser.jwt, world.closed)).status).toBe(200)
    provider.terminated.length = 0
    await t.enforce(world)
    await becomesTerminated(world.user)
    expect((await authorize(browser.jwt, world.closed)).status).toBe(403)
    expect((await authorize(browser.jwt, world.open)).status).toBe(200)
    await t.proveSession(world, browser)
    await letGuardWork()
    provider.terminated.length = 0
    expect((await authorize(browser.jwt, world.closed)).status).toBe(200)
    await letGuardWork()
    expect(provider.terminated).toEqual([])
    // Without its connection the account is closed to nobody; with it, the proof of before counts no more.
    await t.change(world, { is_enabled: false })
    expect((await authorize(browser.jwt, world.closed)).status).toBe(200)
    await t.change(world, { is_enabled: true })
    await becomesTerminated(world.user)
  })

  test('ends the channel with the hours of the proof, though the session goes on', async () => {
    const world = await t.narrow()
    await t.change(world, { session_hours: 1 })
    const browser = await t.enterPassword(world)
    await t.proveSession(world, browser)
    t.app.clock.advance(59 * 60_000)
    expect((await authorize(browser.jwt, world.closed)).status).toBe(200)
    const { rows } = await t.app.database.pool.query(
      'select token, ends_at from realtime_grant_token where user_id = $1',
      [world.user],
    )
    expect(rows).toHaveLength(1)
    expect(rows[0].token).toMatch(/^s:.*:proven$/)
    expect(rows[0].ends_at.getTime() - t.app.clock.now()).toBeLessThanOrEqual(60_000)
  })
})

describe('who joins another account', () => {
  /** A user whom the connection of its only account signs in. */
  async function connected(): Promise<TwoAccounts & { jwt: string; key: string }> {
    const world = await t.narrow()
    const email = `bob@${world.domain}`
    t.fixture.fakes.company.user = { sub: `bob-${world.domain}`, email, isEmailVerified: true }
    const browser = t.browser()
    const start = `/api/v3/auth/login/oauth/${world.connection}?redirect_url=https://app.example.com`
    const step = await t.fixture.fakes.company.authorize(String((await browser.get(start)).headers.location))
    const answer = await browser.get(step.url.replace('/callback', '/callback-redirect'), 'application/json')
    const { jwt, user } = answer.body.data
    const key = await keyOf(jwt, { permissions: ['contract:*'] })
    return { ...world, email, user: user.document_id, jwt, key }
  }
  const join = async ({ open, user }: TwoAccounts) =>
    t.app.admin('POST', member(open), { user, roles: await adminRole() })

  test('while the connection of its only one signs it in, needs a way in of its own, and loses what that opened', async () => {
    const bob = await connected()
    expect(await join(bob)).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect(await isOpen(bob.jwt)).toBe(true)
    await t.app.admin('PATCH', `/api/v3/identity/user/${bob.user}`, { password: PASSWORD, keep_api_keys: true })
    // The password alone opens nothing yet.
    const login = { email: bob.email, password: PASSWORD }
    expect((await t.app.anonymous('POST', '/api/v3/auth/login/local', login)).body.code).toBe('connection_required')
    expect((await join(bob)).status).toBe(201)
    expect(await isOpen(bob.jwt)).toBe(false)
    expect(await isOpen(bob.key)).toBe(false)
    const jwt = await t.login(bob)
    expect((await t.reach(jwt, bob.open)).status).toBe(200)
    expect((await t.app.callAs(jwt)('GET', '/api/v3/auth/session')).body.data.closed_accounts).toHaveLength(1)
  })

  test('and proves its session as the person that the connection knows', async () => {
    const bob = await connected()
    await t.app.admin('PATCH', `/api/v3/identity/user/${bob.user}`, { password: PASSWORD })
    await join(bob)
    const browser = await t.enterPassword(bob)
    await t.proveSession(bob, browser, { sub: 'another' })
    expect((await t.app.callAs(browser.jwt)('GET', '/api/v3/auth/session')).body.data.closed_accounts).toHaveLength(1)
    await t.proveSession(bob, browser, { sub: `bob-${bob.domain}` })
    expect((await t.app.callAs(browser.jwt)('GET', '/api/v3/auth/session')).body.data.closed_accounts).toEqual([])
  })
})

describe('who leaves the other account', () => {
  test.each<[string, (world: TwoAccounts) => Promise<TestAnswer>]>([
    ['by its removal', ({ open, user }) => t.app.admin('DELETE', member(open), { user })],
    ['by the deletion of that one', ({ open }) => t.app.admin('DELETE', `/api/v3/identity/account/${open}`)],
  ])('%s, keeps nothing that its own ways opened', async (_, leave) => {
    const world = await t.narrow()
    const jwt = await t.login(world)
    const key = await keyOf(jwt)
    expect((await leave(world)).status).toBe(200)
    expect(await isOpen(jwt)).toBe(false)
    expect((await t.reach(key, world.closed)).status).toBe(401)
    const login = { email: world.email, password: PASSWORD }
    expect((await t.app.anonymous('POST', '/api/v3/auth/login/local', login)).body.code).toBe('connection_required')
  })

  test('keeps it where no account closes the ways, or a third one stays', async () => {
    const [loose, world] = [await t.prepare(), await t.narrow()]
    const kept = await t.login(loose)
    await t.app.admin('DELETE', member(loose.open), { user: loose.user })
    expect(await isOpen(kept)).toBe(true)
    const third = await t.makeAccount('Third')
    await t.app.admin('POST', member(third), { user: world.user })
    const jwt = await t.login(world)
    await t.app.admin('DELETE', member(world.open), { user: world.user })
    expect(await isOpen(jwt)).toBe(true)
    expect((await t.reach(jwt, world.closed)).status).toBe(403)
  })

  test('while the ways are being closed, keeps nothing', async () => {
    const world = await t.prepare()
    const jwt = await t.login(world)
    const requests = [
      () => t.change(world, { is_enforced: true }),
      () => t.app.admin('DELETE', member(world.open), { user: world.user }),
    ]
    await race(t.app.database, holdUser(world.user), requests)
    expect(await isOpen(jwt)).toBe(false)
  })

  test('while that one is being deleted and the ways are being closed, keeps nothing', async () => {
    const world = await t.prepare()
    const jwt = await t.login(world)
    const remove = () => t.app.admin('DELETE', `/api/v3/identity/account/${world.open}`)
    const requests = [remove, () => t.change(world, { is_enforced: true })]
    const answers = await race(t.app.database, holdUser(world.user), requests)
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(await isOpen(jwt)).toBe(false)
  })
})

describe('the address of a user whose session is narrowed', () => {
  test('is not changed by the user, who would leave the domain by that', async () => {
    const world = await t.prepare()
    const jwt = await t.login(world)
    const ask = () => t.app.callAs(jwt)('POST', '/api/v3/auth/user/email-change', { email: 'ada@private.example' })
    expect((await ask()).status).toBe(202)
    await t.enforce(world)
    expect((await ask()).status).toBe(409)
  })

  test('is told to operators with the connection', async () => {
    const world = await t.narrow()
    const { body } = await t.app.admin('GET', `/api/v3/identity/user/${world.user}/access`)
    const memberships = body.data.memberships as { account: string; connection: string | null }[]
    expect(memberships.map(({ account, connection }) => [account, connection])).toEqual([
      [world.closed, world.connection],
      [world.open, null],
    ])
  })
})
