import type pg from 'pg'
import { expect, test } from 'vitest'
import { TEST_METRICS_TOKEN } from '../harness/app/test-secrets.ts'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { startDatabaseProxy } from '../harness/fakes/proxy.ts'
import { BUSY_MS, waitFor } from '../harness/run/wait.ts'

const FAR = { limitMs: 180_000 }

/** The statements that wait for a lock of this connection. Workers give each up after 3 s; the same one again is another. */
async function readWaits(holder: pg.PoolClient): Promise<string[]> {
  const { rows } = await holder.query<{ wait: string }>(
    `select pid || ' ' || query_start || ' ' || application_name || ': ' || query as wait from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and pg_backend_pid() = any(pg_blocking_pids(pid))`,
  )
  return rows.map(({ wait }) => wait)
}

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
    const leases = new Map<string, Set<number>>()
    let last = 0
    // A lease is renewed each second, so without a wait of its own twice within one of the others. Two of these are given up.
    await waitFor(
      'two renewals within one wait for the lock',
      async () => {
        const waits = await readWaits(holder)
        const { rows } = await holder.query('select extract(epoch from min(lease_until)) as until from delivery_worker')
        const until = Number(rows[0].until)
        expect(until).toBeGreaterThanOrEqual(last)
        last = until
        for (const wait of waits) leases.set(wait, (leases.get(wait) ?? new Set()).add(until))
        return leases.size > 2 && [...leases.values()].some((seen) => seen.size > 2)
      },
      FAR,
    )
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
    const waits = new Set<string>()
    const areRecorded = async (count: number) => {
      for (const wait of await readWaits(holder)) waits.add(wait)
      const rows = await ofOther()
      return rows.length === count && rows.every((row) => row.status === 'failed')
    }
    await waitFor('the result of the other', () => areRecorded(1), FAR)
    // Later results of both come while the first is held back.
    for (let n = 0; n < 3; n += 1) await fixture.change(service)
    await waitFor('its later results', () => areRecorded(4), FAR)
    // Were they recorded with the first, they would wait with it for the lock, until that is given up.
    expect([...waits]).toEqual([])
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
