import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger, type Ledger } from '../../../test/harness/delivery/ledger.ts'
import { openWatched, type WatchedDatabase } from '../../../test/harness/plan/explain.ts'
import { expectFewReads, keepUnanalysed } from '../../../test/harness/plan/plan-reads.ts'
import { expectSamePlans } from '../../../test/harness/plan/plan-states.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { DispatchId, WebhookId } from '../../base/id.ts'
import { type Database, INDEX_ONLY_PLANS } from '../../postgres/statement/database.ts'
import { claimDispatches, findNextDueAt } from '../delivery/claim.store.ts'
import { cancelUnpulled } from '../ledger/removal.store.ts'
import { leaseDue, listLapsed, listReady, listReceiptRows } from './pull.store.ts'

const BACKLOG = 10_000
const LEASED = 2_000

const TABLES = ['webhook_dispatch_open', 'webhook_dispatch_ended', 'webhook_queue', 'event_occurrence', 'webhook']

/** What a pull, a look and an end of leases read follows from their answer, not from what waits; a dispatcher reads nothing. */
describe(`plans made on small tables, on a backlog of ${BACKLOG} rows that nobody pulls`, () => {
  const clock = buildManualClock()
  const now = new Date(clock.now())
  const later = (ms: number) => new Date(clock.now() + ms)
  let database: TestDatabase
  let watched: WatchedDatabase
  let ledger: Ledger
  let webhook: WebhookId

  beforeAll(async () => {
    database = await createTestDatabase({ isOwn: true })
    ledger = buildLedger(database.db, clock)
    watched = openWatched(database, INDEX_ONLY_PLANS)
    await keepUnanalysed(database.db, TABLES)
    const fillAll = async (rows: number, leased = rows) => {
      webhook = await ledger.addWebhook()
      await sql`update webhook set mode = 'pull', url = '' where document_id = ${webhook}`.execute(database.db)
      await fill(database.db, { webhook, waiting: rows, leased, now })
    }
    await expectSamePlans({ db: database.db, watched }, { tables: TABLES, fill: fillAll, prepare: prepareAll })
    await fillAll(BACKLOG, LEASED)
  })
  afterAll(async () => {
    await watched[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })

  const lease = (db: Database, max: number) => leaseDue(db, { webhook, now, leasedUntil: later(60_000), max })
  const cancel = (db: Database) => cancelUnpulled(db, { workerId: 'worker-a', now, limit: 1_000 })
  const claim = (db: Database) =>
    claimDispatches(db, {
      ...{ workerId: 'worker-a', now, fastSlots: 100, slowSlots: 25, slowGroups: [], lateGroups: [] },
      ...{ inFlight: new Map(), perGroup: 20, hasPeers: true },
    })

  /** Executes each statement often enough for its plan to be kept. */
  async function prepareAll(): Promise<void> {
    const id = ledger.ids.next<'dispatch'>() as DispatchId
    const unknown = ledger.ids.next<'webhook'>() as WebhookId
    for (let round = 0; round < 2; round += 1) {
      await leaseDue(watched.db, { webhook: unknown, now, leasedUntil: now, max: 10 })
      await listReady(watched.db, { webhooks: [unknown], now })
      await listLapsed(watched.db, { now: new Date(0), limit: 10 })
      await listReceiptRows(watched.db, { webhook: unknown, ids: [id] })
      await cancelUnpulled(watched.db, { workerId: 'worker-a', now: new Date(0), limit: 1_000 })
    }
  }

  const expectReads = <Result>(most: number, work: (db: Database) => Promise<Result>) =>
    expectFewReads(watched, { most }, work)

  test('leases with reads of the leased rows', async () => {
    expect(await expectReads(100 * 6, (db) => lease(db, 100))).toHaveLength(100)
  })

  test('looks for a due row with one read of the backlog, and of what is leased none', async () => {
    expect(await expectReads(4, (db) => listReady(db, { webhooks: [webhook], now }))).toEqual([webhook])
  })

  test('finds leases that ran out with reads of those', async () => {
    expect(await expectReads(50, (db) => listLapsed(db, { now: later(60_000), limit: 50 }))).toHaveLength(50)
    expect(await expectReads(1, (db) => listLapsed(db, { now: later(-1), limit: 50 }))).toEqual([])
  })

  test('finds acknowledged rows by their ids', async () => {
    const ids = (await listLapsed(database.db, { now: later(60_000), limit: 100 })).map((row) => row.id)
    expect(await expectReads(100 * 3, (db) => listReceiptRows(db, { webhook, ids }))).toHaveLength(100)
  })

  test('looks for rows to end without reading those that wait', async () => {
    expect(await expectReads(1, cancel)).toBe(0)
  })

  test('a dispatcher reads none of them', async () => {
    expect(await expectReads(2, findNextDueAt)).toBeNull()
    expect(await expectReads(4, claim)).toEqual([])
  })
})

async function fill(
  db: Database,
  input: { webhook: WebhookId; waiting: number; leased: number; now: Date },
): Promise<void> {
  const { webhook, waiting, leased, now } = input
  await sql`
    with written as (
      insert into event_occurrence (document_id, event, resource, action, routed_at, created_at)
      select gen_random_uuid(), 'contract.create', 'contract', 'create', ${now}::timestamptz, ${now}
      from generate_series(1, ${waiting + leased}::int) n returning document_id
    ), numbered as (select document_id, row_number() over () as n from written)
    insert into webhook_dispatch_open (document_id, webhook, event_id, event, status, attempts, next_attempt_at,
      last_attempt_at, leased_until, kept_until, is_test, fence, created_at, updated_at)
    select gen_random_uuid(), ${webhook}::uuid, document_id, 'contract.create', 'pending', (n <= ${leased}::int)::int,
      case when n > ${leased}::int then ${now}::timestamptz end, case when n <= ${leased}::int then ${now}::timestamptz end,
      case when n <= ${leased}::int then ${now}::timestamptz + interval '60 s' end,
      ${now}::timestamptz + interval '7 days', n % 10 = 0, (n <= ${leased}::int)::int, ${now}, ${now}
    from numbered`.execute(db)
}
