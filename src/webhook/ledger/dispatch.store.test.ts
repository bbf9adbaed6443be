import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { buildCommitGate } from '../../../test/harness/database/commit-gate.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { listMiscounts } from '../../../test/harness/delivery/delivery-counts.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId, DispatchId, WebhookId } from '../../base/id.ts'
import { findEvent } from '../../event/occurrence/event.store.ts'
import { deleteOldEvents } from '../../event/recording/event-removal.store.ts'
import type { ListFilter } from '../../http/listing/filter.ts'
import { parseListing } from '../../http/listing/listing.ts'
import { findListed } from '../../http/listing/page.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { cameInto, countChanges, findShard, readTotals } from '../delivery/delivery-count.store.ts'
import type { DispatchStatus } from '../delivery/outcome.ts'
import { DISPATCH_FIELDS } from './dispatch.routes.ts'
import { insertDispatch, listDispatches, type StoredDispatch, toDispatchRecord } from './dispatch.store.ts'
import { deleteLedger } from './dispatch.ts'
import { cancelOrphanedDispatches, cancelWaitingDispatches, deleteOldDispatches } from './removal.store.ts'
import { scheduleReplays } from './replay.store.ts'

const DAY_MS = 86_400_000

async function openLedger() {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  const later = (ms: number) => new Date(clock.now() + ms)
  const countByStatus = async () => {
    const rows = await sql<{
      status: string
      n: number
    }>`select status, count(*)::int as n from webhook_dispatch group by status`.execute(database.db)
    return Object.fromEntries(rows.rows.map((row) => [row.status, row.n]))
  }
  return {
    database,
    db: database.db,
    ledger,
    later,
    countByStatus,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** Counts rows of `status` as the statements that write them do. */
async function addToTotals(db: Database, workerId: string, status: DispatchStatus, count: number): Promise<void> {
  await sql`with source as (select now() as created_at from generate_series(1, ${count}::int))
    ${sql.raw(countChanges([cameInto('source', `'${status}'`)], String(findShard(workerId))))}`.execute(db)
}

describe('a purged webhook', () => {
  test('loses its whole ledger, however long, and no other does', async () => {
    await using t = await openLedger()
    const [purged, other] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    await t.ledger.addDispatches(purged, { count: 20_001, status: 'success' })
    await t.ledger.addDispatches(purged, { count: 3 })
    await t.ledger.addDispatches(other, { count: 2 })
    await inTransaction(t.db, (tx) => deleteLedger(tx, purged))
    expect(await t.countByStatus()).toEqual({ pending: 2 })
    expect(await listMiscounts(t.db)).toEqual([])
  })

  test('loses a row too that ends while the purge waits for it', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    await t.ledger.addDispatches(webhook, { count: 2 })
    await using gate = await buildCommitGate(t.database, ['webhook_dispatch_ended'])
    const ending = { webhook, workerId: 'worker-a', now: t.later(0) }
    await gate.interleave(
      (gated) => cancelWaitingDispatches(gated, ending),
      (free) => inTransaction(free, (tx) => deleteLedger(tx, webhook)),
    )
    expect(await t.countByStatus()).toEqual({})
  })

  test('loses a row too that is replayed while the purge waits for it', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const ids = await t.ledger.addDispatches(webhook, { count: 2, status: 'exhausted' })
    await using gate = await buildCommitGate(t.database, ['webhook_dispatch_open'])
    const replay = { job: null, workerId: 'worker-a', now: t.later(0) }
    await gate.interleave(
      (gated) => scheduleReplays(gated, ids, replay),
      (free) => inTransaction(free, (tx) => deleteLedger(tx, webhook)),
    )
    expect(await t.countByStatus()).toEqual({})
  })
})

describe('cancelling', () => {
  test('ends what waits for one webhook and leaves what ended, what is being posted and what is of others', async () => {
    await using t = await openLedger()
    const [deleted, other] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    const [waiting] = await t.ledger.addDispatches(deleted, { status: 'retrying', attempts: 2, dueAt: t.later(DAY_MS) })
    await t.ledger.addDispatches(deleted, { count: 2 })
    await t.ledger.addDispatches(deleted, { leaseUntil: t.later(1) })
    for (const status of ['success', 'exhausted', 'failed'] as const) await t.ledger.addDispatches(deleted, { status })
    await t.ledger.addDispatches(other)
    const input = { webhook: deleted, workerId: 'worker-a', now: t.later(0) }
    await cancelWaitingDispatches(t.db, input)
    expect(await t.countByStatus()).toEqual({ cancelled: 3, pending: 2, success: 1, exhausted: 1, failed: 1 })
    expect(await t.ledger.readDispatch(waiting!)).toMatchObject({
      attempts: 2,
      next_attempt_at: null,
      ended_at: t.later(0),
    })
    expect(await readTotals(t.db)).toEqual(new Map([['cancelled', 3]]))
  })

  test('leaves the rest of a very long backlog to the sweeps, which end it batch by batch', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ isDeleted: true })
    await t.ledger.addDispatches(webhook, { count: 10_500 })
    await cancelWaitingDispatches(t.db, { webhook, workerId: 'worker-a', now: t.later(0) })
    expect(await t.countByStatus()).toEqual({ cancelled: 10_000, pending: 500 })
    const sweep = () => cancelOrphanedDispatches(t.db, { workerId: 'worker-a', now: t.later(0), limit: 400 })
    expect([await sweep(), await sweep(), await sweep()]).toEqual([400, 100, 0])
    expect(await t.countByStatus()).toEqual({ cancelled: 10_500 })
    expect(await readTotals(t.db)).toEqual(new Map([['cancelled', 10_500]]))
  })

  test('finds the orphans of deleted webhooks only, and not what is being posted', async () => {
    await using t = await openLedger()
    const [deleted, inactive] = [
      await t.ledger.addWebhook({ isDeleted: true }),
      await t.ledger.addWebhook({ isActived: false }),
    ]
    await t.ledger.addDispatches(deleted, { count: 2 })
    await t.ledger.addDispatches(deleted, { leaseUntil: t.later(1) })
    await t.ledger.addDispatches(inactive)
    expect(await cancelOrphanedDispatches(t.db, { workerId: 'worker-a', now: t.later(0), limit: 10 })).toBe(2)
    expect(await t.countByStatus()).toEqual({ cancelled: 2, pending: 2 })
  })
})

describe('totals', () => {
  test('adds up what many processes count at the same time', async () => {
    await using t = await openLedger()
    const statuses: DispatchStatus[] = ['success', 'retrying', 'exhausted']
    await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        inTransaction(t.db, async (tx) => {
          // In the order of the names, as each statement that counts several does.
          const counts = { [statuses[index % 3]!]: 2, pending: 1, [statuses[(index + 1) % 3]!]: 1 }
          for (const status of Object.keys(counts).sort() as DispatchStatus[])
            await addToTotals(tx, `worker-${index % 9}`, status, counts[status]!)
        }),
      ),
    )
    expect(await readTotals(t.db)).toEqual(
      new Map([
        ['pending', 60],
        ['success', 60],
        ['retrying', 60],
        ['exhausted', 60],
      ]),
    )
  })

  test('counts nothing of a transaction that was rolled back', async () => {
    await using t = await openLedger()
    const failing = inTransaction(t.db, async (tx) => {
      await addToTotals(tx, 'worker-a', 'success', 5)
      throw new Error('rolled back')
    })
    await expect(failing).rejects.toThrow('rolled back')
    expect(await readTotals(t.db)).toEqual(new Map())
  })

  test('never falls: not when the ledger is pruned, not when a webhook is purged', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    await t.ledger.addDispatches(webhook, { count: 5, status: 'success', createdAt: t.later(-40 * DAY_MS) })
    await addToTotals(t.db, 'worker-a', 'success', 5)
    await deleteOldDispatches(t.db, t.later(-30 * DAY_MS), 100)
    await t.db.deleteFrom('webhook').execute()
    expect(await t.countByStatus()).toEqual({})
    expect(await readTotals(t.db)).toEqual(new Map([['success', 5]]))
  })

  test('counts a row as pending when it is written, with the head that lets it be visited', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const dispatch = () => ({
      id: t.ledger.ids.next<'dispatch'>(),
      webhook,
      eventId: t.ledger.ids.next<'event'>(),
      event: 'contract.create',
      account: null,
      isTest: false,
      trigger: 'schedule' as const,
    })
    await inTransaction(t.db, async (tx) => {
      await insertDispatch(tx, dispatch(), { workerId: 'worker-a', now: t.later(0) })
      await insertDispatch(tx, dispatch(), { workerId: 'worker-b', now: t.later(5) })
    })
    expect(await readTotals(t.db)).toEqual(new Map([['pending', 2]]))
    expect(await t.countByStatus()).toEqual({ pending: 2 })
    expect(await t.ledger.readHeads()).toEqual(new Map([[webhook, { visitAt: t.later(0), isHeld: false }]]))
    // A webhook that rests is visited too: the row may be the test of an inactive one.
    await sql`update webhook_queue set is_held = true`.execute(t.db)
    await inTransaction(t.db, (tx) => insertDispatch(tx, dispatch(), { workerId: 'worker-a', now: t.later(5) }))
    expect(await t.ledger.readHeads()).toEqual(new Map([[webhook, { visitAt: t.later(0), isHeld: false }]]))
  })
})

describe('retention', () => {
  test('deletes ended rows past their time in batches, with their attempts, and keeps what waits however old it is', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const old = t.later(-30 * DAY_MS - 1)
    const [gone] = await t.ledger.addDispatches(webhook, { count: 5, status: 'success', createdAt: old })
    for (const status of ['exhausted', 'failed', 'cancelled'] as const)
      await t.ledger.addDispatches(webhook, { status, createdAt: old })
    await t.ledger.addDispatches(webhook, { status: 'pending', createdAt: old })
    await t.ledger.addDispatches(webhook, { status: 'retrying', createdAt: old })
    const [edge] = await t.ledger.addDispatches(webhook, { status: 'success', createdAt: t.later(-30 * DAY_MS) })
    const attempt = {
      dispatch: gone!,
      attempt: 1,
      attempt_trigger: 'schedule',
      worker: 'w',
      started_at: old,
      duration_ms: 1,
    }
    await t.db.insertInto('webhook_attempt').values(attempt).execute()
    const before = t.later(-30 * DAY_MS)
    const deleted = [await deleteOldDispatches(t.db, before, 6), await deleteOldDispatches(t.db, before, 6)]
    expect(deleted.map(({ dispatches }) => dispatches)).toEqual([6, 2])
    expect(deleted.reduce((sum, { attempts }) => sum + attempts, 0)).toBe(1)
    expect(await t.countByStatus()).toEqual({ pending: 1, retrying: 1, success: 1 })
    expect(await t.ledger.readDispatch(edge!)).toMatchObject({ status: 'success' })
    expect(await t.db.selectFrom('webhook_attempt').selectAll().execute()).toEqual([])
  })

  test('does not wait for a row that another transaction holds', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [held] = await t.ledger.addDispatches(webhook, {
      count: 3,
      status: 'success',
      createdAt: t.later(-40 * DAY_MS),
    })
    await inTransaction(t.db, async (other) => {
      await sql`select from webhook_dispatch_ended where document_id = ${held} for update`.execute(other)
      expect(await deleteOldDispatches(t.db, t.later(-30 * DAY_MS), 100)).toEqual({ dispatches: 2, attempts: 0 })
    })
  })

  test('keeps an event as long as a row refers to it, or it was not routed yet', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const old = t.later(-40 * DAY_MS)
    const [kept] = await t.ledger.addDispatches(webhook, { createdAt: old })
    const { event_id: keptEvent } = await t.ledger.readDispatch(kept!)
    const [ended] = await t.ledger.addDispatches(webhook, { createdAt: old, status: 'success' })
    const { event_id: endedEvent } = await t.ledger.readDispatch(ended!)
    const [unrouted] = await t.ledger.recordMany('contract.create')
    await t.db.updateTable('event_occurrence').set({ created_at: old }).execute()
    const end = { before: t.later(-30 * DAY_MS), auditBefore: t.later(-365 * DAY_MS), limit: 100 }
    expect(await deleteOldEvents(t.db, end)).toBe(0)
    await deleteOldDispatches(t.db, t.later(-30 * DAY_MS), 100)
    expect(await deleteOldEvents(t.db, end)).toBe(1)
    expect(await findEvent(t.db, { id: endedEvent })).toBeUndefined()
    expect(await findEvent(t.db, { id: keptEvent })).toBeDefined()
    expect(await findEvent(t.db, { id: unrouted!.id })).toMatchObject({ routedAt: null })
  })
})

test('a row that was delivered once keeps that time, and the end of a success is its delivery', () => {
  const [earlier, updatedAt] = [new Date(1_000), new Date(2_000)]
  const timeOf = (row: Partial<StoredDispatch>) =>
    toDispatchRecord({ deliveredAt: null, updatedAt, trigger: null, ...row } as StoredDispatch)
  expect(timeOf({ status: 'failed', deliveredAt: earlier })).toMatchObject({
    deliveredAt: earlier,
    trigger: 'schedule',
  })
  expect(timeOf({ status: 'success', deliveredAt: earlier, trigger: 'replay' })).toMatchObject({
    ...{ deliveredAt: earlier, trigger: 'replay' },
  })
  expect(timeOf({ status: 'success' })).toMatchObject({ deliveredAt: updatedAt })
  expect(timeOf({ status: 'failed' })).toMatchObject({ deliveredAt: null })
})

test('a list by status reads no ended rows that it cannot hold', async () => {
  await using t = await openLedger()
  const cases: [operator: ListFilter['operator'], values: DispatchStatus[], parts: number][] = [
    ['in', ['exhausted', 'failed'], 2],
    ['eq', ['cancelled'], 1],
    ['in', ['success'], 1],
    ['in', ['pending'], 1],
    ['in', ['failed', 'retrying'], 2],
    ['in', ['success', 'pending'], 2],
    ['nin', ['success'], 4],
    ['nin', ['success', 'pending', 'retrying'], 3],
    ['ne', ['failed'], 2],
    ['like', ['success'], 2],
  ]
  for (const [operator, values, parts] of cases) {
    const filters = [{ field: 'status', operator, values } as ListFilter]
    const read = listDispatches(t.db, filters, 'all').parts(undefined)
    expect([operator, values, read.length]).toEqual([operator, values, parts])
  }
})

test('a list of own accounts has each row of one of their webhooks and their events once, and no other', async () => {
  await using t = await openLedger()
  const [mine, second, other] = [await t.ledger.addAccount(), await t.ledger.addAccount(), await t.ledger.addAccount()]
  const account = (ids: readonly DispatchId[], of: AccountId) =>
    sql`with open as (update webhook_dispatch_open set account = ${of} where document_id = any(${ids}::uuid[]))
      update webhook_dispatch_ended set account = ${of} where document_id = any(${ids}::uuid[])`.execute(t.db)
  const add = async (webhook: WebhookId, of: AccountId) => {
    const waiting = await t.ledger.addDispatches(webhook)
    const ended = await t.ledger.addDispatches(webhook, { status: 'exhausted', attempts: 5 })
    await account([...waiting, ...ended], of)
    return [...waiting, ...ended]
  }
  const hook = await t.ledger.addWebhook({ account: mine })
  const rows = await add(hook, mine)
  // Of the time before the webhook moved to this account.
  await add(hook, other)
  await add(await t.ledger.addWebhook({ account: other }), other)
  const global = await add(await t.ledger.addWebhook(), mine)
  const list = async (scope: readonly AccountId[] | 'all') => {
    const listing = { ...parseListing({}, DISPATCH_FIELDS), pageSize: 100 }
    const found = await findListed(t.db, {
      ...listDispatches(t.db, [], scope),
      scope,
      listing,
      fields: DISPATCH_FIELDS,
    })
    return found.map(({ id }) => id).sort()
  }
  expect(await list([mine])).toEqual(rows.toSorted())
  expect(await list([mine, second])).toEqual(rows.toSorted())
  expect(await list([second])).toEqual([])
  expect(await list('all')).toEqual(expect.arrayContaining([...rows, ...global]))
})
