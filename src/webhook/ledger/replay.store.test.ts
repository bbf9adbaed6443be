import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { DispatchId, WebhookId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { claimDispatches } from '../delivery/claim.store.ts'
import { type DispatchChange, deleteOrphans, settleChanges } from '../delivery/settle.store.ts'
import { findDispatchWithAttempts } from './dispatch.store.ts'
import { listReplayFacts, lockReplayable, scheduleReplays } from './replay.store.ts'

const clock = buildManualClock()
const later = (ms: number) => new Date(clock.now() + ms)
const WORKER = 'worker-a'

const database = await openForFile(createTestDatabase())
const { db } = database
const ledger = buildLedger(db, clock)

const claimAll = () =>
  claimDispatches(db, {
    ...{ workerId: WORKER, now: later(0), fastSlots: 100, slowSlots: 0, slowGroups: [], lateGroups: [] },
    ...{ inFlight: new Map(), perGroup: 100, hasPeers: true },
  })

/** Ends the claim of a row with a failed attempt, after which it waits again unless told otherwise. */
async function fail(id: DispatchId, webhook: WebhookId, more: Partial<DispatchChange> = {}) {
  const claim = (await claimAll()).find((candidate) => candidate.id === id)!
  const change = {
    ...{ id, fence: claim.fence, webhook, attempt: claim.attempt, trigger: claim.trigger, worker: WORKER },
    ...{ startedAt: later(0), endedAt: later(0), durationMs: 5, status: 'retrying', nextAttemptAt: later(60_000) },
    ...{
      statusCode: 500,
      errorClass: 'http_5xx',
      responseExcerpt: null,
      responseHeaders: null,
      timings: null,
      ...more,
    },
  } as DispatchChange
  await settleChanges(db, [change], { workerId: WORKER, withFailures: true })
  return claim
}

const replay = (id: DispatchId, job: string | null = null) =>
  scheduleReplays(db, [id], { job, workerId: WORKER, now: later(0) })

describe('a replay', () => {
  test('of a waiting row ends with its attempt: the row follows its schedule again', async () => {
    const webhook = await ledger.addWebhook()
    const [id] = (await ledger.addDispatches(webhook, {
      ...{ status: 'retrying', attempts: 2, dueAt: later(90_000) },
    })) as [DispatchId]
    const job = randomUUID()
    await replay(id, job)
    expect(await ledger.readDispatch(id)).toMatchObject({ attempt_trigger: 'replay', replay_job: job })
    expect(await fail(id, webhook)).toMatchObject({ attempt: 3, trigger: 'replay' })
    expect(await ledger.readDispatch(id)).toMatchObject({
      ...{ status: 'retrying', attempt_trigger: 'schedule', replay_job: null, next_attempt_at: later(60_000) },
    })
  })

  test('of an ended row stays one, also when it fails and waits', async () => {
    const webhook = await ledger.addWebhook()
    const [id] = (await ledger.addDispatches(webhook, { status: 'exhausted', attempts: 9 })) as [DispatchId]
    const job = randomUUID()
    await replay(id, job)
    expect(await fail(id, webhook)).toMatchObject({ attempt: 10, trigger: 'replay' })
    expect(await ledger.readDispatch(id)).toMatchObject({ attempt_trigger: 'replay', replay_job: job })
  })

  test('of a waiting row that delivers remains a replay', async () => {
    const webhook = await ledger.addWebhook()
    const [id] = (await ledger.addDispatches(webhook, { status: 'retrying', attempts: 2 })) as [DispatchId]
    const job = randomUUID()
    await replay(id, job)
    await fail(id, webhook, { status: 'success', nextAttemptAt: null, statusCode: 200, errorClass: null })
    expect(await ledger.readDispatch(id)).toMatchObject({
      status: 'success',
      attempt_trigger: 'replay',
      replay_job: job,
    })
  })
})

test('a replay of rows that are pulled renews their expiry, and makes no claim visit their webhook; others are visited', async () => {
  const [pulled, pushed] = [await ledger.addWebhook({ mode: 'pull' }), await ledger.addWebhook()]
  const rows: Record<'pulled' | 'pushed', DispatchId[]> = { pulled: [], pushed: [] }
  for (const [name, webhook] of Object.entries({ pulled, pushed }) as ['pulled' | 'pushed', WebhookId][]) {
    const waiting = { status: 'retrying', attempts: 1, dueAt: later(90_000) } as const
    rows[name].push(...(await ledger.addDispatches(webhook, waiting)))
    rows[name].push(...(await ledger.addDispatches(webhook, { status: 'exhausted', attempts: 9 })))
  }
  await db
    .updateTable('webhook_dispatch_open')
    .set({ kept_until: later(1_000) })
    .where('webhook', '=', pulled)
    .execute()
  await db.deleteFrom('webhook_queue').where('webhook', 'in', [pulled, pushed]).execute()
  clock.advance(500)
  for (const id of [...rows.pulled, ...rows.pushed]) {
    await replay(id)
    const isPulled = rows.pulled.includes(id)
    expect((await ledger.readHeads()).has(isPulled ? pulled : pushed)).toBe(!isPulled)
    await db.deleteFrom('webhook_queue').where('webhook', 'in', [pulled, pushed]).execute()
    const { kept_until: until } = await db
      .selectFrom('webhook_dispatch_open')
      .select('kept_until')
      .where('document_id', '=', id)
      .executeTakeFirstOrThrow()
    expect(until).toEqual(isPulled ? later(7 * 86_400_000) : null)
  }
})

test('a replay changes the rows asked for alone, and none that is posted now', async () => {
  const webhook = await ledger.addWebhook()
  const [ended, otherEnded] = (await ledger.addDispatches(webhook, { count: 2, status: 'failed', attempts: 1 })) as [
    DispatchId,
    DispatchId,
  ]
  const [waiting, otherWaiting] = await ledger.addDispatches(webhook, { count: 2, dueAt: later(90_000) })
  const [posted] = await ledger.addDispatches(webhook, { leaseUntil: later(9), attempts: 1 })
  await database.pool.query(
    `update webhook_dispatch_ended set fence = 5, worker = 'worker-b', last_attempt_at = ended_at, last_duration_ms = 5 where document_id = $1`,
    [ended],
  )
  await db.updateTable('webhook_queue').set({ is_held: true }).where('webhook', '=', webhook).execute()
  const read = async (...ids: (DispatchId | undefined)[]) => Promise.all(ids.map((id) => ledger.readDispatch(id!)))
  const before = await read(otherEnded, otherWaiting, posted)
  clock.advance(500)
  await scheduleReplays(db, [ended, waiting!, posted!], { job: null, workerId: WORKER, now: later(0) })
  expect(await read(otherEnded, otherWaiting, posted)).toEqual(before)
  expect(await read(ended, waiting)).toMatchObject([
    { status: 'retrying', next_attempt_at: later(0), delivered_at: null, fence: 6 },
    { status: 'retrying', next_attempt_at: later(0), delivered_at: null, fence: 0 },
  ])
  expect((await ledger.readHeads()).get(webhook)).toEqual({ visitAt: later(0), isHeld: false })
  const attempts = db.selectFrom('webhook_attempt').select(['dispatch', 'worker', 'timings'])
  const log = await attempts.where('dispatch', 'in', [ended, waiting!, posted!]).execute()
  expect(log).toEqual([{ dispatch: ended, worker: 'worker-b', timings: null }])
})

test('a replay leaves a row alone that is claimed while it waits for it', async () => {
  const [id] = (await ledger.addDispatches(await ledger.addWebhook())) as [DispatchId]
  const claimed = { next_attempt_at: null, lease_owner: 'worker-b', fence: 1 }
  await whileHeld(
    db,
    (tx) => tx.updateTable('webhook_dispatch_open').set(claimed).where('document_id', '=', id).execute(),
    () => replay(id),
  )
  expect(await ledger.readDispatch(id)).toMatchObject({ ...claimed, status: 'pending', attempt_trigger: 'schedule' })
})

describe('the facts for a replay', () => {
  const factsOf = async (id: DispatchId) => {
    const facts = (await listReplayFacts(db, [id])).get(id)!
    const locked = await inTransaction(db, async (tx) => (await listReplayFacts(tx, [id], { lock: true })).get(id))
    expect(locked).toEqual(facts)
    const replayable = await inTransaction(db, (tx) => lockReplayable(tx, id))
    expect({ ...replayable!.facts, webhook: facts.webhook }).toEqual(facts)
    expect(replayable!.dispatch.id).toBe(id)
    return facts
  }

  test('tell a row that waits from one that is posted now, and from one whose replay waits', async () => {
    await ledger.addWebhook({ isActived: false })
    const webhook = await ledger.addWebhook()
    const [id] = (await ledger.addDispatches(webhook, { status: 'retrying', attempts: 1 })) as [DispatchId]
    const facts = { webhook, status: 'retrying', isWebhookActive: true, hasEvent: true }
    expect(await factsOf(id)).toEqual({ ...facts, isInFlight: false, isReplayWaiting: false })
    await claimAll()
    expect(await factsOf(id)).toEqual({ ...facts, isInFlight: true, isReplayWaiting: false })
    const [other] = (await ledger.addDispatches(webhook, { status: 'retrying', dueAt: later(9) })) as [DispatchId]
    await replay(other)
    expect(await factsOf(other)).toEqual({ ...facts, isInFlight: false, isReplayWaiting: true })
    const [posted] = (await ledger.addDispatches(webhook, { leaseUntil: later(9) })) as [DispatchId]
    expect(await factsOf(posted)).toEqual({ ...facts, status: 'pending', isInFlight: true, isReplayWaiting: false })
    const [ended] = (await ledger.addDispatches(webhook, { status: 'failed', trigger: 'replay' })) as [DispatchId]
    expect(await factsOf(ended)).toEqual({ ...facts, status: 'failed', isInFlight: false, isReplayWaiting: false })
  })

  test.each([
    ['an inactive webhook', { isActived: false }],
    ['a deleted webhook', { isDeleted: true }],
  ])('tell of %s, and of an event that is gone', async (_name, row) => {
    const webhook = await ledger.addWebhook(row)
    const [id] = (await ledger.addDispatches(webhook, { count: 2, status: 'failed' })) as [DispatchId]
    expect(await factsOf(id)).toMatchObject({ isWebhookActive: false, hasEvent: true })
    const { event_id: event } = await ledger.readDispatch(id)
    await database.pool.query('delete from event_occurrence where document_id = $1', [event])
    expect(await factsOf(id)).toMatchObject({ isWebhookActive: false, hasEvent: false })
  })

  test('are of the asked rows alone, and leave out those that another transaction holds', async () => {
    const webhook = await ledger.addWebhook()
    const [first, second] = (await ledger.addDispatches(webhook, { count: 3, status: 'failed' })) as [
      DispatchId,
      DispatchId,
    ]
    expect([...(await listReplayFacts(db, [first, second])).keys()].toSorted()).toEqual([first, second].toSorted())
    const free = await inTransaction(db, async (tx) => {
      await lockReplayable(tx, first)
      expect((await listReplayFacts(db, [first, second])).size).toBe(2)
      return inTransaction(db, async (other) => [
        ...(await listReplayFacts(other, [first, second], { lock: true })).keys(),
      ])
    })
    expect(free).toEqual([second])
    expect(await lockReplayable(db, randomUUID())).toBeUndefined()
  })

  test('to be locked are of accounts that are here alone', async () => {
    const account = await ledger.addAccount()
    const [id] = (await ledger.addDispatches(await ledger.addWebhook({ account }), { status: 'failed' })) as [
      DispatchId,
    ]
    const isLocked = async () => (await listReplayFacts(db, [id], { lock: true })).has(id)
    expect(await isLocked()).toBe(true)
    await database.pool.query(`insert into account_fence (account, version, state) values ($1, 1, 'gone')`, [account])
    expect(await isLocked()).toBe(false)
  })
})

test('the log of a row has its own attempts, the first one first', async () => {
  const webhook = await ledger.addWebhook()
  const [id, other] = (await ledger.addDispatches(webhook, { count: 2 })) as [DispatchId, DispatchId]
  const end = { status: 'failed', nextAttemptAt: null } as const
  const claims = await claimAll()
  for (const claim of claims.filter((candidate) => candidate.id === id || candidate.id === other)) {
    const change = {
      ...{ id: claim.id, fence: claim.fence, webhook, attempt: 1, trigger: 'schedule', worker: WORKER, durationMs: 5 },
      ...{ startedAt: later(0), endedAt: later(0), statusCode: 500, errorClass: 'http_5xx', responseExcerpt: null },
      ...{ responseHeaders: null, timings: null, status: 'retrying', nextAttemptAt: later(0) },
    } as DispatchChange
    await settleChanges(db, [change], { workerId: WORKER, withFailures: true })
  }
  await fail(id, webhook, end)
  const found = await findDispatchWithAttempts(db, id)
  expect(found?.attempts.map(({ attempt }) => attempt)).toEqual([1, 2])
  expect((await findDispatchWithAttempts(db, other))?.attempts.map(({ attempt }) => attempt)).toEqual([1])
  await replay(id)
  expect((await findDispatchWithAttempts(db, id))?.attempts.map(({ attempt }) => attempt)).toEqual([1, 2])
})

test('a row of a purged webhook is deleted with its attempts, and no other row', async () => {
  const [purged, kept] = [await ledger.addWebhook(), await ledger.addWebhook()]
  const rows = [...(await ledger.addDispatches(purged, { count: 2 })), ...(await ledger.addDispatches(kept))]
  const [first, second, third] = rows as [DispatchId, DispatchId, DispatchId]
  for (const id of rows)
    await database.pool.query(
      `insert into webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms)
       values ($1, 1, 'schedule', 'worker-a', now(), 1)`,
      [id],
    )
  await database.pool.query('delete from webhook_queue where webhook = $1', [purged])
  await database.pool.query('delete from webhook where document_id = $1', [purged])
  await deleteOrphans(db, [first, third])
  const count = async (table: string, column: string) => {
    const { rows } = await database.pool.query(`select ${column} as id from ${table} where ${column} = any($1)`, [
      [first, second, third],
    ])
    return rows.map(({ id }) => id).toSorted()
  }
  expect(await count('webhook_dispatch_open', 'document_id')).toEqual([second, third].toSorted())
  expect(await count('webhook_attempt', 'dispatch')).toEqual([second, third].toSorted())
})
