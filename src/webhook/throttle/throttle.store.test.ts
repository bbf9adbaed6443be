import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { WebhookId } from '../../base/id.ts'
import type { ClaimRequest } from '../../delivery/policy.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { claimDispatches, findNextDueAt } from '../delivery/claim.store.ts'
import { deleteOldThrottles } from './throttle.store.ts'

async function openLedger() {
  const database = await createTestDatabase()
  const { db } = database
  const clock = buildManualClock()
  const ledger = buildLedger(db, clock)
  const later = (ms: number) => new Date(clock.now() + ms)
  const claim = (change: Partial<ClaimRequest> = {}) =>
    claimDispatches(db, {
      workerId: 'worker-a',
      now: later(0),
      fastSlots: 1_000,
      slowSlots: 25,
      slowGroups: [],
      lateGroups: [],
      inFlight: new Map(),
      perGroup: 1_000,
      hasPeers: false,
      ...change,
    })
  /** Claims at each of these milliseconds; returns how many were claimed. */
  async function claimAt(...times: number[]): Promise<number[]> {
    const startMs = clock.now()
    const counts = []
    for (const time of times) {
      clock.advance(startMs + time - clock.now())
      counts.push((await claim()).length)
    }
    return counts
  }
  /** Claims every `stepMs` for so long; returns how many were claimed each time. */
  const claimEach = (stepMs: number, forMs: number) =>
    claimAt(...Array.from({ length: forMs / stepMs }, (_, step) => step * stepMs))
  const setLimit = (webhook: WebhookId, maxPerSecond: number | null) =>
    db.updateTable('webhook').set({ max_per_second: maxPerSecond }).where('document_id', '=', webhook).execute()
  const readThrottle = async () => (await sql<{ counts: number[] }>`select * from webhook_throttle`.execute(db)).rows
  return {
    ...{ database, db, clock, ledger, later, claim, claimAt, claimEach, setLimit, readThrottle },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

describe('a webhook with a limit a second', () => {
  test('gets its attempts spread over the second, each when it is due', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook({ maxPerSecond: 4 }), { count: 12 })
    expect(await t.claimAt(0, 100, 199, 200, 399, 400, 699, 700, 999, 1_000)).toEqual([1, 0, 0, 1, 0, 1, 0, 1, 0, 1])
  })

  test('gets at most so many in any second, however they came', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook({ maxPerSecond: 40 }), { count: 1_000 })
    const counts = await t.claimEach(5, 4_000)
    for (const [start] of counts.entries())
      expect(counts.slice(start, start + 200).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(40)
    expect(counts.slice(200, 800).reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(3 * 39)
  })

  test('gets what a late visit missed, as far as the second has room', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook({ maxPerSecond: 100 }), { count: 1_000 })
    expect(await t.claimAt(0, 99, 100, 200, 950, 999, 1_000)).toEqual([11, 0, 10, 10, 69, 0, 11])
  })

  test('starts with a tenth of a second of attempts when nothing waited, not with all of a second', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 100 })
    for (let round = 0; round < 2; round += 1) {
      await t.ledger.addDispatches(webhook, { count: 20 })
      expect(await t.claimAt(0, 100)).toEqual([11, 9])
      t.clock.advance(60_000)
    }
  })

  test('is not visited before an attempt may start, and the dispatcher sleeps until then', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 2 })
    await t.ledger.addDispatches(webhook, { count: 100 })
    await t.claim()
    expect(await findNextDueAt(t.db)).toEqual(t.later(400))
    expect((await t.ledger.readHeads()).get(webhook)).toMatchObject({ visitAt: t.later(400) })
  })

  test('with a high limit is visited for as many attempts as are due in 100 ms', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 1_000 })
    await t.ledger.addDispatches(webhook, { count: 300 })
    expect(await t.claimAt(0, 99, 100, 199, 200)).toEqual([101, 0, 100, 0, 99])
  })

  test('is visited at whole milliseconds, never too soon', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook({ maxPerSecond: 7 }), { count: 300 })
    await t.claimAt(0)
    const nextAt = await findNextDueAt(t.db)
    t.clock.advance(nextAt!.getTime() - t.clock.now())
    expect(await t.claim()).toHaveLength(1)
  })

  test('delays no other webhook, however long its backlog', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook({ maxPerSecond: 1 }), { count: 2_000, dueAt: t.later(-9) })
    const plain = await t.ledger.addWebhook()
    await t.ledger.addDispatches(plain, { count: 10 })
    const claimed = await t.claim()
    expect(claimed.filter(({ group }) => group === plain)).toHaveLength(10)
    expect(claimed).toHaveLength(11)
    await t.ledger.addDispatches(plain, { count: 3 })
    expect((await t.claim()).map(({ group }) => group)).toEqual([plain, plain, plain])
  })

  test('counts its own attempts alone, and leaves a webhook without a limit to any worker', async () => {
    await using t = await openLedger()
    const [limited, other] = [await t.ledger.addWebhook({ maxPerSecond: 5 }), await t.ledger.addWebhook()]
    for (const webhook of [limited, other]) await t.ledger.addDispatches(webhook, { count: 3 })
    t.clock.advance(1)
    expect(await t.claim({ perGroup: 2 })).toHaveLength(3)
    expect(await t.readThrottle()).toMatchObject([{ webhook: limited, counts: [1] }])
    const heads = await t.db.selectFrom('webhook_queue').select(['visitor']).where('webhook', '=', other).execute()
    expect(heads).toEqual([{ visitor: null }])
  })

  test('counts no attempt, no failure and no time for the rows that wait', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 1 })
    const ids = await t.ledger.addDispatches(webhook, { count: 2 })
    const [first] = await t.claim()
    await t.claimAt(1, 500)
    const waiting = await t.ledger.readDispatch(ids.find((id) => id !== first!.id)!)
    expect(waiting).toMatchObject({ status: 'pending', attempts: 0, fence: 0, last_attempt_at: null })
    expect(waiting.next_attempt_at).toEqual(waiting.created_at)
    expect(await t.ledger.readWebhook(webhook)).toMatchObject({ consecutive_failures: 0, is_actived: true })
  })

  test('counts retries, replays and tests like first attempts', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 20 })
    await t.ledger.addDispatches(webhook, { status: 'retrying', attempts: 2, dueAt: t.later(-30) })
    await t.ledger.addDispatches(webhook, { status: 'retrying', trigger: 'replay', dueAt: t.later(-20) })
    await t.ledger.addDispatches(webhook, { isTest: true, trigger: 'test', dueAt: t.later(-10) })
    await t.ledger.addDispatches(webhook)
    expect((await t.claim()).map(({ trigger }) => trigger)).toEqual(['schedule', 'replay', 'test'])
    expect(await t.claim()).toEqual([])
  })

  test('gets the test of an inactive webhook at once, uncounted', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 1, isActived: false })
    await t.ledger.addDispatches(webhook, { count: 2, isTest: true, trigger: 'test' })
    expect(await t.claim()).toHaveLength(2)
    expect(await t.readThrottle()).toEqual([])
  })

  test.each([{ is_actived: false }, { deleted_at: new Date(0) }])(
    'rests with its webhook, for any worker: %j',
    async (change) => {
      await using t = await openLedger()
      const webhook = await t.ledger.addWebhook({ maxPerSecond: 1 })
      await t.ledger.addDispatches(webhook, { count: 3 })
      expect(await t.claim()).toHaveLength(1)
      const heads = () => t.db.selectFrom('webhook_queue').select(['is_held', 'visitor', 'free_at']).execute()
      expect(await heads()).toEqual([{ is_held: false, visitor: 'worker-a', free_at: t.later(1_000) }])
      await t.db.updateTable('webhook').set(change).execute()
      await t.db
        .updateTable('webhook_queue')
        .set({ visit_at: t.later(0), visitor: null })
        .execute()
      expect(await t.claim()).toEqual([])
      expect(await heads()).toEqual([{ is_held: true, visitor: null, free_at: null }])
    },
  )

  test('leaves an attempt that found no slot for the next claim', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook({ maxPerSecond: 40 }), { count: 9 })
    expect(await t.claim({ fastSlots: 2 })).toHaveLength(2)
    expect(await t.claim()).toHaveLength(3)
    expect(await t.claim()).toEqual([])
  })

  test('follows a changed limit within a second', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 1 })
    await t.ledger.addDispatches(webhook, { count: 100 })
    expect(await t.claimAt(0, 899)).toEqual([1, 0])
    await t.setLimit(webhook, 1_000)
    // The visit that was scheduled under the old limit; the claims under it count on.
    expect(await t.claimAt(0, 100, 101)).toEqual([0, 0, 99])
    await t.setLimit(webhook, null)
    await t.ledger.addDispatches(webhook, { count: 500 })
    expect(await t.claimAt(1_000)).toEqual([500])
    expect(await t.db.selectFrom('webhook_queue').selectAll().execute()).toEqual([])
  })

  test('a lowered limit holds for what was claimed under the higher one', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 100 })
    await t.ledger.addDispatches(webhook, { count: 100 })
    expect(await t.claimAt(0)).toEqual([11])
    await t.setLimit(webhook, 10)
    expect(await t.claimAt(500, 999, 1_000)).toEqual([0, 0, 10])
  })

  test('keeps its count when nothing waits any more', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 2 })
    await t.ledger.addDispatches(webhook)
    expect(await t.claimAt(0)).toEqual([1])
    expect(await t.ledger.readHeads()).toEqual(new Map())
    await t.ledger.addDispatches(webhook, { count: 2 })
    expect(await t.claimAt(1, 399, 400)).toEqual([0, 0, 1])
  })

  test('is not blocked by counts from before the clock of the database was set back', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 2 })
    await t.ledger.addDispatches(webhook)
    expect(await t.claimAt(0)).toEqual([1])
    await t.ledger.addDispatches(webhook, { count: 2, dueAt: t.later(-3_600_000) })
    expect(await t.claim({ now: t.later(-3_600_000) })).toHaveLength(1)
    expect(await t.claim({ now: t.later(-3_599_700) })).toEqual([])
  })
})

test('claims of every millisecond are a hundred entries a second at most', async () => {
  await using t = await openLedger()
  const webhook = await t.ledger.addWebhook({ maxPerSecond: 1_000 })
  await t.ledger.addDispatches(webhook, { count: 400 })
  let claimed = 0
  for (let ms = 0; ms < 300; ms += 1) {
    claimed += (await t.claim({ perGroup: 1 })).length
    t.clock.advance(1)
  }
  const [row] = await t.readThrottle()
  expect(row!.counts.length).toBeLessThanOrEqual(31)
  expect(row!.counts.reduce((sum, count) => sum + count, 0)).toBe(claimed)
})

test('a webhook that waits for its limit is visited by the worker that did so before, by others when that one is late', async () => {
  await using t = await openLedger()
  await t.ledger.addDispatches(await t.ledger.addWebhook({ maxPerSecond: 20 }), { count: 50 })
  await t.claim()
  t.clock.advance(299)
  const other = { workerId: 'worker-b', hasPeers: true }
  expect(await t.claim(other)).toEqual([])
  const room = { fastSlots: 1, slowSlots: 1, slowGroups: [], lateGroups: [], inFlight: new Map(), perGroup: 9 }
  const askAs = (workerId: string) => findNextDueAt(t.db, { ...room, hasPeers: true, workerId })
  expect([await askAs('worker-a'), await askAs('worker-b')]).toEqual([t.later(-199), t.later(1)])
  t.clock.advance(1)
  expect(await t.claim(other)).not.toEqual([])
  expect([await askAs('worker-a'), await askAs('worker-b')]).toEqual([t.later(300), t.later(100)])
})

test('workers whose clocks are 20 ms apart exceed the limit in no second, whoever visits', async () => {
  await using t = await openLedger()
  await t.ledger.addDispatches(await t.ledger.addWebhook({ maxPerSecond: 30 }), { count: 500 })
  const times: number[] = []
  for (let step = 0; step < 300; step += 1) {
    t.clock.advance(13)
    await sql`update webhook_queue set visitor = null`.execute(t.db)
    const offsetMs = step % 3 === 0 ? -20 : 0
    const claimed = await t.claim({ workerId: `worker-${step % 3}`, now: t.later(offsetMs) })
    times.push(...claimed.map(() => t.clock.now() + offsetMs))
  }
  const countFrom = (start: number) => times.filter((time) => time >= start && time < start + 1_000).length
  expect(Math.max(...times.map(countFrom))).toBeLessThanOrEqual(30)
  expect(times.length).toBeGreaterThan(3 * 29)
})

test('workers that claim at once get what is due, together', async () => {
  await using t = await openLedger()
  for (let round = 0; round < 5; round += 1) {
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 90 })
    await t.ledger.addDispatches(webhook, { count: 50 })
    const workers = ['worker-a', 'worker-b', 'worker-c', 'worker-d']
    const claims = await Promise.all(workers.map((workerId) => t.claim({ workerId, hasPeers: true })))
    expect(claims.flat().filter(({ group }) => group === webhook)).toHaveLength(10)
  }
})

describe('counts that are over', () => {
  test('are deleted, and those of the last minute are kept', async () => {
    await using t = await openLedger()
    const [old, fresh] = [
      await t.ledger.addWebhook({ maxPerSecond: 2 }),
      await t.ledger.addWebhook({ maxPerSecond: 2 }),
    ]
    await t.ledger.addDispatches(old)
    await t.claim()
    t.clock.advance(60_001)
    await t.ledger.addDispatches(fresh)
    await t.claim()
    expect(await deleteOldThrottles(t.db, t.later(-60_001), 10)).toBe(0)
    await inTransaction(t.db, async (tx) => {
      await tx.selectFrom('webhook_throttle').select('webhook').forUpdate().execute()
      expect(await deleteOldThrottles(t.db, t.later(-60_000), 10)).toBe(0)
    })
    expect(await deleteOldThrottles(t.db, t.later(-60_000), 10)).toBe(1)
    expect(await t.readThrottle()).toMatchObject([{ webhook: fresh }])
    expect(await deleteOldThrottles(t.db, t.later(-60_000), 10)).toBe(0)
  })
})
