import { expect, test } from 'vitest'
import { TEST_METRICS_TOKEN } from '../harness/app/test-secrets.ts'
import { startPrimaryAndStandby } from '../harness/database/standby.ts'
import { type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { startDatabaseProxy } from '../harness/fakes/proxy.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { BUSY_MS, waitFor } from '../harness/run/wait.ts'

/** Longer than the 9 s of a statement and the 10 s of silence, with what a busy machine adds. */
const FOUND_DEAD_MS = 14_000 + BUSY_MS

const UNAVAILABLE = { status: 503, headers: { 'retry-after': '5' }, body: { code: 'dependency_unavailable' } }

const post = (service: LocalService, fixture: DeliveryFixture) =>
  service.call('POST', '/api/v3/contract/contract', { name: 'A change', account: fixture.account })

async function readReadiness(service: LocalService): Promise<{ code: number; status: string }> {
  const answer = await fetch(`${service.url}/readyz`)
  return { code: answer.status, status: ((await answer.json()) as { status: string }).status }
}

async function readMetric(service: LocalService, series: string): Promise<number> {
  const headers = { authorization: `Bearer ${TEST_METRICS_TOKEN}` }
  const text = await (await fetch(`${service.url}/metrics`, { headers })).text()
  const line = text.split('\n').find((part) => part.startsWith(`${series} `))
  return Number(line?.slice(series.length + 1))
}

/** Calls until a change succeeds; returns how long that took, and the answers before. */
async function postUntilDone(service: LocalService, fixture: DeliveryFixture) {
  const startedAt = performance.now()
  const refused: Awaited<ReturnType<typeof post>>[] = []
  await waitFor(
    'a change that is taken',
    async () => {
      const answer = await post(service, fixture)
      if (answer.status === 201) return true
      refused.push(answer)
      return undefined
    },
    { limitMs: 60_000 },
  )
  return { tookMs: performance.now() - startedAt, refused }
}

test('new connections reach a standby for some seconds: changes are 503 with Retry-After, not ready, and well when the name leads to the primary again', async () => {
  await using servers = await startPrimaryAndStandby()
  await using proxy = await startDatabaseProxy(servers.primary.connectionString)
  await using fixture = await openDeliveryFixture(servers.primary)
  await using service = await fixture.startLocal({ databaseUrl: proxy.connectionString })
  expect((await post(service, fixture)).status).toBe(201)

  proxy.retarget(servers.standby)
  proxy.drop()
  await waitFor('unreadiness', async () => (await readReadiness(service)).code === 503)
  expect(await readReadiness(service)).toEqual({ code: 503, status: 'database read-only' })
  // The token of the service is not on the standby: what needs no caller shows that a change is refused by the database.
  const changes = Array.from({ length: 5 }, () =>
    service.call('POST', '/api/v3/auth/login/local', { email: 'nobody@example.com', password: 'a wrong password' }),
  )
  for (const answer of await Promise.all(changes)) expect(answer).toMatchObject(UNAVAILABLE)
  await waitFor('database_up 0', async () => (await readMetric(service, 'database_up')) === 0)

  // The standby goes on; only the name leads elsewhere.
  proxy.retarget(servers.primary.connectionString)
  const { tookMs, refused } = await postUntilDone(service, fixture)
  expect(tookMs).toBeLessThan(5_000 + BUSY_MS)
  for (const answer of refused) expect([401, 503]).toContain(answer.status)
  await waitFor('readiness', async () => (await readReadiness(service)).code === 200)
})

test('a database that is read-only for a while: reads are answered, changes are 503 with Retry-After, and connections of that time do not stay', async () => {
  await using fixture = await openDeliveryFixture()
  await using proxy = await startDatabaseProxy(fixture.database.connectionString)
  await using service = await fixture.startLocal({ databaseUrl: proxy.connectionString })
  expect((await post(service, fixture)).status).toBe(201)
  const name = new URL(fixture.database.connectionString).pathname.slice(1)

  await fixture.database.pool.query(`alter database "${name}" set default_transaction_read_only = on`)
  // Sessions take the setting when they begin.
  proxy.drop()
  await waitFor('unreadiness', async () => (await readReadiness(service)).code === 503)
  expect(await post(service, fixture)).toMatchObject(UNAVAILABLE)
  expect((await service.call('GET', '/api/v3/contract/contract')).status).toBe(200)
  expect(await post(service, fixture)).toMatchObject(UNAVAILABLE)

  await fixture.database.pool.query(`alter database "${name}" reset default_transaction_read_only`)
  expect((await postUntilDone(service, fixture)).tookMs).toBeLessThan(5_000 + BUSY_MS)
  await waitFor('readiness', async () => (await readReadiness(service)).code === 200)
})

test('open connections are dead for ever and new ones work: the first change is taken after some 10 s, every request is answered, and nothing is posted twice', async () => {
  await using fixture = await openDeliveryFixture()
  await using proxy = await startDatabaseProxy(fixture.database.connectionString)
  const receiver = await fixture.receive()
  await using service = await fixture.startLocal({
    databaseUrl: proxy.connectionString,
    env: { WEBHOOK_CONCURRENCY: '32' },
  })
  await fixture.subscribe(service, receiver)
  const answer = Promise.withResolvers<void>()
  receiver.behave({ kind: 'wait', until: answer.promise })
  await fixture.recordEvents(20)
  await receiver.waitFor(20)
  await Promise.all(Array.from({ length: 6 }, () => post(service, fixture)))

  proxy.swallowOpen()
  answer.resolve()
  receiver.behave({ kind: 'status', status: 200 })
  const asked = performance.now()
  const during = Array.from({ length: 20 }, () => post(service, fixture))
  const { tookMs } = await postUntilDone(service, fixture)
  expect(tookMs).toBeLessThan(FOUND_DEAD_MS)
  const answers = await Promise.all(during)
  // None is reset by the idle limit of HTTP (30 s) or answered 500.
  expect(performance.now() - asked).toBeLessThan(25_000 + BUSY_MS)
  for (const answer of answers) if (answer.status !== 201) expect(answer).toMatchObject({ status: 503 })
  // The pool that finds the first dead connection closes those of the others.
  const silent = ['requests', 'reads', 'workers', 'lease', 'maintenance'].map((pool) =>
    readMetric(service, `database_silent_connections_total{pool="${pool}"}`),
  )
  expect((await Promise.all(silent)).reduce((sum, result) => sum + result)).toBeGreaterThan(0)

  const { rows } = await fixture.database.pool.query<{ count: number }>('select count(*)::int as count from contract')
  const dispatches = 20 + rows[0]!.count
  const ledger = await fixture.waitForLedger(dispatches, ['success'])
  expect(ledger).toHaveLength(dispatches)
  const seen = new Set(receiver.requests.map(({ headers }) => headers['x-service-delivery']))
  expect(receiver.requests).toHaveLength(seen.size)
  expect(seen.size).toBe(dispatches)
})

test('a black hole: after some refusals callers are refused at once, a metric says so, and it ends by itself', async () => {
  await using fixture = await openDeliveryFixture()
  await using proxy = await startDatabaseProxy(fixture.database.connectionString)
  await using service = await fixture.startLocal({ databaseUrl: proxy.connectionString, roles: 'api' })
  expect((await post(service, fixture)).status).toBe(201)

  proxy.set('swallowing')
  const first = await Promise.all(Array.from({ length: 12 }, () => post(service, fixture)))
  for (const answer of first) expect(answer).toMatchObject(UNAVAILABLE)
  // One of them may be the one that tries.
  const quick: number[] = []
  for (let n = 0; n < 6; n += 1) {
    const askedAt = performance.now()
    expect(await Promise.race([post(service, fixture), post(service, fixture)])).toMatchObject(UNAVAILABLE)
    quick.push(performance.now() - askedAt)
  }
  expect(quick.filter((ms) => ms < 1_000).length).toBeGreaterThanOrEqual(5)
  expect(await readReadiness(service)).toEqual({ code: 503, status: 'database unavailable' })
  expect(await readMetric(service, 'database_breaker_open{pool="requests"}')).toBe(1)
  expect(await readMetric(service, 'database_refused_total{pool="requests"}')).toBeGreaterThan(0)

  proxy.set('open')
  const { tookMs } = await postUntilDone(service, fixture)
  expect(tookMs).toBeLessThan(8_000 + BUSY_MS)
  await waitFor('readiness', async () => (await readReadiness(service)).code === 200)
})
