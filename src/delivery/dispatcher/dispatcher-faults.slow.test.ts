import { sql } from 'kysely'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import { type DeliveryApp, openDelivery } from '../../../test/harness/app/delivery-app.ts'
import { buildListeningLogger } from '../../../test/harness/app/listening-logger.ts'
import { untilWaiting } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { LEASE_MS } from '../worker-lease.ts'
import { POLL_MS } from './waiting.ts'

/** Makes a database refuse everyone, as one that restarts does, until the returned function is called. */
async function closeDatabase(d: DeliveryApp): Promise<() => Promise<void>> {
  const name = new URL(d.t.database.connectionString).pathname.slice(1)
  const server = new pg.Client({ connectionString: inject('databaseServerUrl') })
  await server.connect()
  await server.query(`alter database ${name} with allow_connections false`)
  await server.query('select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1', [name])
  return async () => {
    await server.query(`alter database ${name} with allow_connections true`)
    await server.end()
  }
}

describe('stopping', () => {
  test('lets a running POST end, and records it', async () => {
    await using d = await openDelivery()
    const answer = Promise.withResolvers<void>()
    await d.makeWebhook()
    d.receiver.behaveNext({ kind: 'wait', until: answer.promise })
    await d.emit()
    await d.t.app.router.drain()
    const running = d.t.app.dispatcher.run()
    await d.receiver.waitFor(1)
    const stopped = d.t.app.dispatcher.stop()
    answer.resolve()
    await Promise.all([stopped, running])
    expect(await d.listRows()).toMatchObject([{ status: 'success', attempts: 1, lease_owner: null }])
  })

  test('interrupts a POST that does not end, and makes it due at once for the next worker', async () => {
    await using d = await openDelivery()
    await d.makeWebhook()
    d.receiver.behave({ kind: 'hang' })
    await d.emit()
    await d.t.app.router.drain()
    const running = d.t.app.dispatcher.run()
    await d.receiver.waitFor(1)
    const stopped = d.t.app.dispatcher.stop()
    d.t.clock.advance(6_000)
    await Promise.all([stopped, running])
    const [row] = await d.listRows()
    expect(row).toMatchObject({
      status: 'retrying',
      attempts: 1,
      last_error: 'interrupted',
      lease_owner: null,
      next_attempt_at: new Date(d.t.clock.now()),
    })
    expect(d.t.app.dispatcher.inFlight()).toBe(0)
  })

  test('gives back what was claimed and not posted: no attempt is counted', async () => {
    await using d = await openDelivery()
    await d.makeWebhook()
    await d.emit(3)
    await d.t.app.router.drain()
    const { db } = d.t.database
    let running: Promise<void> | undefined
    let stopped: Promise<void> | undefined
    await inTransaction(db, async (other) => {
      await sql`lock table webhook_queue in access exclusive mode`.execute(other)
      running = d.t.app.dispatcher.run()
      await untilWaiting(db, 1)
      stopped = d.t.app.dispatcher.stop()
    })
    await Promise.all([running, stopped])
    const rows = await d.listRows()
    expect(rows).toHaveLength(3)
    for (const row of rows)
      expect(row).toMatchObject({ status: 'pending', attempts: 0, fence: 2, lease_owner: null, last_attempt_at: null })
    expect(d.receiver.connectionCount()).toBe(0)
  })

  test('gives back rows that were claimed as they were routed, when their statement ends behind the stop', async () => {
    await using d = await openDelivery()
    await d.makeWebhook()
    const { router, dispatcher } = d.t.app
    const running = [dispatcher.run()]
    await waitFor('a dispatcher that claims', () => dispatcher.measureRoom().fastSlots > 0)
    await d.emit(3)
    await inTransaction(d.t.database.db, async (other) => {
      await sql`lock table event_queue in access exclusive mode`.execute(other)
      running.push(router.run())
      await untilWaiting(d.t.database.db, 1)
      router.stop()
      await dispatcher.stop()
    })
    await Promise.all(running)
    const rows = await d.listRows()
    expect(rows).toHaveLength(3)
    for (const row of rows) expect(row).toMatchObject({ status: 'pending', attempts: 0, lease_owner: null })
    expect(d.receiver.connectionCount()).toBe(0)
  })

  test('ends its lease, except where claims may be left that it does not know of', async () => {
    const listWorkers = async ({ t }: DeliveryApp) =>
      t.database.db.selectFrom('delivery_worker').select('worker_id').execute()
    await using d = await openDelivery()
    await d.t.app.dispatcher.drain()
    expect(await listWorkers(d)).toHaveLength(1)
    d.t.app.dispatcher.expectLeak()
    await d.t.app.stop()
    expect(await listWorkers(d)).toHaveLength(1)
    await using clean = await openDelivery()
    await clean.t.app.dispatcher.drain()
    await clean.t.app.stop()
    expect(await listWorkers(clean)).toEqual([])
  })

  test('claims nothing after it was asked to stop', async () => {
    await using d = await openDelivery()
    await d.makeWebhook()
    await d.emit()
    await d.t.app.router.drain()
    await d.t.app.dispatcher.stop()
    await d.t.app.dispatcher.run()
    await d.t.app.dispatcher.drain()
    expect(await d.listRows()).toMatchObject([{ status: 'pending', attempts: 0, lease_owner: null }])
  })
})

describe('a database that refuses while results wait', () => {
  test('loses no result and repeats no POST, however long the leases have run out meanwhile', async () => {
    let onRefused = () => {}
    const clock = buildManualClock()
    const logger = buildListeningLogger((message) => {
      if (message.startsWith('attempts not recorded yet')) onRefused()
    })
    await using d = await openDelivery({ clock, logger })
    const answer = Promise.withResolvers<void>()
    await d.makeWebhook()
    d.receiver.behave({ kind: 'wait', until: answer.promise })
    await d.emit(5)
    await d.t.app.router.drain()
    const drained = d.t.app.dispatcher.drain()
    await d.receiver.waitFor(5)
    const refused = Promise.withResolvers<void>()
    onRefused = refused.resolve
    const reopen = await closeDatabase(d)
    answer.resolve()
    await refused.promise
    // Longer than any lease: to another process these claims would look lost.
    clock.advance(LEASE_MS + 1)
    await reopen()
    onRefused = () => setImmediate(() => clock.advance(250))
    clock.advance(250)
    await drained
    await d.t.settle()
    const rows = await d.listRows()
    expect(rows.map((row) => [row.status, row.attempts])).toEqual(Array.from({ length: 5 }, () => ['success', 1]))
    expect(d.receiver.requests).toHaveLength(5)
  })

  test('goes on by itself when the database is back', async () => {
    const clock = buildManualClock()
    let onFailed = (_message: string) => {}
    const logger = buildListeningLogger((message) => onFailed(message))
    await using d = await openDelivery({ clock, logger })
    await d.makeWebhook()
    const running = d.t.app.dispatcher.run()
    await d.emit()
    await d.t.app.router.drain()
    d.t.app.dispatcher.notify()
    await waitFor('the first delivery', async () => (await d.listRows())[0]?.status === 'success')
    await d.emit()
    await d.t.app.router.drain()
    const failed = Promise.withResolvers<void>()
    onFailed = (message) => {
      if (message.startsWith('dispatcher round failed')) failed.resolve()
    }
    const reopen = await closeDatabase(d)
    d.t.app.dispatcher.notify()
    await failed.promise
    await reopen()
    // Whatever waits to be tried again is woken, also when it fails once more.
    onFailed = () => setImmediate(() => clock.advance(POLL_MS))
    clock.advance(POLL_MS)
    await d.receiver.waitFor(2)
    await d.t.app.dispatcher.stop()
    await running
    expect(await d.listRows()).toMatchObject([
      { status: 'success', attempts: 1 },
      { status: 'success', attempts: 1 },
    ])
  })

  test('claims nothing before the database has registered it as a worker', async () => {
    const clock = buildManualClock()
    let onFailed = () => {}
    const logger = buildListeningLogger((message) => {
      if (message.startsWith('worker not registered yet')) onFailed()
    })
    await using d = await openDelivery({ clock, logger })
    await d.makeWebhook()
    await d.emit()
    await d.t.app.router.drain()
    const failed = Promise.withResolvers<void>()
    onFailed = failed.resolve
    const reopen = await closeDatabase(d)
    const running = d.t.app.dispatcher.run()
    await failed.promise
    expect(d.t.app.dispatcher.measureRoom()).toMatchObject({ fastSlots: 0, slowSlots: 0 })
    await reopen()
    onFailed = () => setImmediate(() => clock.advance(POLL_MS))
    clock.advance(POLL_MS)
    await d.receiver.waitFor(1)
    expect(d.t.app.dispatcher.measureRoom().fastSlots).toBeGreaterThan(0)
    await d.t.app.dispatcher.stop()
    await running
    expect(await d.listRows()).toMatchObject([{ status: 'success', attempts: 1 }])
  })
})

describe('a statement whose answer was lost', () => {
  /** Makes every row a claim of the process itself, which does not know of it. */
  async function leakClaims(d: DeliveryApp): Promise<void> {
    const claim = { attempts: 1, fence: 1, lease_owner: d.t.app.workerId, next_attempt_at: null }
    const leaked = { ...claim, last_attempt_at: new Date(d.t.clock.now()) }
    await d.t.database.db.updateTable('webhook_dispatch_open').set(leaked).execute()
  }

  test('leaves claims that are made again at the next look: no statement of the process claims during it', async () => {
    await using d = await openDelivery()
    await d.makeWebhook()
    await d.emit()
    await d.t.app.router.drain()
    await leakClaims(d)
    d.t.app.dispatcher.expectLeak()
    await d.pass(1_000)
    const [row] = await d.listRows()
    expect(row).toMatchObject({ status: 'success', attempts: 2 })
    expect(await d.listOutcomes(row!.document_id)).toEqual(['interrupted', 200])
  })

  test('never makes the process take back what it posts itself, however long the POST takes', async () => {
    await using d = await openDelivery()
    await d.makeWebhook()
    const answer = Promise.withResolvers<void>()
    d.receiver.behave({ kind: 'wait', until: answer.promise })
    await d.emit()
    await d.t.app.router.drain()
    const running = d.t.app.dispatcher.run()
    await d.receiver.waitFor(1)
    d.t.app.dispatcher.expectLeak()
    for (let second = 0; second < 60; second += 1) d.t.clock.advance(1_000)
    const drained = d.t.app.dispatcher.drain()
    answer.resolve()
    await drained
    await d.t.app.dispatcher.stop()
    await running
    const [row] = await d.listRows()
    expect(row).toMatchObject({ status: 'success', attempts: 1 })
    expect(await d.listOutcomes(row!.document_id)).toEqual([200])
    expect(d.receiver.requests).toHaveLength(1)
  })
})

/** Makes every row a claim of a worker that is lost, whose lease runs until `leaseUntil`. */
async function loseClaims(d: DeliveryApp, attempts: number, leaseUntil: Date): Promise<void> {
  const { db } = d.t.database
  const worker = { worker_id: 'lost', lease_until: leaseUntil, has_lock: false }
  await db.insertInto('delivery_worker').values(worker).execute()
  const claim = { fence: 1, lease_owner: 'lost', next_attempt_at: null, last_attempt_at: new Date(d.t.clock.now()) }
  await db
    .updateTable('webhook_dispatch_open')
    .set({ ...claim, attempts })
    .execute()
}

describe('a process that is lost', () => {
  test('leaves nothing behind: its claims are made again when its lease has run out, and count', async () => {
    await using d = await openDelivery()
    await d.makeWebhook()
    await d.emit()
    await d.t.app.router.drain()
    await loseClaims(d, 1, new Date(d.t.clock.now() + LEASE_MS))
    await d.pass(LEASE_MS - 1)
    expect(d.receiver.requests).toHaveLength(0)
    await d.pass(1)
    const [row] = await d.listRows()
    expect(row).toMatchObject({ status: 'success', attempts: 2 })
    expect(await d.listOutcomes(row!.document_id)).toEqual(['interrupted', 200])
  })

  test('does not stop the service when nobody looked for longer than a length in milliseconds can be stored', async () => {
    await using d = await openDelivery()
    await d.makeWebhook()
    await d.emit()
    await d.t.app.router.drain()
    await loseClaims(d, 5, new Date(d.t.clock.now()))
    // 60 days: a laptop that was away. 2^31 ms are 24.8 days.
    await d.pass(60 * 86_400_000)
    expect(await d.listRows()).toMatchObject([
      { status: 'exhausted', attempts: 5, last_error: 'interrupted', last_duration_ms: LEASE_MS },
    ])
  })

  test('reports a webhook that a lost attempt disabled', async () => {
    const messages: string[] = []
    await using d = await openDelivery({ logger: buildListeningLogger((message) => messages.push(message)) })
    const { id } = await d.makeWebhook()
    await d.emit()
    await d.t.app.router.drain()
    await d.t.database.db.updateTable('webhook').set({ consecutive_failures: 19 }).execute()
    await loseClaims(d, 5, new Date(d.t.clock.now()))
    await d.t.settle()
    expect(await d.readWebhook(id)).toMatchObject({ is_actived: false, disabled_reason: 'consecutive-failures' })
    expect(messages.some((message) => message.startsWith('webhook.auto-disable'))).toBe(true)
  })
})
