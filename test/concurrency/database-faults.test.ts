import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemRandom } from '../../src/base/random.ts'
import { startEmbeddedPostgres } from '../../src/postgres/embedded/embedded.ts'
import { openDatabase } from '../../src/postgres/statement/database.ts'
import type { createTestDatabase } from '../harness/database/database.ts'
import { countSeen, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { startDatabaseProxy } from '../harness/fakes/proxy.ts'
import { findDataRoot } from '../harness/process/data-root.ts'
import { seedDataDir } from '../harness/process/seeded-data-dir.ts'
import { waitFor } from '../harness/run/wait.ts'

async function readReadiness(url: string): Promise<number> {
  return (await fetch(`${url}/readyz`)).status
}

test('a database that pauses for 6 s under running deliveries: not ready meanwhile, then all delivered once', async () => {
  await using fixture = await openDeliveryFixture()
  await using proxy = await startDatabaseProxy(fixture.database.connectionString)
  const receiver = await fixture.receive()
  const service = await fixture.startLocal({ databaseUrl: proxy.connectionString, env: { WEBHOOK_CONCURRENCY: '8' } })
  await fixture.subscribe(service, receiver)
  await fixture.recordEvents(100)
  await fixture.change(service)
  await receiver.waitFor(40)

  proxy.set('paused')
  const pausedAt = performance.now()
  // The answer may be a second old.
  await waitFor('unreadiness', async () => (await readReadiness(service.url)) === 503)
  const waiting = service.call('POST', '/api/v3/contract/contract', {
    name: 'Asked in the pause',
    account: fixture.account,
  })
  expect(receiver.requests.length).toBeLessThan(101)
  await waitFor('the end of the pause', () => performance.now() - pausedAt > 6_000)
  proxy.set('open')

  await waitFor('readiness', async () => (await readReadiness(service.url)) === 200)
  const answer = await waiting
  // It had a connection and waited, or had none and was told to come back.
  if (answer.status !== 201) expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
  const count = answer.status === 201 ? 102 : 101
  const rows = await fixture.waitForLedger(count, ['success'])
  expect(rows).toHaveLength(count)
  expect(rows.filter((row) => row.attempts !== 1)).toEqual([])
  expect(receiver.requests).toHaveLength(count)
})

test('a database that is gone: 503 with Retry-After, and deliveries go on by themselves when it is back', async () => {
  await using fixture = await openDeliveryFixture()
  await using proxy = await startDatabaseProxy(fixture.database.connectionString)
  const receiver = await fixture.receive()
  const service = await fixture.startLocal({ databaseUrl: proxy.connectionString, env: { WEBHOOK_CONCURRENCY: '8' } })
  await fixture.subscribe(service, receiver)
  const answer = Promise.withResolvers<void>()
  receiver.behaveNext({ kind: 'wait', until: answer.promise })
  await fixture.change(service)
  await receiver.waitFor(1)

  proxy.set('refusing')
  const refused = await service.call('POST', '/api/v3/contract/contract', {
    name: 'Too early',
    account: fixture.account,
  })
  expect(refused).toMatchObject({
    status: 503,
    headers: { 'retry-after': '5' },
    body: { code: 'dependency_unavailable' },
  })
  // The answer may be a second old.
  await waitFor('unreadiness', async () => (await readReadiness(service.url)) === 503)
  expect((await fetch(`${service.url}/livez`)).status).toBe(200)
  // The delivery is accepted while nothing can be written down.
  answer.resolve()
  await service.waitForLog(/attempts not recorded yet/)
  await fixture.recordEvents(50)

  proxy.set('open')
  await waitFor('readiness', async () => (await readReadiness(service.url)) === 200)
  const rows = await fixture.waitForLedger(51, ['success'])
  expect(rows.map((row) => row.attempts)).toEqual(rows.map(() => 1))
  expect(receiver.requests).toHaveLength(51)
  await service.stop()
})

test('connections that break in the middle, again and again: everything delivered, attempts at least what was seen', async () => {
  await using fixture = await openDeliveryFixture()
  await using proxy = await startDatabaseProxy(fixture.database.connectionString)
  const receiver = await fixture.receive()
  const service = await fixture.startLocal({ databaseUrl: proxy.connectionString, env: { WEBHOOK_CONCURRENCY: '4' } })
  await fixture.subscribe(service, receiver)
  await fixture.recordEvents(90)
  for (const count of [10, 30, 60]) {
    await receiver.waitFor(count)
    proxy.drop()
  }
  // A claim whose commit was answered into a broken connection is found by its process, and its attempt made again.
  const rows = await fixture.waitForLedger(90, ['success'])
  const seen = countSeen(receiver)
  expect(rows.filter((row) => row.attempts > 2)).toEqual([])
  const again = rows.filter((row) => row.attempts === 2)
  expect(again.map((row) => row.log[0]?.error_class)).toEqual(again.map(() => 'interrupted'))
  expect(rows.filter((row) => (seen.get(row.id)?.length ?? 0) > row.attempts)).toEqual([])
  expect(seen.size).toBe(90)
})

test('PostgreSQL killed and started again in the middle: the service stays, recovers and delivers every committed event', async () => {
  const dataDir = await mkdtemp(join(await findDataRoot(), 'signalbox restart '))
  await seedDataDir(dataDir)
  const start = () =>
    startEmbeddedPostgres({
      dataDir,
      random: systemRandom,
      log: () => {},
      // The machine stays up, so what was written outlives the server without being forced to disk.
      settings: { fsync: 'off', full_page_writes: 'off' },
    })
  let postgres = await start()
  try {
    await using proxy = await startDatabaseProxy(postgres.connectionString)
    const { connectionString } = proxy
    const opened = openDatabase({ connectionString, size: 4, applicationName: 'signalbox test', onError: () => {} })
    const dispose = () => opened.close()
    await using fixture = await openDeliveryFixture({ ...opened, connectionString, [Symbol.asyncDispose]: dispose })
    const receiver = await fixture.receive()
    const service = await fixture.start({ env: { WEBHOOK_CONCURRENCY: '4' } })
    await fixture.subscribe(service, receiver)
    await fixture.recordEvents(90)
    await receiver.waitFor(20)
    process.kill(postgres.pid, 'SIGKILL')
    await postgres.exited
    // The answer may be a second old.
    await waitFor('unreadiness', async () => (await readReadiness(service.url)) === 503)

    postgres = await start()
    proxy.retarget(postgres.connectionString)
    await waitFor('readiness', async () => (await readReadiness(service.url)) === 200)
    await fixture.change(service)
    await waitFor('all but lost claims', async () => {
      const rows = await fixture.readLedger()
      return rows.length === 91 && rows.every((row) => row.status === 'success' || row.leaseOwner !== null)
    })
    await fixture.letLeasesRunOut()
    const rows = await fixture.waitForLedger(91, ['success'])
    const seen = countSeen(receiver)
    expect(rows.filter((row) => row.attempts > 2)).toEqual([])
    expect(rows.filter((row) => (seen.get(row.id)?.length ?? 0) > row.attempts)).toEqual([])
    expect(seen.size).toBe(91)
    expect(await service.stop()).toEqual({ code: 0, signal: null })
    await opened.close()
  } finally {
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
})

/**
 * Every write of these tables fails as PostgreSQL fails it when a file cannot grow: the statement and its transaction end with
 * 53100 (disk_full). It stands for a full disk of the data; one of the write-ahead log ends the server, which is the restart above.
 */
async function fillDisk(database: Awaited<ReturnType<typeof createTestDatabase>>): Promise<() => Promise<void>> {
  const tables = ['contract', 'event_occurrence', 'webhook_dispatch_open', 'webhook_dispatch_ended', 'webhook_attempt']
  await database.pool.query(`
    create function refuse_to_grow() returns trigger language plpgsql as $$
    begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$`)
  for (const table of tables)
    await database.pool.query(
      `create trigger full_disk before insert or update on ${table} for each statement execute function refuse_to_grow()`,
    )
  return async () => {
    await database.pool.query('drop function refuse_to_grow() cascade')
  }
}

test('a full disk of the database: changes answer 503, what was posted is recorded once there is room, and nothing is posted twice', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const service = await fixture.startLocal()
  await fixture.subscribe(service, receiver)
  const answer = Promise.withResolvers<void>()
  receiver.behave({ kind: 'wait', until: answer.promise })
  await fixture.change(service)
  await fixture.change(service)
  await receiver.waitFor(2)

  const makeRoom = await fillDisk(fixture.database)
  answer.resolve()
  await service.waitForLog(/attempts not recorded yet/)
  const refused = await service.call('POST', '/api/v3/contract/contract', { name: 'No room', account: fixture.account })
  expect(refused).toMatchObject({
    status: 503,
    headers: { 'retry-after': '5' },
    body: { code: 'dependency_unavailable' },
  })
  expect((await fixture.readLedger()).map((row) => row.status)).toEqual(['pending', 'pending'])

  await makeRoom()
  await fixture.change(service)
  const rows = await fixture.waitForLedger(3, ['success'])
  expect(rows.map((row) => row.attempts)).toEqual([1, 1, 1])
  expect(receiver.requests).toHaveLength(3)
  const { rows: contracts } = await fixture.database.pool.query('select 1 from contract')
  expect(contracts).toHaveLength(3)
})
