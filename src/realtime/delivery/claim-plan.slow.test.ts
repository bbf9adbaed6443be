import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger, type Ledger } from '../../../test/harness/delivery/ledger.ts'
import { openWatched, type WatchedDatabase } from '../../../test/harness/plan/explain.ts'
import { expectFewReads, keepUnanalysed } from '../../../test/harness/plan/plan-reads.ts'
import { expectSamePlans } from '../../../test/harness/plan/plan-states.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId, EventId } from '../../base/id.ts'
import type { ClaimRequest } from '../../delivery/policy.ts'
import { routeBatch } from '../../delivery/routing/routing.store.ts'
import { type Database, INDEX_ONLY_PLANS } from '../../postgres/statement/database.ts'
import { claimMessages, findLostMessages, findNextDueAt, releaseMessages } from './claim.store.ts'
import type { ClaimedMessage } from './claimed-message.ts'
import { buildRealtimeRouting } from './routing.store.ts'
import { type MessageChange, makeMessagesDue, settleMessages } from './settle.store.ts'

/** Open messages, and as many that ended. */
const ROWS = 20_000
/** Accounts with waiting messages: the first has half of them, as after an outage of the provider. */
const BUSY = 20
/** The part of the open messages that a lost worker has claimed. */
const LOST_SHARE = 0.01

/** As those of webhooks: the same in every state of the tables, executed on large ones that were never analysed. */
describe(`plans of realtime messages made on small tables, on ${ROWS} open and ${ROWS} ended ones`, () => {
  const clock = buildManualClock()
  const now = new Date(clock.now())
  let database: TestDatabase
  let watched: WatchedDatabase
  let ledger: Ledger
  let account: AccountId

  beforeAll(async () => {
    database = await createTestDatabase({ isOwn: true })
    ledger = buildLedger(database.db, clock)
    watched = openWatched(database, INDEX_ONLY_PLANS)
    await keepUnanalysed(database.db, TABLES)
    account = await ledger.addAccount()
    const busy: AccountId[] = []
    for (let index = 0; index < BUSY; index += 1) busy.push(await ledger.addAccount())
    const fillAll = (rows: number) => fill(database.db, { busy, rows, now })
    await expectSamePlans({ db: database.db, watched }, { tables: TABLES, fill: fillAll, prepare: prepareAll })
    await fillAll(ROWS)
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
    perGroup: 100,
    hasPeers: true,
    ...change,
  })
  const route = (db: Database, change: Partial<ClaimRequest> = {}) => {
    const input = { after: '00000000-0000-0000-0000-000000000000', limit: 500, now }
    return routeBatch(db, input, [{ name: 'realtime', part: buildRealtimeRouting(request(change)) }])
  }
  const claim = (db: Database, change: Partial<ClaimRequest> = {}) => claimMessages(db, request(change))
  const findLost = (db: Database, workerId: string) => findLostMessages(db, { workerId, now, limit: 50 })
  const end = (claim: Pick<ClaimedMessage, 'id' | 'fence' | 'account'>, status: MessageChange['status']) => ({
    ...{ id: claim.id, fence: claim.fence, account: claim.account, status },
    nextAttemptAt: status === 'retrying' ? now : null,
    ...{ statusCode: 200, errorClass: null, durationMs: 1, endedAt: now, isAttempt: true },
  })
  const expectReads = <Result>(most: number, work: (db: Database) => Promise<Result>) =>
    expectFewReads(watched, { most }, work)

  /** Executes each statement often enough for its plan to be kept. */
  async function prepareAll(): Promise<void> {
    const nothing = {
      id: ledger.ids.next<'event'>() as EventId,
      fence: 1,
      account: ledger.ids.next<'account'>() as AccountId,
    }
    for (let round = 0; round < 2; round += 1) {
      await route(watched.db)
      await claim(watched.db)
      await settleMessages(watched.db, [end(nothing, 'published')])
      await releaseMessages(watched.db, [nothing], now)
      await findLost(watched.db, 'worker-b')
      await findNextDueAt(watched.db)
      await makeMessagesDue(watched.db, { now })
    }
  }

  test('routes messages with reads of their own events', async () => {
    await ledger.recordMany('contract.create', { account, count: 20 })
    // And of what other workers have in flight.
    const { byPolicy } = await expectReads(ROWS * LOST_SHARE + 20 * 5, (db) => route(db))
    expect(byPolicy[0]).toMatchObject({ opened: 20 })
  })

  test('claims with reads of the messages that there is room for, however long the backlog of an account is', async () => {
    const claimed = await expectReads(100 * 10, (db) => claim(db))
    expect(claimed).toHaveLength(100)
    expect(await expectReads(BUSY * 20, (db) => claim(db, { fastSlots: 1 }))).toHaveLength(1)
  })

  test('settles what was published with reads of its own messages', async () => {
    const claimed = await claim(database.db)
    const changes = claimed.map((claim) => end(claim, 'published'))
    expect(await expectReads(100 * 4, (db) => settleMessages(db, changes))).toHaveLength(claimed.length)
    expect(claimed.length).toBeGreaterThan(0)
  })

  test('settles what is tried again with reads of its own messages', async () => {
    const claimed = await claim(database.db)
    const changes = claimed.map((claim) => end(claim, 'retrying'))
    expect(await expectReads(100 * 4, (db) => settleMessages(db, changes))).toHaveLength(claimed.length)
    expect(claimed.length).toBeGreaterThan(0)
  })

  test('gives claims back with reads of their own messages', async () => {
    const claimed = await claim(database.db)
    expect(claimed.length).toBeGreaterThan(0)
    await expectReads(100 * 8, (db) => releaseMessages(db, claimed, now))
  })

  test('finds when the next message is due with one read of the queue, and lost claims with reads of those', async () => {
    expect(await expectReads(4, findNextDueAt)).not.toBeNull()
    expect(await expectReads(ROWS * LOST_SHARE, (db) => findLost(db, 'worker-lost'))).toHaveLength(50)
  })
})

const TABLES = ['realtime_message_open', 'realtime_message_ended', 'realtime_queue', 'event_occurrence', 'event_queue']

/** How much `fill` writes: open messages, of which a lost worker has claimed the first ones, and as many that ended. */
interface Filling {
  busy: readonly AccountId[]
  rows: number
  now: Date
}

/** The first account has half of the waiting messages, the others share the rest; the last one those of the lost worker. */
async function fill(db: Database, { busy, rows, now }: Filling): Promise<void> {
  const lost = Math.ceil(rows * LOST_SHARE)
  await sql`
    with given as (
      select gen_random_uuid() as id, n,
        case when n <= ${lost}::int then (${busy}::uuid[])[${BUSY}::int]
          when n % 2 = 0 then (${busy}::uuid[])[1] else (${busy}::uuid[])[2 + n / 2 % ${BUSY - 2}::int] end as account
      from generate_series(1, ${rows}::int) n
    ), recorded as (
      insert into event_occurrence (document_id, event, account, resource, action, routed_at, created_at)
      select id, 'contract.create', account, 'contract', 'create', ${now}::timestamptz, ${now} from given
    )
    insert into realtime_message_open (document_id, account, event, attempts, next_attempt_at, lease_owner,
      last_attempt_at, fence, created_at, updated_at)
    select id, account, 'contract.create', (n <= ${lost}::int)::int,
      case when n > ${lost}::int then ${now}::timestamptz end, case when n <= ${lost}::int then 'worker-lost' end,
      case when n <= ${lost}::int then ${now}::timestamptz end, (n <= ${lost}::int)::int, ${now}, ${now}
    from given`.execute(db)
  await sql`
    insert into realtime_queue select account, min(next_attempt_at) from realtime_message_open
    where next_attempt_at is not null group by account
    on conflict (account) do nothing`.execute(db)
  await sql`
    insert into realtime_message_ended (document_id, account, event, status, attempts, results, created_at, ended_at, fence)
    select gen_random_uuid(), (${busy}::uuid[])[1 + n % ${BUSY}::int], 'contract.create', 'published', 1, 1, ${now}, ${now}, 1
    from generate_series(1, ${rows}::int) n`.execute(db)
}
