import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { DispatchId, WebhookId } from '../../base/id.ts'
import { listLastingIncidents } from '../../delivery/incident/alert.store.ts'
import type { AttemptResult } from '../../delivery/post/attempt-result.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findDispatchWithAttempts } from '../ledger/dispatch.store.ts'
import { scheduleReplays } from '../ledger/replay.store.ts'
import { claimDispatches } from './claim.store.ts'
import type { ClaimedDispatch } from './claimed-work.ts'
import { readTotals } from './delivery-count.store.ts'
import type { EndedAttempt } from './outcome.ts'
import { type DispatchChange, settleChanges } from './settle.store.ts'
import { type SettledAttempts, settleAttempts } from './settle.ts'

const listAttempts = async ({ db }: { db: Database }, id: DispatchId) =>
  (await findDispatchWithAttempts(db, id))!.attempts

async function openLedger() {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  const later = (ms: number) => new Date(clock.now() + ms)
  const claimAll = (workerId = 'worker-a') =>
    claimDispatches(database.db, {
      workerId,
      now: later(0),
      fastSlots: 1_000,
      slowSlots: 0,
      slowGroups: [],
      lateGroups: [],
      inFlight: new Map(),
      perGroup: 1_000,
      hasPeers: true,
    })
  const record = (attempts: readonly EndedAttempt[]) => settleAttempts(ledger.deps, database.db, attempts)
  const apply = async (changes: readonly DispatchChange[], withFailures = true) =>
    settleChanges(database.db, changes, { workerId: 'worker-a', withFailures })
  const end = (claimed: ClaimedDispatch, result: AttemptResult, change: Partial<EndedAttempt> = {}): EndedAttempt => ({
    id: claimed.id,
    fence: claimed.fence,
    attempt: claimed.attempt,
    trigger: claimed.trigger,
    isTest: claimed.isTest,
    webhook: claimed.webhook.id,
    event: claimed.event.type,
    workerId: 'worker-a',
    startedAt: later(-5),
    endedAt: later(0),
    durationMs: 5,
    result,
    responseExcerpt: null,
    responseHeaders: null,
    traceId: null,
    timings: null,
    ...change,
  })
  /** Ends `count` fresh deliveries of a webhook with one result, in one batch. */
  const deliver = async (webhook: WebhookId, results: readonly AttemptResult[], attempts = 4) => {
    await ledger.addDispatches(webhook, { count: results.length, status: 'retrying', attempts })
    const claimed = await claimAll()
    return record(claimed.map((claim, index) => end(claim, results[index]!, { endedAt: later(index) })))
  }
  /** The events that wait for their routing. */
  const listEvents = () =>
    database.db
      .selectFrom('event_occurrence as e')
      .innerJoin('event_queue as q', 'q.event_id', 'e.document_id')
      .select(['e.event', 'e.resource_id', 'e.excluded_webhook', 'e.routed_at'])
      .execute()
  return {
    database,
    db: database.db,
    clock,
    ledger,
    later,
    claimAll,
    record,
    apply,
    end,
    deliver,
    listEvents,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

const FAILED = { statusCode: 500 }
const DELIVERED = { statusCode: 200 }

describe('fences', () => {
  test('records the result of the living claim: row, log entry and total, and ends the claim', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [id] = await t.ledger.addDispatches(webhook)
    const [claimed] = await t.claimAll()
    const { recorded } = await t.record([
      t.end(claimed!, DELIVERED, { durationMs: 12.6, responseExcerpt: 'ok', responseHeaders: { server: 'x' } }),
    ])
    expect(recorded).toMatchObject([{ isRecorded: true, decision: { status: 'success' } }])
    expect(await t.ledger.readDispatch(id!)).toMatchObject({
      status: 'success',
      attempts: 1,
      next_attempt_at: null,
      last_status_code: 200,
      last_error: null,
      last_duration_ms: 13,
      delivered_at: t.later(0),
      ended_at: t.later(0),
      lease_owner: null,
    })
    expect(await listAttempts(t, id!)).toMatchObject([
      {
        attempt: 1,
        trigger: 'schedule',
        worker: 'worker-a',
        startedAt: t.later(-5),
        statusCode: 200,
        errorClass: null,
        responseExcerpt: 'ok',
        responseHeaders: { server: 'x' },
      },
    ])
    expect(await readTotals(t.db)).toEqual(new Map([['success', 1]]))
  })

  test('takes no result twice', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [id] = await t.ledger.addDispatches(webhook)
    const [claimed] = await t.claimAll()
    await t.record([t.end(claimed!, FAILED)])
    const before = await t.ledger.readDispatch(id!)
    const { recorded } = await t.record([t.end(claimed!, DELIVERED)])
    expect(recorded).toMatchObject([{ isRecorded: false }])
    expect(await t.ledger.readDispatch(id!)).toEqual(before)
    expect(await listAttempts(t, id!)).toHaveLength(1)
    expect(await readTotals(t.db)).toEqual(new Map([['retrying', 1]]))
  })

  test('voids a late result: another process claimed meanwhile, and its claim stays', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [id] = await t.ledger.addDispatches(webhook)
    const [late] = await t.claimAll()
    await t.record([t.end(late!, { errorClass: 'interrupted' })])
    const [current] = await t.claimAll('worker-b')
    const { recorded } = await t.record([t.end(late!, DELIVERED)])
    expect(recorded).toMatchObject([{ isRecorded: false }])
    expect(await t.ledger.readDispatch(id!)).toMatchObject({ status: 'retrying', lease_owner: 'worker-b', attempts: 2 })
    await t.record([t.end(current!, DELIVERED)])
    expect(await t.ledger.readDispatch(id!)).toMatchObject({ status: 'success', attempts: 2 })
  })

  test('voids a result that comes again while the row waits, for its next attempt and for a replay', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [id] = await t.ledger.addDispatches(webhook)
    const [first] = await t.claimAll()
    await t.record([t.end(first!, { errorClass: 'interrupted' })])
    expect((await t.record([t.end(first!, DELIVERED)])).recorded).toMatchObject([{ isRecorded: false }])
    const [second] = await t.claimAll()
    await t.record([t.end(second!, DELIVERED)])
    await scheduleReplays(t.db, [id!], { job: null, workerId: 'worker-a', now: t.later(0) })
    expect((await t.record([t.end(second!, DELIVERED)])).recorded).toMatchObject([{ isRecorded: false }])
    expect(await t.ledger.readDispatch(id!)).toMatchObject({ status: 'retrying', attempts: 2, lease_owner: null })
    expect(await t.claimAll()).toMatchObject([{ id, attempt: 3, trigger: 'replay' }])
  })

  test('records one of two results that come in one batch, the late one and that of the next claim', async () => {
    // Found by reading: keyed by dispatch, both counted as recorded, the log broke its key, and the batch came back for ever.
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [id] = await t.ledger.addDispatches(webhook)
    const [late] = await t.claimAll()
    await t.record([t.end(late!, { errorClass: 'interrupted' })])
    const [current] = await t.claimAll()
    const { recorded } = await t.record([t.end(late!, DELIVERED), t.end(current!, FAILED)])
    expect(recorded.map((result) => result.isRecorded)).toEqual([false, true])
    expect((await listAttempts(t, id!)).map((attempt) => [attempt.attempt, attempt.errorClass])).toEqual([
      [1, 'interrupted'],
      [2, 'http_5xx'],
    ])
    expect(await readTotals(t.db)).toEqual(new Map([['retrying', 2]]))
  })

  test('takes one of two results of one claim that are recorded at the same time', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    await t.ledger.addDispatches(webhook, { count: 20 })
    const claimed = await t.claimAll()
    const results = await Promise.all([
      t.record(claimed.map((claim) => t.end(claim, FAILED))),
      t.record(claimed.map((claim) => t.end(claim, { errorClass: 'interrupted' }))),
    ])
    const written = results.flatMap((result) => result.recorded).filter((item) => item.isRecorded)
    expect(written).toHaveLength(20)
    expect(await readTotals(t.db)).toEqual(new Map([['retrying', 20]]))
  })

  test.each([
    ['delivers', DELIVERED],
    ['fails', FAILED],
    ['was interrupted', { errorClass: 'interrupted' } as const],
  ])(
    'voids a result that %s of a webhook that was purged meanwhile, and keeps nothing of it',
    async (_name, result) => {
      await using t = await openLedger()
      const webhook = await t.ledger.addWebhook()
      await t.ledger.addDispatches(webhook)
      const [claimed] = await t.claimAll()
      await t.db.deleteFrom('webhook').execute()
      const { recorded } = await t.record([t.end(claimed!, result)])
      expect(recorded.filter((result) => result.isRecorded)).toEqual([])
      expect(await t.ledger.listRouted()).toEqual([])
      expect(await t.ledger.readHeads()).toEqual(new Map())
      expect(await readTotals(t.db)).toEqual(new Map())
    },
  )

  test('voids the result of a row that was deleted meanwhile', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    await t.ledger.addDispatches(webhook)
    const [claimed] = await t.claimAll()
    await t.db.deleteFrom('webhook_dispatch_open').execute()
    expect((await t.record([t.end(claimed!, FAILED)])).recorded).toMatchObject([{ isRecorded: false }])
    expect(await listAttempts(t, claimed!.id).catch(() => [])).toEqual([])
  })

  test('cancels the retry of a webhook that was deleted meanwhile', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [id] = await t.ledger.addDispatches(webhook)
    const [claimed] = await t.claimAll()
    await t.db
      .updateTable('webhook')
      .set({ deleted_at: t.later(0) })
      .execute()
    await t.record([t.end(claimed!, FAILED)])
    expect(await t.ledger.readDispatch(id!)).toMatchObject({ status: 'cancelled', ended_at: t.later(0), attempts: 1 })
    expect(await t.ledger.readHeads()).toEqual(new Map())
  })

  test('changes nothing for no results', async () => {
    await using t = await openLedger()
    expect(await t.apply([])).toEqual({ settled: [], deferred: [] })
  })
})

describe('the statement of results', () => {
  const change = (
    row: { id: DispatchId; webhook: WebhookId },
    endedAt: Date,
    rest: Partial<DispatchChange> = {},
  ): DispatchChange => ({
    ...row,
    fence: 1,
    status: 'success',
    nextAttemptAt: null,
    statusCode: 200,
    errorClass: null,
    durationMs: 1,
    endedAt,
    attempt: 1,
    trigger: 'schedule',
    worker: 'worker-a',
    startedAt: endedAt,
    responseExcerpt: null,
    responseHeaders: null,
    timings: null,
    ...rest,
  })

  test('keeps when an event was delivered first, whatever a replay comes to', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [id] = await t.ledger.addDispatches(webhook, { attempts: 1, leaseUntil: t.later(1) })
    await t.apply([change({ id: id!, webhook }, t.later(0))])
    await scheduleReplays(t.db, [id!], { job: null, workerId: 'worker-a', now: t.later(1) })
    t.clock.advance(1)
    const [replayed] = await t.claimAll()
    expect(replayed).toMatchObject({ id, attempt: 2, trigger: 'replay' })
    const { fence } = replayed!
    const failed = { status: 'exhausted', statusCode: 500, errorClass: 'http_5xx' } as const
    await t.apply([change({ id: id!, webhook }, t.later(-1), { ...failed, fence, attempt: 2, trigger: 'replay' })])
    expect(await t.ledger.readDispatch(id!)).toMatchObject({
      status: 'exhausted',
      delivered_at: t.later(-1),
      ended_at: t.later(-1),
      attempt_trigger: 'replay',
    })
  })

  test('hands a test over to the schedule after its first attempt', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const test = { isTest: true, trigger: 'test', leaseUntil: t.later(1), attempts: 1 } as const
    const [retried, ended] = await t.ledger.addDispatches(webhook, { ...test, count: 2 })
    await t.apply([
      change({ id: retried!, webhook }, t.later(0), { status: 'retrying', nextAttemptAt: t.later(60_000) }),
      change({ id: ended!, webhook }, t.later(0)),
    ])
    const rest = { attempt_trigger: 'schedule', is_test: true }
    expect(await t.ledger.readDispatch(retried!)).toMatchObject({ ...rest, status: 'retrying', ended_at: null })
    expect(await t.ledger.readDispatch(ended!)).toMatchObject({ ...rest, status: 'success', ended_at: t.later(0) })
  })

  test('writes 500 results at once, each to its own row', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const ids = await t.ledger.addDispatches(webhook, { count: 500, leaseUntil: t.later(1) })
    const { settled } = await t.apply(
      ids.map((id, index) => change({ id, webhook }, t.later(index), { statusCode: 200 + (index % 100) })),
      false,
    )
    expect(settled).toHaveLength(500)
    expect(await t.ledger.readDispatch(ids[457]!)).toMatchObject({ last_status_code: 257, ended_at: t.later(457) })
  })

  test('defers what concerns a failure count, and changes nothing of it', async () => {
    await using t = await openLedger()
    const claimed = { attempts: 4, leaseUntil: t.later(1) }
    const webhooks = {
      sound: await t.ledger.addWebhook(),
      failing: await t.ledger.addWebhook({ consecutiveFailures: 1 }),
      deleted: await t.ledger.addWebhook({ isDeleted: true }),
    }
    const add = async (webhook: WebhookId, rest: Partial<DispatchChange> = {}) => {
      const [id] = await t.ledger.addDispatches(webhook, claimed)
      return change({ id: id!, webhook }, t.later(0), rest)
    }
    const retry = { status: 'retrying', nextAttemptAt: t.later(9), errorClass: 'http_5xx' } as const
    const now = [await add(webhooks.sound), await add(webhooks.sound, retry), await add(webhooks.failing, retry)]
    const deferred = [
      await add(webhooks.sound, { status: 'exhausted', errorClass: 'http_5xx' }),
      await add(webhooks.failing),
      await add(webhooks.deleted, retry),
    ]
    const done = await t.apply([...now, ...deferred], false)
    const idsOf = (list: readonly { id: string }[]) => list.map((item) => item.id).sort()
    expect(idsOf(done.settled)).toEqual(idsOf(now))
    expect(idsOf(done.deferred)).toEqual(idsOf(deferred))
    for (const { id } of deferred)
      expect(await t.ledger.readDispatch(id)).toMatchObject({ status: 'pending', lease_owner: 'worker-lost' })
  })

  test('queues a webhook at its earliest retry, and never later than it was', async () => {
    await using t = await openLedger()
    const [fresh, due] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    const heads = { count: 2, attempts: 1, leaseUntil: t.later(1) }
    const changes: DispatchChange[] = []
    for (const webhook of [fresh, due])
      for (const [index, id] of (await t.ledger.addDispatches(webhook, heads)).entries())
        changes.push(
          change({ id, webhook }, t.later(0), { status: 'retrying', nextAttemptAt: t.later(70_000 - index * 10_000) }),
        )
    await t.ledger.addDispatches(due, { dueAt: t.later(5) })
    await t.apply(changes, false)
    expect(await t.ledger.readHeads()).toEqual(
      new Map([
        [due, { visitAt: t.later(5), isHeld: false }],
        [fresh, { visitAt: t.later(60_000), isHeld: false }],
      ]),
    )
  })
})

describe('the failure count of a webhook', () => {
  test('disables at the 20th exhausted delivery, with time and reason, and tells the others', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ consecutiveFailures: 19 })
    const { notices } = await t.deliver(webhook, [FAILED])
    expect(notices).toEqual([{ webhook, event: 'webhook.auto-disable', consecutiveFailures: 20 }])
    expect(await t.ledger.readWebhook(webhook)).toMatchObject({
      is_actived: false,
      consecutive_failures: 20,
      disabled_at: t.later(0),
      disabled_reason: 'consecutive-failures',
    })
    expect(await listLastingIncidents(t.db, { incident: 'webhook-disabled' })).toMatchObject([{ subject: webhook }])
    const events = await t.listEvents()
    expect(events).toContainEqual({
      event: 'webhook.auto-disable',
      resource_id: webhook,
      excluded_webhook: webhook,
      routed_at: null,
    })
    expect(events.filter((event) => event.event === 'webhook-dispatch.exhausted')).toHaveLength(1)
  })

  test('counts a batch in the order in which the attempts ended, not in which they came', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ consecutiveFailures: 5 })
    await t.ledger.addDispatches(webhook, { count: 3, status: 'retrying', attempts: 4 })
    const [a, b, c] = await t.claimAll()
    await t.record([
      t.end(a!, FAILED, { endedAt: t.later(30) }),
      t.end(b!, DELIVERED, { endedAt: t.later(20) }),
      t.end(c!, FAILED, { endedAt: t.later(10) }),
    ])
    expect(await t.ledger.readWebhook(webhook)).toMatchObject({ consecutive_failures: 1 })
  })

  test('counts a failure and a later success of one batch as a success, of a webhook without failures too', async () => {
    await using t = await openLedger()
    const [recovered, failed] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    for (const webhook of [recovered, failed])
      await t.ledger.addDispatches(webhook, { count: 2, status: 'retrying', attempts: 4 })
    const claimed = await t.claimAll()
    const endsOf = (webhook: WebhookId, results: readonly AttemptResult[]) =>
      claimed
        .filter((claim) => claim.group === webhook)
        .map((claim, index) => t.end(claim, results[index]!, { endedAt: t.later(index) }))
    const ended = [...endsOf(recovered, [FAILED, DELIVERED]), ...endsOf(failed, [DELIVERED, FAILED])]
    const { recorded } = await t.record(ended)
    expect(recorded.map((result) => result.isRecorded)).toEqual([true, true, true, true])
    expect(await t.ledger.readWebhook(recovered)).toMatchObject({ consecutive_failures: 0 })
    expect(await t.ledger.readWebhook(failed)).toMatchObject({ consecutive_failures: 1 })
  })

  test('does not move for an attempt that is made again', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ consecutiveFailures: 19 })
    await t.deliver(webhook, [FAILED, { errorClass: 'timeout' }], 3)
    expect(await t.ledger.readWebhook(webhook)).toMatchObject({ is_actived: true, consecutive_failures: 19 })
  })

  test('does not move for a void result', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ consecutiveFailures: 19 })
    await t.ledger.addDispatches(webhook, { attempts: 4 })
    const [claimed] = await t.claimAll()
    await t.record([t.end({ ...claimed!, fence: 7 }, FAILED)])
    expect(await t.ledger.readWebhook(webhook)).toMatchObject({ is_actived: true, consecutive_failures: 19 })
    expect(await t.listEvents()).toEqual([])
  })

  test('keeps the reason of an earlier disable when a delivery that was in flight fails after it', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ consecutiveFailures: 19 })
    await t.ledger.addDispatches(webhook, { attempts: 4, status: 'retrying' })
    const [claimed] = await t.claimAll()
    const rest = { is_actived: false, disabled_reason: 'legacy-secret-rotation-required' }
    await t.db.updateTable('webhook').set(rest).execute()
    await t.record([t.end(claimed!, FAILED)])
    expect(await t.ledger.readWebhook(webhook)).toMatchObject({ ...rest, consecutive_failures: 20, disabled_at: null })
  })

  test('sends no further notice of a webhook that fails on a notice, so that two failing webhooks never feed each other', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ consecutiveFailures: 9 })
    await t.ledger.addDispatches(webhook, { attempts: 4, status: 'retrying' })
    const [claimed] = await t.claimAll()
    const { notices } = await t.record([t.end(claimed!, FAILED, { event: 'webhook.failing' })])
    expect(notices).toEqual([])
    expect(await t.listEvents()).toEqual([])
    expect(await t.ledger.readWebhook(webhook)).toMatchObject({ consecutive_failures: 10 })
  })

  test('loses no failure and disables once when several processes record at the same time', async () => {
    await using t = await openLedger()
    const webhooks = await Promise.all([t.ledger.addWebhook(), t.ledger.addWebhook(), t.ledger.addWebhook()])
    for (const webhook of webhooks)
      await t.ledger.addDispatches(webhook, { count: 24, status: 'retrying', attempts: 4 })
    const claimed = await t.claimAll()
    const batches = Array.from({ length: 6 }, (_, index) => claimed.filter((_one, at) => at % 6 === index))
    const done: SettledAttempts[] = []
    // Results held back by another process are recorded again, as the acknowledger does.
    const recordAll = async (ended: readonly EndedAttempt[]): Promise<void> => {
      const settled = await t.record(ended)
      done.push(settled)
      if (settled.heldBack.length > 0) await recordAll(settled.heldBack)
    }
    await Promise.all(batches.map((batch) => recordAll(batch.map((entry) => t.end(entry, FAILED)))))
    for (const webhook of webhooks) {
      expect(await t.ledger.readWebhook(webhook)).toMatchObject({ consecutive_failures: 24, is_actived: false })
      const told = done.flatMap((result) => result.notices).filter((item) => item.webhook === webhook)
      expect(told.map((item) => item.event).sort()).toEqual([
        'webhook.auto-disable',
        'webhook.failing',
        'webhook.failing',
      ])
    }
  })

  test('records nothing at all when one part of the record fails', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ consecutiveFailures: 19 })
    const [id] = await t.ledger.addDispatches(webhook, { attempts: 4, status: 'retrying' })
    const [claimed] = await t.claimAll()
    const before = await t.ledger.readDispatch(id!)
    await expect(t.record([t.end(claimed!, FAILED, { responseExcerpt: 'a\0b' })])).rejects.toThrow()
    expect(await t.ledger.readDispatch(id!)).toEqual(before)
    expect(await t.ledger.readWebhook(webhook)).toMatchObject({ consecutive_failures: 19, is_actived: true })
    expect(await readTotals(t.db)).toEqual(new Map())
    expect(await t.listEvents()).toEqual([])
  })
})
