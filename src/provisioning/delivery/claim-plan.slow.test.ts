import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { openWatched, type WatchedDatabase } from '../../../test/harness/plan/explain.ts'
import { expectFewReads, keepUnanalysed } from '../../../test/harness/plan/plan-reads.ts'
import { expectSamePlans } from '../../../test/harness/plan/plan-states.ts'
import {
  buildProvisioningLedger,
  type ProvisioningLedger,
} from '../../../test/harness/provisioning/provisioning-ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { UserId } from '../../base/id.ts'
import type { ClaimRequest } from '../../delivery/policy.ts'
import { type Database, INDEX_ONLY_PLANS, inTransaction } from '../../postgres/statement/database.ts'
import type { ClaimedDelivery } from '../claim/claimed-delivery.ts'
import type { TargetId } from '../target/target.store.ts'
import { claimDeliveries, findLostDeliveries, findNextDeliveryAt, releaseDeliveries } from './claim.store.ts'
import { type DeliveryChange, lockHeldClaims, settleDeliveries } from './settle.store.ts'

/** Users with an open delivery at each target, and deliveries of each that ended. */
const USERS = 1_500
const ENDED = 3
const TARGETS = 2
/** Streams of each target that a lost worker has claimed. */
const LOST = 100

/** As those of webhooks: the same in every state of the tables, executed on large ones that were never analysed. */
describe(`plans of provisioning made on small tables, on ${USERS} users at each of ${TARGETS} targets`, () => {
  const clock = buildManualClock()
  const now = new Date(clock.now())
  let database: TestDatabase
  let watched: WatchedDatabase
  let ledger: ProvisioningLedger

  beforeAll(async () => {
    database = await createTestDatabase({ isOwn: true })
    ledger = buildProvisioningLedger(database.db, clock)
    watched = openWatched(database, INDEX_ONLY_PLANS)
    await keepUnanalysed(database.db, TABLES)
    const fillAll = async (users: number) => {
      const targets: TargetId[] = []
      for (let index = 0; index < TARGETS; index += 1) targets.push(await ledger.addTarget())
      await fill(database.db, { targets, users, now })
    }
    const statements = { tables: TABLES, fill: fillAll, prepare: prepareAll, alike: ALIKE }
    await expectSamePlans({ db: database.db, watched }, statements)
    await fillAll(USERS)
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
    perGroup: 500,
    hasPeers: true,
    ...change,
  })
  const claim = (db: Database, change: Partial<ClaimRequest> = {}) => claimDeliveries(db, request(change))
  const findLost = (db: Database, workerId: string) => findLostDeliveries(db, { workerId, now, limit: 50 })
  const settle = (db: Database, claimed: readonly Ended[], status: DeliveryChange['status']) =>
    inTransaction(db, async (tx) => {
      const held = await lockHeldClaims(tx, claimed)
      await settleDeliveries(
        tx,
        claimed.map((claim) => end(claim, status)),
      )
      return held.length
    })
  const end = (ended: Ended, status: DeliveryChange['status']): DeliveryChange => ({
    ...{
      id: ended.id,
      target: ended.target,
      user: ended.user,
      status,
      attempt: ended.attempt,
      trigger: 'schedule',
      worker: 'worker-a',
    },
    nextAttemptAt: status === 'retrying' ? now : null,
    ...{ statusCode: 200, errorClass: null, durationMs: 1, startedAt: now, endedAt: now },
    ...{ responseExcerpt: 'ok', responseHeaders: {}, timings: null, remoteId: undefined, generation: null },
  })
  const expectReads = <Result>(most: number, work: (db: Database) => Promise<Result>) =>
    expectFewReads(watched, { most, small: ['provisioning_target'] }, work)

  /** Executes each statement on tables that hold next to nothing: their plans are kept. */
  async function prepareAll(): Promise<void> {
    const target = await ledger.addTarget()
    for (let round = 0; round < 2; round += 1) {
      await ledger.addUser()
      await releaseDeliveries(watched.db, await claim(watched.db), now)
      await settle(watched.db, (await claim(watched.db)).map(toEnded), 'delivered')
      await findLost(watched.db, 'worker-b')
      await findNextDeliveryAt(watched.db)
    }
    await database.db.deleteFrom('provisioning_target').where('document_id', '=', target).execute()
  }

  test('claims with reads of the deliveries that there is room for', async () => {
    const claimed = await expectReads(100 * 8 + TARGETS * LOST, (db) => claim(db))
    expect(claimed).toHaveLength(100)
  })

  test('claims a delivery by the slot with few reads, however many users wait', async () => {
    const change = { fastSlots: 1, slowSlots: 0, hasPeers: false, workerId: 'worker-b' }
    expect(await expectReads(40, (db) => claim(db, change))).toHaveLength(1)
  })

  test.each(['delivered', 'retrying', 'cancelled'] as const)(
    'settles what is %s with reads of its own rows',
    async (status) => {
      const claimed = (await claim(database.db, { workerId: `worker-${status}` })).map(toEnded)
      expect(claimed.length).toBeGreaterThan(0)
      expect(await expectReads(100 * 8, (db) => settle(db, claimed, status))).toBe(claimed.length)
    },
  )

  test('gives claims back with reads of what is claimed, however many users wait', async () => {
    const claimed = await claim(database.db, { workerId: 'worker-d' })
    expect(claimed.length).toBeGreaterThan(0)
    // All that is claimed is read, which is what processes have in flight.
    await expectReads(100 * 2 + 1_000, (db) => releaseDeliveries(db, claimed, now))
  })

  test('finds when the next delivery is due, and lost claims, with reads of those', async () => {
    expect(await expectReads(4 * TARGETS, findNextDeliveryAt)).not.toBeNull()
    expect(await expectReads(50 * 2, (db) => findLost(db, 'worker-lost'))).toHaveLength(50)
  })
})

/** Waiting deliveries for a user at a deleted target are cancelled, with or without ended ones of the same user. */
const ALIKE = {
  sql: 'behind as materialized',
  indexes: ['provisioning_delivery_target_user_id_position_key', 'provisioning_delivery_open_idx'],
} as const

type Ended = Pick<ClaimedDelivery, 'id' | 'fence' | 'attempt'> & { target: TargetId; user: UserId }

const toEnded = ({ id, fence, attempt, target, change }: ClaimedDelivery): Ended => ({
  ...{ id, fence, attempt, target: target.id, user: change.user.id },
})

const TABLES = [
  'provisioning_delivery',
  'provisioning_stream',
  'provisioning_attempt',
  'provisioning_target_claim',
  'provisioning_target',
]

/** Each user has deliveries that ended and one that waits; those of the first users are claimed by the lost worker. */
async function fill(
  db: Database,
  { targets, users, now }: { targets: readonly TargetId[]; users: number; now: Date },
): Promise<void> {
  const lost = Math.ceil((users * LOST) / USERS)
  await sql`
    create table given as
    select t.target, gen_random_uuid() as user_id, gen_random_uuid() as id, n
    from unnest(${targets}::uuid[]) as t (target), generate_series(1, ${users}::int) n`.execute(db)
  await sql`
    insert into provisioning_delivery (document_id, target, user_id, position, event_id, type, email, user_status, status,
      attempts, last_attempt_at, ended_at, created_at, updated_at)
    select case when p > ${ENDED}::int then id else gen_random_uuid() end, target, user_id, p, gen_random_uuid(),
      'user.updated', 'user@example.com', 'active', case when p > ${ENDED}::int then 'pending' else 'delivered' end,
      (p <= ${ENDED}::int or n <= ${lost}::int)::int, ${now}::timestamptz,
      case when p <= ${ENDED}::int then ${now}::timestamptz end, ${now}, ${now}
    from given, generate_series(1, ${ENDED + 1}::int) p`.execute(db)
  await sql`
    insert into provisioning_attempt (delivery, attempt, attempt_trigger, worker, started_at, duration_ms)
    select document_id, 1, 'schedule', 'worker-a', ${now}, 1 from provisioning_delivery where attempts = 1`.execute(db)
  await sql`
    insert into provisioning_stream (target, user_id, position, waiting, due_at, lease_owner, claimed, claimed_at, fence)
    select target, user_id, ${ENDED + 1}::int, 1, case when n > ${lost}::int then ${now}::timestamptz end,
      case when n <= ${lost}::int then 'worker-lost' end, case when n <= ${lost}::int then id end,
      case when n <= ${lost}::int then ${now}::timestamptz end, (n <= ${lost}::int)::int
    from given`.execute(db)
  await sql`drop table given`.execute(db)
}
