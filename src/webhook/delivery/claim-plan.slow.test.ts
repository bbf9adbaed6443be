import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger, type Ledger } from '../../../test/harness/delivery/ledger.ts'
import { openWatched, type WatchedDatabase } from '../../../test/harness/plan/explain.ts'
import { expectFewReads, keepUnanalysed } from '../../../test/harness/plan/plan-reads.ts'
import { expectSamePlans } from '../../../test/harness/plan/plan-states.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId, DispatchId, WebhookId } from '../../base/id.ts'
import type { Claim, ClaimRequest } from '../../delivery/policy.ts'
import { routeBatch, routeFanOut, routeInline } from '../../delivery/routing/routing.store.ts'
import { renewLease } from '../../delivery/worker.store.ts'
import { type Database, INDEX_ONLY_PLANS } from '../../postgres/statement/database.ts'
import { fragment } from '../../postgres/statement/fragment.ts'
import { cancelOrphanedDispatches } from '../ledger/removal.store.ts'
import { claimDispatches, findLostClaims, findNextDueAt, releaseClaims } from './claim.store.ts'
import type { ClaimedDispatch } from './claimed-work.ts'
import type { EndedAttempt } from './outcome.ts'
import { LAST_DELIVERIES } from './recorded-end.store.ts'
import { buildWebhookFanOut, buildWebhookRouting } from './routing.store.ts'
import { settleAttempts } from './settle.ts'

const OPEN = 5_000
const ENDED = 10_000
/** Webhooks with waiting rows: each has `OPEN` / `BUSY` of them. */
const BUSY = 20
/** The part of the open rows that another worker has claimed: they count against the caps. */
const LOST_SHARE = 0.02
const LOST = OPEN * LOST_SHARE
/** Webhooks of other accounts that subscribe to the same type. */
const STRANGERS = 2_000
/** Webhooks of one account that all receive its events. */
const CROWD = 1_200

/** The events that a publication has recorded. */
const recorded = fragment<{ events: readonly string[] }>(
  'plan',
  'routed as materialized (select * from event_occurrence where document_id = any($events::uuid[]))',
)

/**
 * Statements of every round must cost what they return, not what the tables hold. Their plans are the same in every state
 * of the tables, as of a service that starts for the first time, and are executed on large ones that were never analysed.
 */
describe(`plans made on small tables, on ${OPEN} open and ${ENDED} ended rows`, () => {
  const clock = buildManualClock()
  const now = new Date(clock.now())
  const later = (ms: number) => new Date(clock.now() + ms)
  let database: TestDatabase
  let watched: WatchedDatabase
  let ledger: Ledger
  let account: AccountId
  let crowded: AccountId

  beforeAll(async () => {
    database = await createTestDatabase({ isOwn: true })
    ledger = buildLedger(database.db, clock)
    watched = openWatched(database, INDEX_ONLY_PLANS)
    await keepUnanalysed(database.db, TABLES)
    account = await ledger.addAccount()
    crowded = await ledger.addAccount()
    await ledger.addEventType('contract.create')
    const fillAll = async (open: number, others = { ended: open, events: open, strangers: open, crowd: open }) => {
      const busy: WebhookId[] = []
      for (let index = 0; index < BUSY; index += 1) busy.push(await ledger.addWebhook())
      await fill(database.db, { ...others, open, busy, crowded, now })
    }
    const statements = { tables: TABLES, fill: fillAll, prepare: prepareAll }
    await expectSamePlans({ db: database.db, watched }, statements)
    await fillAll(OPEN, { ended: ENDED, events: OPEN, strangers: STRANGERS, crowd: CROWD })
    for (let index = 0; index < 2; index += 1) await ledger.addWebhook({ account, events: ['contract.create'] })
    await ledger.addWebhook({ events: ['contract.create'] })
  })
  afterAll(async () => {
    await watched[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })

  const request = (change: Partial<ClaimRequest> = {}): ClaimRequest => ({
    workerId: 'worker-a',
    now,
    fastSlots: 100,
    slowSlots: 25,
    slowGroups: [],
    lateGroups: [],
    inFlight: new Map(),
    perGroup: 20,
    hasPeers: true,
    ...change,
  })
  const route = (db: Database, change: Partial<ClaimRequest> = {}) => {
    const input = { after: '00000000-0000-0000-0000-000000000000', limit: 500, now }
    return routeBatch(db, input, [{ name: 'webhook', part: buildWebhookRouting(request(change)) }])
  }
  const writePart = (db: Database, limit: number) =>
    routeFanOut(db, { name: 'webhook', written: buildWebhookFanOut(request(), limit), now })
  /** Routes events in a statement of its own, as that of a publication does. */
  const inline = (db: Database, events: readonly string[]) => {
    const policies = [{ name: 'webhook', part: buildWebhookRouting(request()) }]
    return routeInline(
      db,
      recorded({ events }),
      policies,
      (parts, answers) => `with ${parts.join(', ')} select (select is_inline from inline), ${answers.join(', ')}`,
    )
  }
  const claim = (db: Database, change: Partial<ClaimRequest> = {}) => claimDispatches(db, request(change))
  const findLost = (db: Database, workerId: string) => findLostClaims(db, { workerId, now, limit: 50 })
  const cancelOrphans = (db: Database) => cancelOrphanedDispatches(db, { workerId: 'worker-a', now, limit: 1_000 })
  const settle = (db: Database, ended: readonly EndedAttempt[]) => settleAttempts(ledger.deps, db, ended)
  const end = (claimed: Pick<ClaimedDispatch, 'id' | 'fence' | 'attempt' | 'webhook'>, statusCode: number) => ({
    id: claimed.id,
    fence: claimed.fence,
    attempt: claimed.attempt,
    trigger: 'schedule' as const,
    isTest: false,
    webhook: claimed.webhook.id,
    event: 'contract.create',
    workerId: 'worker-a',
    traceId: null,
    startedAt: now,
    endedAt: now,
    durationMs: 1,
    result: { statusCode },
    responseExcerpt: 'ok',
    responseHeaders: {},
    timings: null,
  })

  /** Executes each statement often enough for its plan to be kept. */
  async function prepareAll(): Promise<void> {
    const id = ledger.ids.next<'dispatch'>() as DispatchId
    const webhook = {
      id: ledger.ids.next<'webhook'>() as WebhookId,
      url: '',
      secretEncrypted: null,
      headersEncrypted: null,
      signingKeyEncrypted: null,
    }
    const nothing = { id, fence: 1, attempt: 1, webhook }
    for (let round = 0; round < 2; round += 1) {
      await route(watched.db)
      await writePart(watched.db, 100)
      await inline(watched.db, [id])
      await claim(watched.db)
      await settle(watched.db, [end(nothing, 200), end(nothing, 500)])
      await releaseClaims(watched.db, [nothing], now)
      await findLost(watched.db, 'worker-b')
      await findNextDueAt(watched.db)
      await cancelOrphans(watched.db)
      await renewLease(watched.db, { workerId: 'worker-a', until: later(30_000), hasLock: false, now })
    }
  }

  const expectReads = <Result>(most: number, work: (db: Database) => Promise<Result>) =>
    expectFewReads(watched, { most }, work)

  test('routes with the subscriptions of the account and the global ones only', async () => {
    await ledger.recordMany('contract.create', { account, count: 20 })
    const { events, byPolicy } = await expectReads(60 * 8, (db) => route(db))
    expect({ events, opened: byPolicy[0]!.opened }).toEqual({ events: 20, opened: 60 })
  })

  test('routes with the same reads in the statement of a publication', async () => {
    const events = await ledger.recordMany('contract.create', { account, count: 5 })
    const ids = events.map((event) => event.id)
    const { row, byPolicy } = await expectReads(LOST + 15 * 9, (db) => inline(db, ids))
    expect({ isInline: row.is_inline, opened: byPolicy[0]!.opened }).toEqual({ isInline: true, opened: 15 })
    await sql`delete from event_queue where event_id = any(${ids})`.execute(database.db)
  })

  test('routes what nobody has room for with the same reads', async () => {
    await ledger.recordMany('contract.create', { account, count: 20 })
    const { byPolicy } = await expectReads(60 * 8, (db) => route(db, { fastSlots: 0 }))
    expect(byPolicy[0]).toMatchObject({ opened: 60, work: [] })
  })

  test('looks for events without reading those that were routed', async () => {
    const { events } = await expectReads(4, (db) => route(db))
    expect(events).toBe(0)
  })

  test('claims with reads of the due rows that the caps allow', async () => {
    const claimed = await expectReads(100 * 9 + 2 * LOST, (db) => claim(db))
    expect(claimed).toHaveLength(100)
  })

  test('claims a row by the slot with as few reads, whatever waits', async () => {
    expect(await expectReads(6 * BUSY + 2 * LOST, (db) => claim(db, { fastSlots: 1, perGroup: 1 }))).toHaveLength(1)
  })

  test('settles deliveries with reads of their own rows', async () => {
    const claimed = await claim(database.db)
    const { recorded } = await expectReads(100 * 4, (db) =>
      settle(
        db,
        claimed.map((claim) => end(claim, 204)),
      ),
    )
    expect(recorded.filter((result) => result.isRecorded)).toHaveLength(100)
  })

  test('settles retries with reads of their own rows', async () => {
    const claimed = await claim(database.db)
    const { recorded } = await expectReads(100 * 4, (db) =>
      settle(
        db,
        claimed.map((claim) => end(claim, 500)),
      ),
    )
    expect(recorded.filter((result) => result.isRecorded)).toHaveLength(100)
  })

  test('settles what ends failed, with the failure counts, with reads of their own rows and the last deliveries', async () => {
    const claimed = await claim(database.db)
    const webhooks = new Set(claimed.map((claim) => claim.webhook.id)).size
    // The last deliveries of each webhook, besides those that are recorded now.
    const lastReads = webhooks * LAST_DELIVERIES + claimed.length
    const { recorded } = await expectReads(100 * 5 + lastReads, (db) =>
      settle(
        db,
        claimed.map((claim) => end(claim, 301)),
      ),
    )
    expect(recorded.filter((result) => result.isRecorded)).toHaveLength(100)
  })

  test('finds when the next row is due with one read of the queue', async () => {
    expect(await expectReads(4, findNextDueAt)).not.toBeNull()
  })

  test('finds lost claims of one worker with reads of those', async () => {
    const lost = await expectReads(50, (db) => findLost(db, 'worker-lost'))
    expect(lost).toHaveLength(50)
  })

  test('gives claims back with reads of their own rows', async () => {
    const claimed: Claim[] = await claim(database.db)
    await expectReads(100 * 4, (db) => releaseClaims(db, claimed, now))
  })

  test('looks for rows of deleted webhooks with reads of the heads of the queue', async () => {
    expect(await expectReads(6 * BUSY, cancelOrphans)).toBe(0)
  })

  // Last, because what it writes waits in the queue.
  test('sets an event for thousands aside with reads of as many webhooks as decide that', async () => {
    await ledger.recordMany('contract.create', { account: crowded })
    const { isAside, byPolicy } = await expectReads(1_001 * 2 + 2 * LOST, (db) => route(db))
    expect({ isAside, opened: byPolicy[0]!.opened }).toEqual({ isAside: true, opened: 0 })
  })

  test('writes each part of an event for thousands with reads of its own webhooks', async () => {
    const parts = [await writePart(watched.db, 900)]
    for (let rest = CROWD + 1 - 900; rest > 0; rest -= 100)
      parts.push(await expectReads(100 * 3 + 2 * LOST, (db) => writePart(db, 100)))
    expect(parts.map((part) => part?.opened)).toEqual([900, ...Array((CROWD - 900) / 100).fill(100), 1])
  })
})

const TABLES = [
  'webhook_dispatch_open',
  'webhook_dispatch_ended',
  'webhook_queue',
  'webhook_fan_out',
  'webhook_attempt',
  'event_occurrence',
  'event_queue',
  'webhook',
  'webhook_event',
]

/** How many rows `fill` writes, and for whom. */
interface Filling {
  open: number
  ended: number
  events: number
  strangers: number
  crowd: number
  busy: readonly WebhookId[]
  crowded: AccountId
  now: Date
}

async function fill(db: Database, input: Filling): Promise<void> {
  const { open, ended, events, strangers, crowd, busy, crowded, now } = input
  const lost = Math.ceil(open * LOST_SHARE)
  await sql`
    with strangers as (
      insert into account (document_id, name, created_at, updated_at)
      select gen_random_uuid(), 'Stranger', ${now}, ${now} from generate_series(1, ${strangers}::int) returning document_id
    ), hooks as (
      insert into webhook (document_id, url, is_global, account, created_at, updated_at)
      select gen_random_uuid(), 'https://stranger.example.com/', false, document_id, ${now}, ${now} from strangers
      returning document_id
    ) select count(*) from hooks`.execute(db)
  await sql`
    insert into webhook (document_id, url, is_global, account, created_at, updated_at)
    select gen_random_uuid(), 'https://crowd.example.com/', false, ${crowded}::uuid, ${now}, ${now}
    from generate_series(1, ${crowd}::int)`.execute(db)
  await sql`
    insert into webhook_event (document_id, webhook, event, created_at, updated_at)
    select gen_random_uuid(), w.document_id, e.document_id, ${now}, ${now}
    from webhook w cross join event e where not w.is_global`.execute(db)
  await sql`
    insert into webhook_dispatch_ended (document_id, webhook, event_id, event, status, attempts, ended_at, created_at, updated_at)
    select gen_random_uuid(), (${busy}::uuid[])[1 + n % ${BUSY}::int], gen_random_uuid(), 'contract.create',
      case when n % 50 = 0 then 'exhausted' else 'success' end, 1, ${now}, ${now}::timestamptz - n * interval '1 second', ${now}
    from generate_series(1, ${ended}::int) n`.execute(db)
  await sql`
    insert into webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms)
    select document_id, 1, 'schedule', 'worker-a', ${now}, 1 from webhook_dispatch_ended`.execute(db)
  await sql`
    with written as (
      insert into event_occurrence (document_id, event, resource, action, routed_at, created_at)
      select gen_random_uuid(), 'contract.create', 'contract', 'create', ${now}::timestamptz, ${now}
      from generate_series(1, ${events}::int) n returning document_id
    ), numbered as (select document_id, row_number() over () as n from written)
    insert into webhook_dispatch_open (document_id, webhook, event_id, event, status, attempts, next_attempt_at, lease_owner,
      last_attempt_at, fence, created_at, updated_at)
    select gen_random_uuid(), (${busy}::uuid[])[1 + n % ${BUSY}::int], document_id, 'contract.create', 'pending',
      (n <= ${lost}::int)::int, case when n > ${lost}::int then ${now}::timestamptz end, case when n <= ${lost}::int then 'worker-lost' end,
      case when n <= ${lost}::int then ${now}::timestamptz end, (n <= ${lost}::int)::int, ${now}, ${now}
    from numbered`.execute(db)
  await sql`
    insert into webhook_queue select webhook, min(next_attempt_at) from webhook_dispatch_open
    where next_attempt_at is not null group by webhook on conflict (webhook) do nothing`.execute(db)
}
