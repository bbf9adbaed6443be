import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { WebhookId } from '../../base/id.ts'
import type { ClaimRequest } from '../../delivery/policy.ts'
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
  const setLimit = (webhook: WebhookId, maxPerSecond: number | null) =>
    db.updateTable('webhook').set({ max_per_second: maxPerSecond }).where('document_id', '=', webhook).execute()
  const readThrottle = async () => (await sql<{ counts: number[] }>`select * from webhook_throttle`.execute(db)).rows
  return {
    ...{ database, db, clock, ledger, later, claim, claimAt, setLimit, readThrottle },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

describe('a webhook with a limit a second', () => {
  test('gets so many attempts, and the next ones exactly a second later', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook({ maxPerSecond: 5 }), { count: 12 })
    expect(await t.claimAt(0, 1, 999, 1_000, 1_999, 2_000, 3_000)).toEqual([5, 0, 0, 5, 0, 2, 0])
  })

  test('gets each attempt back a second after it was claimed, not all with the first', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook({ maxPerSecond: 4 }), { count: 30 })
    expect((await t.claim({ perGroup: 1 })).length).toBe(1)
    expect(await t.claimAt(400, 999, 1_000, 1_399, 1_400, 2_000)).toEqual([3, 0, 1, 0, 3, 1])
  })

  test('is not visited before an attempt may start, and the dispatcher sleeps until then', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 2 })
    await t.ledger.addDispatches(webhook, { count: 100 })
    await t.claim()
    expect(await findNextDueAt(t.db)).toEqual(t.later(1_000))
    expect((await t.ledger.readHeads()).get(webhook)).toMatchObject({ visitAt: t.later(1_000) })
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
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 3 })
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

  test('leaves a token that found no slot for the next claim', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook({ maxPerSecond: 5 }), { count: 9 })
    expect(await t.claim({ fastSlots: 2 })).toHaveLength(2)
    expect(await t.claim()).toHaveLength(3)
    expect(await t.claim()).toEqual([])
  })

  test('follows a changed limit from the next visit on', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 10 })
    await t.ledger.addDispatches(webhook, { count: 100 })
    expect(await t.claimAt(0)).toEqual([10])
    await t.setLimit(webhook, 3)
    expect(await t.claimAt(1_000, 1_500)).toEqual([3, 0])
    await t.setLimit(webhook, 7)
    // The visit that was scheduled under the old limit.
    expect(await t.claimAt(499, 500)).toEqual([0, 7])
    await t.setLimit(webhook, null)
    expect(await t.claimAt(1_000)).toEqual([80])
    expect((await t.db.selectFrom('webhook_queue').selectAll().execute()).map((row) => row.free_at)).toEqual([])
  })

  test('a lowered limit holds for what was claimed under the higher one', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 10 })
    await t.ledger.addDispatches(webhook, { count: 100 })
    await t.claim({ perGroup: 4 })
    await t.setLimit(webhook, 2)
    expect(await t.claimAt(500, 999, 1_000)).toEqual([0, 0, 2])
  })

  test('keeps its count when nothing waits any more', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 2 })
    await t.ledger.addDispatches(webhook, { count: 2 })
    expect(await t.claimAt(0)).toEqual([2])
    expect(await t.ledger.readHeads()).toEqual(new Map())
    await t.ledger.addDispatches(webhook, { count: 2 })
    expect(await t.claimAt(1, 999, 1_000)).toEqual([0, 0, 2])
  })

  test('is not blocked by counts from before the clock of the database was set back', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 2 })
    await t.ledger.addDispatches(webhook, { count: 2 })
    expect(await t.claimAt(0)).toEqual([2])
    await t.ledger.addDispatches(webhook, { count: 2, dueAt: t.later(-3_600_000) })
    expect(await t.claim({ now: t.later(-3_600_000) })).toHaveLength(2)
    expect(await t.claim({ now: t.later(-3_599_500) })).toEqual([])
  })
})

test('claims of a thousand milliseconds are a hundred entries at most, and never more than the limit', async () => {
  await using t = await openLedger()
  const webhook = await t.ledger.addWebhook({ maxPerSecond: 1_000 })
  await t.ledger.addDispatches(webhook, { count: 400 })
  for (let ms = 0; ms < 300; ms += 1) {
    await t.claim({ perGroup: 1 })
    t.clock.advance(1)
  }
  const [row] = await t.readThrottle()
  expect(row!.counts.length).toBeLessThanOrEqual(31)
  expect(row!.counts.reduce((sum, count) => sum + count, 0)).toBe(300)
})

test('of two workers that claim at once, together they get the limit', async () => {
  await using t = await openLedger()
  for (let round = 0; round < 5; round += 1) {
    const webhook = await t.ledger.addWebhook({ maxPerSecond: 10 })
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
    expect(await deleteOldThrottles(t.db, t.later(-60_000), 10)).toBe(1)
    expect(await t.readThrottle()).toMatchObject([{ webhook: fresh }])
    expect(await deleteOldThrottles(t.db, t.later(-60_000), 10)).toBe(0)
  })
})
