import { expect, test } from 'vitest'
import { TEST_METRICS_TOKEN } from '../harness/app/test-secrets.ts'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { startDatabaseProxy } from '../harness/fakes/proxy.ts'
import { BUSY_MS, waitFor } from '../harness/run/wait.ts'

test('a locked table of webhooks: leases of living workers stay renewed, and what waited is posted once', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  await using service = await fixture.startLocal()
  await fixture.subscribe(service, receiver)
  const answer = Promise.withResolvers<void>()
  receiver.behave({ kind: 'wait', until: answer.promise })
  await fixture.recordEvents(20)
  await receiver.waitFor(20)

  const holder = await fixture.database.pool.connect()
  try {
    await holder.query('begin; lock table webhook in access exclusive mode')
    answer.resolve()
    receiver.behave({ kind: 'status', status: 200 })
    await fixture.recordEvents(20)
    // Two of these locks are given up in that time.
    const lockedAt = performance.now()
    const leases = new Set<number>()
    await waitFor('8 s under the lock', async () => {
      const { rows } = await holder.query('select extract(epoch from min(lease_until)) as until from delivery_worker')
      leases.add(Number(rows[0].until))
      return performance.now() - lockedAt > 8_000 && leases.size > 5
    })
    // A lease is 30 s, and renewed each second: none of the renewals waited for the lock, not even until it was given up.
    const ends = [...leases]
    const pauses = ends.slice(1).map((until, index) => until - ends[index]!)
    expect(Math.min(...pauses)).toBeGreaterThan(0)
    expect(pauses.toSorted((a, b) => a - b)[Math.floor(pauses.length / 2)]).toBeLessThan(3)
  } finally {
    await holder.query('rollback')
    holder.release()
  }
  const rows = await fixture.waitForLedger(40, ['success'])
  expect(rows.filter((row) => row.attempts !== 1)).toEqual([])
  expect(receiver.requests).toHaveLength(40)
})

test('a webhook whose row is locked: the results of the others are recorded at once, its own when the lock ends', async () => {
  await using fixture = await openDeliveryFixture()
  const [locked, other] = [await fixture.receive(), await fixture.receive()]
  await using service = await fixture.startLocal()
  const ids = [await fixture.subscribe(service, locked), await fixture.subscribe(service, other)]
  // A redirect ends a dispatch as failed, which counts against its webhook: both results lock their webhook.
  for (const receiver of [locked, other])
    receiver.behave({ kind: 'redirect', location: 'https://elsewhere.example.com/' })

  const holder = await fixture.database.pool.connect()
  try {
    await holder.query('begin')
    await holder.query('select from webhook where document_id = $1 for update', [ids[0]])
    await fixture.change(service)
    const ofOther = async () => (await fixture.readLedger()).filter((row) => row.webhook === ids[1])
    const startedAt = performance.now()
    await waitFor('the result of the other', async () => (await ofOther()).some((row) => row.status === 'failed'))
    // Later results of both come while the first is held back.
    for (let n = 0; n < 3; n += 1) await fixture.change(service)
    await waitFor('its later results', async () => {
      const rows = await ofOther()
      return rows.length === 4 && rows.every((row) => row.status === 'failed')
    })
    // A lock is given up after 3 s: were they recorded with the first, each of the two rounds would wait for that.
    expect(performance.now() - startedAt).toBeLessThan(5_500)
    const own = (await fixture.readLedger()).filter((row) => row.webhook === ids[0])
    expect(own.map((row) => row.status)).toEqual(own.map(() => 'pending'))
  } finally {
    await holder.query('rollback')
    holder.release()
  }
  const rows = await fixture.waitForLedger(8, ['failed'])
  expect(rows.map((row) => row.attempts)).toEqual(rows.map(() => 1))
  const { rows: counts } = await fixture.database.pool.query('select consecutive_failures from webhook')
  expect(counts).toEqual([{ consecutive_failures: 4 }, { consecutive_failures: 4 }])
})

test('a dispatch whose row is locked: the results of other webhooks are recorded meanwhile', async () => {
  await using fixture = await openDeliveryFixture()
  const [locked, other] = [await fixture.receive(), await fixture.receive()]
  await using service = await fixture.startLocal()
  const ids = [await fixture.subscribe(service, locked), await fixture.subscribe(service, other)]
  const answer = Promise.withResolvers<void>()
  locked.behave({ kind: 'wait', until: answer.promise })
  await fixture.change(service)
  await locked.waitFor(1)
  await other.waitFor(1)

  const holder = await fixture.database.pool.connect()
  try {
    await holder.query('begin')
    await holder.query('select from webhook_dispatch_open where webhook = $1 for update', [ids[0]])
    answer.resolve()
    locked.behave({ kind: 'status', status: 200 })
    for (let n = 0; n < 5; n += 1) await fixture.change(service)
    // The lock is held until they are there.
    await waitFor('the results of the other', async () => {
      const rows = (await fixture.readLedger()).filter((row) => row.webhook === ids[1])
      return rows.length === 6 && rows.every((row) => row.status === 'success')
    })
  } finally {
    await holder.query('rollback')
    holder.release()
  }
  const rows = await fixture.waitForLedger(12, ['success'])
  expect(rows.map((row) => row.attempts)).toEqual(rows.map(() => 1))
})

test('the listening connection is lost behind something that acknowledges: a new one is opened within seconds, and a metric counts it', async () => {
  await using fixture = await openDeliveryFixture()
  await using proxy = await startDatabaseProxy(fixture.database.connectionString)
  await using service = await fixture.startLocal({
    roles: 'api,dispatcher',
    env: { DATABASE_LISTEN_URL: proxy.connectionString },
  })
  const countReconnects = async () => {
    const headers = { authorization: `Bearer ${TEST_METRICS_TOKEN}` }
    const text = await (await fetch(`${service.url}/metrics`, { headers })).text()
    return Number(/^database_listen_reconnects_total (\d+)$/m.exec(text)?.[1])
  }
  const countListening = async () => {
    const { rows } = await fixture.database.pool.query(
      `select count(*)::int as count from pg_stat_activity
       where datname = current_database() and application_name = 'signalbox listen'`,
    )
    return rows[0].count
  }
  await waitFor('the first connection', async () => (await countListening()) === 1)
  expect(await countReconnects()).toBe(0)

  const lostAt = performance.now()
  proxy.swallowOpen()
  // The server does not hear of the end either: the old session is still there.
  await waitFor('a second connection', async () => (await countListening()) >= 2)
  // A question each second, 5 s for its answer, and 250 ms before a new connection.
  expect(performance.now() - lostAt).toBeLessThan(10_000 + BUSY_MS)
  // The metrics may be 5 s old.
  await waitFor('the metric', async () => (await countReconnects()) >= 1)
})
