import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { buildIdMaker, type UserId } from '../../src/base/id.ts'
import { systemRandom } from '../../src/base/random.ts'
import { issueSession } from '../../src/identity/session/session.ts'
import { endSessionsOfGrant } from '../../src/oauth/exchange/exchange.ts'
import { inTransaction } from '../../src/postgres/statement/database.ts'
import { TEST_SECRETS } from '../harness/app/test-secrets.ts'
import { type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../harness/fakes/proxy.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { type ServiceProcess, TEST_BASE_URL } from '../harness/process/service-process.ts'
import { BUSY_MS, waitFor } from '../harness/run/wait.ts'

/** How long a change may take to hold in every process (docs/contract/identity.md#time-until-a-change-takes-effect); the limit itself is the notifier's. */
const LIMIT_MS = 1_000

let fixture: DeliveryFixture
/** The process of the tests. */
let first: LocalService
/** Another process. */
let other: ServiceProcess
/** One more service, whose listening connection `proxy` cuts. */
let cut: LocalService
let proxy: DatabaseProxy

beforeAll(async () => {
  fixture = await openDeliveryFixture()
  proxy = await startDatabaseProxy(fixture.database.connectionString)
  const listening = { DATABASE_LISTEN_URL: proxy.connectionString }
  first = await fixture.startLocal({ roles: 'api' })
  cut = await fixture.startLocal({ roles: 'api', env: listening })
  other = await fixture.start({ roles: 'api' })
})
afterAll(async () => {
  await fixture[Symbol.asyncDispose]()
  await proxy[Symbol.asyncDispose]()
})

type Service = Pick<ServiceProcess, 'url' | 'call'>

interface Member {
  id: string
  /** The status of a call with the member's session, in this process. */
  statusIn(service: Service): Promise<number>
  /** The status of a rename of the account by the member, in this process. */
  renameIn(service: Service): Promise<number>
}

/** A signed-in user in the account of the fixture. */
async function createMember(): Promise<Member> {
  const user = { email: `${crypto.randomUUID()}@example.com`, password: 'correct horse battery' }
  const made = await first.call('POST', '/api/v3/identity/user', user)
  const id = made.body.data.document_id as string
  await first.call('POST', `/api/v3/identity/account/${fixture.account}/member`, { user: id })
  const login = await fetch(`${first.url}/api/v3/auth/login/local`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(user),
  })
  const { jwt } = ((await login.json()) as { data: { jwt: string } }).data
  const statusIn = async ({ url }: Service) => {
    const headers = { authorization: `Bearer ${jwt}` }
    const answer = await fetch(`${url}/api/v3/identity/account/${fixture.account}`, { headers })
    await answer.arrayBuffer()
    return answer.status
  }
  const renameIn = async ({ url }: Service) => {
    const headers = { authorization: `Bearer ${jwt}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ name: 'Renamed' })
    const answer = await fetch(`${url}/api/v3/identity/account/${fixture.account}`, { method: 'PATCH', headers, body })
    await answer.arrayBuffer()
    return answer.status
  }
  return { id, statusIn, renameIn }
}

/** An app that acts for the member, by a grant of this name. */
async function openApp(member: Member): Promise<Member> {
  const keys = { secrets: TEST_SECRETS.sessionJwt, issuer: () => TEST_BASE_URL }
  const deps = { ids: buildIdMaker(systemClock, systemRandom), random: systemRandom, keys }
  const session = await inTransaction(fixture.database.db, (tx) =>
    issueSession(deps, tx, {
      userId: member.id as UserId,
      client: { id: 'app', scope: 'account:read', grantId: 'held' },
      origin: { address: null, userAgent: null },
      now: new Date(),
    }),
  )
  const statusIn = async ({ url }: Service) => {
    const headers = { authorization: `Bearer ${session?.jwt}` }
    const answer = await fetch(`${url}/api/v3/identity/account/${fixture.account}`, { headers })
    await answer.arrayBuffer()
    return answer.status
  }
  return { ...member, statusIn }
}

/** Until the process holds the caller: statements of the pool stop while it is asked again and again. */
async function waitUntilHeld(member: Member, service: Service): Promise<void> {
  const reads = async () => {
    const { rows } = await fixture.database.pool.query<{ reads: number }>(
      `select coalesce(sum(seq_scan + idx_scan), 0)::int as reads from pg_stat_user_tables where relname = 'user_role'`,
    )
    return rows[0]!.reads
  }
  await waitFor('the caller to be held', async () => {
    const before = await reads()
    for (let at = 0; at < 5; at += 1) expect(await member.statusIn(service)).toBe(200)
    await fixture.database.pool.query('select pg_stat_force_next_flush()').catch(() => {})
    return (await reads()) === before
  })
}

/** Disables the member through one process and measures until the other one refuses it. */
async function measureRefusal(member: Member, elsewhere: Service): Promise<number> {
  const disabled = await first.call('POST', `/api/v3/identity/user/${member.id}/disable`)
  expect(disabled.status).toBe(200)
  const startedAt = performance.now()
  // The process that made the change refuses with its very next answer.
  expect(await member.statusIn(first)).toBe(401)
  await waitFor('the refusal in the other process', async () => (await member.statusIn(elsewhere)) === 401)
  return performance.now() - startedAt
}

test('a disabled user is refused by the process that disabled them at once, by another one within a second', async () => {
  const member = await createMember()
  await waitUntilHeld(member, first)
  await waitUntilHeld(member, other)
  expect(await measureRefusal(member, other)).toBeLessThan(LIMIT_MS + BUSY_MS)
})

test('a grant that ends is held by no process after a second: the app is refused in each', async () => {
  const member = await createMember()
  const app = await openApp(member)
  await waitUntilHeld(app, first)
  await waitUntilHeld(app, other)
  const { db } = fixture.database
  const ended = await inTransaction(db, (tx) =>
    endSessionsOfGrant(tx, { grantId: 'held', isFinal: true, now: new Date() }),
  )
  const startedAt = performance.now()
  expect(ended).toHaveLength(1)
  for (const service of [first, other])
    await waitFor('the refusal of the app', async () => (await app.statusIn(service)) === 401)
  expect(performance.now() - startedAt).toBeLessThan(LIMIT_MS + BUSY_MS)
  expect([await member.statusIn(first), await member.statusIn(other)]).toEqual([200, 200])
})

test('a role of a membership that is taken is held by no process after a second', async () => {
  const member = await createMember()
  const { body } = await first.call('GET', '/api/v3/identity/role?filters=name|eq|account-admin')
  const setRoles = (roles: string[]) =>
    first.call('PATCH', `/api/v3/identity/account/${fixture.account}/member`, { user: member.id, roles })
  expect((await setRoles([body.data[0].document_id])).status).toBe(200)
  await waitUntilHeld(member, first)
  await waitUntilHeld(member, other)
  expect([await member.renameIn(first), await member.renameIn(other)]).toEqual([200, 200])
  expect((await setRoles([])).status).toBe(200)
  const startedAt = performance.now()
  expect(await member.renameIn(first)).toBe(403)
  await waitFor('the refusal in the other process', async () => (await member.renameIn(other)) === 403)
  expect(performance.now() - startedAt).toBeLessThan(LIMIT_MS + BUSY_MS)
})

test.each(['paused', 'refusing'] as const)(
  'a process whose listening connection is cut (%s) trusts nothing it holds after a second, and asks the database',
  async (state) => {
    const member = await createMember()
    await waitUntilHeld(member, cut)
    proxy.set(state)
    try {
      expect(await measureRefusal(member, cut)).toBeLessThan(LIMIT_MS + BUSY_MS)
    } finally {
      proxy.set('open')
    }
  },
)

/** The status of an introspection by an OAuth client, in a process: 200 while it is known with this secret. */
async function introspect({ url }: Service, { id, secret }: { id: string; secret: string }): Promise<number> {
  const headers = {
    authorization: `Basic ${Buffer.from(`${id}:${encodeURIComponent(secret)}`).toString('base64')}`,
    'content-type': 'application/x-www-form-urlencoded',
  }
  const answer = await fetch(`${url}/api/v3/oauth/introspect`, { method: 'POST', headers, body: 'token=unknown' })
  await answer.arrayBuffer()
  return answer.status
}

test('a deleted OAuth client is refused by the process that deleted it at once, by another one within a second', async () => {
  const made = await first.call('POST', '/api/v3/oauth/client', {
    name: 'Held',
    type: 'confidential',
    redirect_uris: ['https://app.example.com/callback'],
  })
  expect(made.status).toBe(201)
  const client = { id: made.body.data.document_id, secret: made.body.data.client_secret }
  for (const service of [first, other, first, other]) expect(await introspect(service, client)).toBe(200)
  expect((await first.call('DELETE', `/api/v3/oauth/client/${client.id}`)).status).toBe(200)
  const startedAt = performance.now()
  expect(await introspect(first, client)).toBe(401)
  await waitFor('the refusal in the other process', async () => (await introspect(other, client)) === 401)
  expect(performance.now() - startedAt).toBeLessThan(LIMIT_MS + BUSY_MS)
})
