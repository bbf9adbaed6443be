import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { untilWaiting, whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { WebhookId } from '../../base/id.ts'
import type { ClaimRequest } from '../../delivery/policy.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { ADVISORY_LOCKS } from '../../postgres/statement/locks.ts'
import { claimDispatches, findLostClaims, findNextDueAt, releaseClaims } from './claim.store.ts'

const MINUTE_MS = 60_000

async function openLedger() {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  const later = (ms: number) => new Date(clock.now() + ms)
  /** Attempts in flight of each worker, as its process counts them. */
  const inFlight = new Map<string, Map<string, number>>()
  const claim = async (change: Partial<ClaimRequest> = {}) => {
    const { workerId = 'worker-a' } = change
    const own = inFlight.get(workerId) ?? new Map<string, number>()
    inFlight.set(workerId, own)
    const claimed = await claimDispatches(database.db, {
      workerId,
      now: new Date(clock.now()),
      fastSlots: 100,
      slowSlots: 25,
      slowGroups: [],
      lateGroups: [],
      inFlight: own,
      perGroup: 100,
      hasPeers: true,
      ...change,
    })
    for (const { group } of claimed) own.set(group, (own.get(group) ?? 0) + 1)
    return claimed
  }
  const findLost = (workerId: string, limit = 10) => findLostClaims(database.db, { workerId, now: later(0), limit })
  return {
    database,
    db: database.db,
    clock,
    ledger,
    later,
    claim,
    findLost,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

function countByWebhook(claimed: readonly { webhook: { id: WebhookId } }[]) {
  const counts = new Map<WebhookId, number>()
  for (const { webhook } of claimed) counts.set(webhook.id, (counts.get(webhook.id) ?? 0) + 1)
  return counts
}

describe('claiming: what is due', () => {
  test('takes what is due at this very millisecond and leaves what is due in the next', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [now] = await t.ledger.addDispatches(webhook, { dueAt: t.later(0) })
    await t.ledger.addDispatches(webhook, { dueAt: t.later(1) })
    expect((await t.claim()).map((claim) => claim.id)).toEqual([now])
    t.clock.advance(1)
    expect(await t.claim()).toHaveLength(1)
  })

  test('counts the attempt, raises the fence and holds the row before anything is posted', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [id] = await t.ledger.addDispatches(webhook, { status: 'retrying', attempts: 2 })
    const [claimed] = await t.claim()
    expect(claimed).toMatchObject({ id, attempt: 3, fence: 1, trigger: 'schedule', isTest: false })
    expect(await t.ledger.readDispatch(id!)).toMatchObject({
      status: 'retrying',
      attempts: 3,
      fence: 1,
      lease_owner: 'worker-a',
      next_attempt_at: null,
      last_attempt_at: t.later(0),
    })
  })

  test('never claims a held row again, even when the lease of its worker ran out: the recovery decides over it first', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    await t.ledger.addDispatches(webhook, { count: 3 })
    expect(await t.claim()).toHaveLength(3)
    expect(await t.claim()).toEqual([])
    t.clock.advance(3_600_000)
    expect(await t.claim()).toEqual([])
  })

  test('takes no row that ended', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    for (const status of ['success', 'exhausted', 'failed', 'cancelled'] as const)
      await t.ledger.addDispatches(webhook, { status })
    expect(await t.claim()).toEqual([])
  })

  test('lets the rows of an inactive webhook rest, and claims its tests; nothing of a deleted one is claimed', async () => {
    await using t = await openLedger()
    const inactive = await t.ledger.addWebhook({ isActived: false })
    const deleted = await t.ledger.addWebhook({ isDeleted: true })
    const deletedInactive = await t.ledger.addWebhook({ isDeleted: true, isActived: false })
    await t.ledger.addDispatches(inactive, { count: 2 })
    const [test] = await t.ledger.addDispatches(inactive, { isTest: true, trigger: 'test' })
    await t.ledger.addDispatches(inactive, { isTest: true, dueAt: t.later(1) })
    for (const webhook of [deleted, deletedInactive]) {
      await t.ledger.addDispatches(webhook)
      await t.ledger.addDispatches(webhook, { isTest: true })
    }
    const [pulled] = await t.ledger.addDispatches(inactive, { isTest: true })
    const kept = { kept_until: t.later(MINUTE_MS) }
    await t.db.updateTable('webhook_dispatch_open').set(kept).where('document_id', '=', pulled!).execute()
    expect((await t.claim()).map((claim) => claim.id)).toEqual([test])
  })

  test('reads the URL and the secret of now, not those of when the row was written', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook({ url: 'https://old.example.com/' })
    await t.ledger.addDispatches(webhook)
    await t.db.updateTable('webhook').set({ url: 'https://new.example.com/', secret_encrypted: 'box' }).execute()
    expect((await t.claim())[0]!.webhook).toEqual({
      id: webhook,
      url: 'https://new.example.com/',
      secretEncrypted: 'box',
      headersEncrypted: null,
      signingKeyEncrypted: null,
    })
  })
})

describe('claiming: fairness', () => {
  test('goes round the webhooks, so that a long backlog that is due longest delays no other', async () => {
    await using t = await openLedger()
    const [long, short, single] = [
      await t.ledger.addWebhook(),
      await t.ledger.addWebhook(),
      await t.ledger.addWebhook(),
    ]
    await t.ledger.addDispatches(long, { count: 2_000, dueAt: t.later(-MINUTE_MS) })
    await t.ledger.addDispatches(short, { count: 3, dueAt: t.later(-2) })
    await t.ledger.addDispatches(single, { count: 1, dueAt: t.later(-1) })
    const first = countByWebhook(await t.claim({ fastSlots: 6 }))
    expect(first).toEqual(
      new Map([
        [long, 3],
        [short, 2],
        [single, 1],
      ]),
    )
    const second = countByWebhook(await t.claim({ fastSlots: 6 }))
    expect(second).toEqual(
      new Map([
        [long, 5],
        [short, 1],
      ]),
    )
  })

  test('prefers the webhook with fewer POSTs in flight over the one that is due longer', async () => {
    await using t = await openLedger()
    const [busy, idle] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    await t.ledger.addDispatches(busy, { count: 5, leaseUntil: t.later(1_000) })
    await t.ledger.addDispatches(busy, { count: 5, dueAt: t.later(-MINUTE_MS) })
    await t.ledger.addDispatches(idle, { count: 5 })
    expect(countByWebhook(await t.claim({ fastSlots: 5 }))).toEqual(new Map([[idle, 5]]))
  })

  test('takes the longest due of one webhook first', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [late] = await t.ledger.addDispatches(webhook, { dueAt: t.later(-1) })
    const [early] = await t.ledger.addDispatches(webhook, { dueAt: t.later(-2) })
    expect((await t.claim({ fastSlots: 1 })).map((claim) => claim.id)).toEqual([early])
    expect((await t.claim({ fastSlots: 1 })).map((claim) => claim.id)).toEqual([late])
  })

  test('counts what is in flight against the cap of a webhook', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    await t.ledger.addDispatches(webhook, { count: 10 })
    expect(await t.claim({ perGroup: 4 })).toHaveLength(4)
    expect(await t.claim({ perGroup: 4 })).toHaveLength(0)
    expect(await t.claim({ perGroup: 5 })).toHaveLength(1)
  })

  test('claims the tests of an active webhook within its cap', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook(), { count: 3, isTest: true, trigger: 'test' })
    expect(await t.claim({ perGroup: 1 })).toHaveLength(1)
    expect(await t.claim({ perGroup: 1 })).toHaveLength(0)
  })

  test('visits no webhook that rests, so that many of them keep no other from its turn', async () => {
    await using t = await openLedger()
    for (let count = 0; count < 20; count += 1) await t.ledger.addDispatches(await t.ledger.addWebhook())
    await t.db.updateTable('webhook').set({ is_actived: false }).execute()
    while ((await findNextDueAt(t.db)) !== null) await t.claim()
    const heads = await t.ledger.readHeads()
    expect([...heads.values()].every(({ isHeld }) => isHeld)).toBe(true)
    t.clock.advance(1)
    const [last] = await t.ledger.addDispatches(await t.ledger.addWebhook())
    const claimed = await t.claim({ fastSlots: 1, slowSlots: 0 })
    expect(claimed.map(({ id }) => id)).toEqual([last])
    expect(await t.ledger.readHeads()).toEqual(heads)
  })

  test('does not visit a webhook that is blocked: it keeps its place', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [row] = await t.ledger.addDispatches(webhook, { dueAt: t.later(-1_000) })
    const heads = await t.ledger.readHeads()
    const full = new Map([[webhook as string, 1]])
    expect(await t.claim({ lateGroups: [webhook] })).toEqual([])
    expect(await t.claim({ slowGroups: [webhook], slowSlots: 0 })).toEqual([])
    expect(await t.claim({ inFlight: full, perGroup: 1 })).toEqual([])
    expect(await t.ledger.readHeads()).toEqual(heads)
    expect((await t.claim()).map(({ id }) => id)).toEqual([row])
  })

  test('finds the row of one webhook behind many that are at their caps', async () => {
    await using t = await openLedger()
    for (let count = 0; count < 40; count += 1) {
      const webhook = await t.ledger.addWebhook()
      await t.ledger.addDispatches(webhook, { leaseUntil: t.later(MINUTE_MS), leaseOwner: 'worker-b' })
      await t.ledger.addDispatches(webhook, { count: 2, dueAt: t.later(-1_000) })
    }
    // After theirs, and before now: those that have no room wait from now on.
    const [last] = await t.ledger.addDispatches(await t.ledger.addWebhook(), { dueAt: t.later(-500) })
    const claimed = await t.claim({ fastSlots: 1, slowSlots: 0, perGroup: 1 })
    expect(claimed.map((claim) => claim.id)).toEqual([last])
  })

  test('fills every slot from one webhook with a long backlog beside many with little', async () => {
    await using t = await openLedger()
    for (let count = 0; count < 30; count += 1) await t.ledger.addDispatches(await t.ledger.addWebhook(), {})
    const busy = await t.ledger.addWebhook()
    await t.ledger.addDispatches(busy, { count: 200 })
    let claimed = 0
    for (let slots = 100; slots > 0; ) {
      const taken = (await t.claim({ fastSlots: slots, slowSlots: 0 })).length
      expect(taken).toBeGreaterThan(0)
      claimed += taken
      slots -= taken
    }
    expect(claimed).toBe(100)
  })

  test('holds the cap of a webhook over claimers on connections of their own, and gives no row to two of them', async () => {
    await using t = await openLedger()
    const [a, b] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    for (const webhook of [a, b]) await t.ledger.addDispatches(webhook, { count: 200 })
    const claims = await Promise.all(
      Array.from({ length: 8 }, (_, index) => t.claim({ workerId: `worker-${index}`, fastSlots: 9, perGroup: 20 })),
    )
    const all = claims.flat()
    expect(new Set(all.map((item) => item.id)).size).toBe(all.length)
    expect(countByWebhook(all)).toEqual(
      new Map([
        [a, 20],
        [b, 20],
      ]),
    )
  })

  test('gives slow webhooks the slow slots only, and keeps the fast ones for the others', async () => {
    await using t = await openLedger()
    const [slow, prompt] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    await t.ledger.addDispatches(slow, { count: 50, dueAt: t.later(-MINUTE_MS) })
    await t.ledger.addDispatches(prompt, { count: 50 })
    const claimed = await t.claim({ fastSlots: 10, slowSlots: 2, slowGroups: [slow] })
    expect(countByWebhook(claimed)).toEqual(
      new Map([
        [slow, 2],
        [prompt, 10],
      ]),
    )
    expect(await t.claim({ fastSlots: 0, slowSlots: 0 })).toEqual([])
  })

  test('passes over a row that another transaction is changing, instead of making all deliveries wait for it', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [held] = await t.ledger.addDispatches(webhook, { dueAt: t.later(-1) })
    const [free] = await t.ledger.addDispatches(webhook)
    await inTransaction(t.db, async (other) => {
      await sql`select from webhook_dispatch_open where document_id = ${held} for update`.execute(other)
      expect((await t.claim()).map((claim) => claim.id)).toEqual([free])
    })
    expect((await t.claim()).map((claim) => claim.id)).toEqual([held])
  })
})

describe('giving back and taking back', () => {
  test('gives back a claim that was not posted: the attempt does not count, and a fence is never used twice', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [id] = await t.ledger.addDispatches(webhook)
    const [first] = await t.claim()
    await releaseClaims(t.db, [first!], new Date(t.clock.now()))
    expect(await t.ledger.readDispatch(id!)).toMatchObject({
      status: 'pending',
      attempts: 0,
      lease_owner: null,
      next_attempt_at: t.later(0),
      last_attempt_at: null,
    })
    // Given back twice, it is taken back once.
    await releaseClaims(t.db, [first!], new Date(t.clock.now()))
    expect(await t.ledger.readDispatch(id!)).toMatchObject({ attempts: 0 })
    const [second] = await t.claim()
    expect(second!.attempt).toBe(1)
    expect(second!.fence).toBeGreaterThan(first!.fence)
    await releaseClaims(t.db, [first!], new Date(t.clock.now()))
    expect(await t.ledger.readDispatch(id!)).toMatchObject({
      attempts: 1,
      fence: second!.fence,
      lease_owner: 'worker-a',
    })
  })

  test('gives back a retry with the time of the attempt that was made, and lets its webhook be visited at once', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [id] = await t.ledger.addDispatches(webhook, { status: 'retrying', attempts: 2 })
    const [other] = await t.ledger.addDispatches(webhook, { leaseUntil: t.later(MINUTE_MS) })
    const madeAt = t.later(-MINUTE_MS)
    await sql`insert into webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms)
      select x.dispatch, x.attempt, 'schedule', 'worker-a', ${madeAt}::timestamptz + make_interval(secs => x.later), 5
      from (values (${id}::uuid, 1, -9), (${id}, 2, 0), (${other}, 1, 9)) x (dispatch, attempt, later)`.execute(t.db)
    const claimed = await t.claim()
    t.clock.advance(1)
    expect(await t.ledger.readHeads()).toEqual(new Map())
    await releaseClaims(t.db, claimed, t.later(0))
    expect(await t.ledger.readDispatch(id!)).toMatchObject({
      status: 'retrying',
      attempts: 2,
      last_attempt_at: madeAt,
      next_attempt_at: t.later(0),
      updated_at: t.later(0),
    })
    expect(await t.ledger.readHeads()).toEqual(new Map([[webhook, { visitAt: t.later(0), isHeld: false }]]))
  })

  test('finds the claims of one worker only', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [id] = await t.ledger.addDispatches(webhook, { attempts: 2, leaseUntil: t.later(1) })
    await t.ledger.addDispatches(webhook, { leaseUntil: t.later(1), leaseOwner: 'worker-b' })
    await t.ledger.addDispatches(webhook)
    expect(await t.findLost('worker-lost')).toEqual([
      {
        id,
        fence: 1,
        attempt: 2,
        trigger: 'schedule',
        isTest: false,
        keepsSchedule: false,
        webhook,
        event: 'contract.create',
        workerId: 'worker-lost',
        startedAt: t.later(0),
      },
    ])
  })

  test('finds at most as many lost claims as asked for', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    await t.ledger.addDispatches(webhook, { count: 3, leaseUntil: t.later(-1) })
    expect(await t.findLost('worker-lost', 2)).toHaveLength(2)
  })
})

describe('the heads of the queue', () => {
  test('leave it with the last row that waits, and stay with the due time of the next one', async () => {
    await using t = await openLedger()
    const [done, later, more] = [await t.ledger.addWebhook(), await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    await t.ledger.addDispatches(done)
    await t.ledger.addDispatches(later)
    await t.ledger.addDispatches(later, { dueAt: t.later(MINUTE_MS) })
    await t.ledger.addDispatches(more, { count: 3, dueAt: t.later(-MINUTE_MS) })
    await t.claim({ perGroup: 1 })
    expect(await t.ledger.readHeads()).toEqual(
      new Map([
        [later, { visitAt: t.later(MINUTE_MS), isHeld: false }],
        // Longer due than the others, and served now: its turn comes after theirs.
        [more, { visitAt: t.later(0), isHeld: false }],
      ]),
    )
  })

  test('leave it with the last row that waits, also behind its time', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook())
    t.clock.advance(1)
    expect(await t.claim()).toHaveLength(1)
    expect(await t.ledger.readHeads()).toEqual(new Map())
  })

  test('keep their place while no slot is left for them, and go behind the others when they are served', async () => {
    await using t = await openLedger()
    const [served, passed] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    await t.ledger.addDispatches(served, { count: 2, dueAt: t.later(-2 * MINUTE_MS) })
    await t.ledger.addDispatches(passed, { dueAt: t.later(-MINUTE_MS) })
    expect((await t.claim({ fastSlots: 1 })).map((claim) => claim.webhook.id)).toEqual([served])
    expect(await t.ledger.readHeads()).toEqual(
      new Map([
        [served, { visitAt: t.later(0), isHeld: false }],
        [passed, { visitAt: t.later(-MINUTE_MS), isHeld: false }],
      ]),
    )
  })

  test('are visited in one claim as far as slots are free, however many webhooks they are of', async () => {
    await using t = await openLedger()
    for (let count = 0; count < 20; count += 1) await t.ledger.addDispatches(await t.ledger.addWebhook())
    expect(await t.claim()).toHaveLength(20)
  })

  test('rest with their webhook from the first visit on, and are due again when it is active', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    const [id] = await t.ledger.addDispatches(webhook)
    await t.db.updateTable('webhook').set({ is_actived: false }).execute()
    expect(await t.claim()).toEqual([])
    expect(await t.ledger.readHeads()).toEqual(new Map([[webhook, { visitAt: t.later(0), isHeld: true }]]))
    expect(await findNextDueAt(t.db)).toBeNull()
    await t.db.updateTable('webhook').set({ is_actived: true }).execute()
    expect(await findNextDueAt(t.db)).toEqual(t.later(0))
    expect((await t.claim()).map((claim) => claim.id)).toEqual([id])
  })

  test('are passed over when another claim visits them, and none of their rows is lost', async () => {
    await using t = await openLedger()
    const [visited, free] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    for (const webhook of [visited, free]) await t.ledger.addDispatches(webhook)
    await inTransaction(t.db, async (other) => {
      await sql`select from webhook_queue where webhook = ${visited} for update`.execute(other)
      expect((await t.claim()).map((claim) => claim.webhook.id)).toEqual([free])
    })
    expect((await t.claim()).map((claim) => claim.webhook.id)).toEqual([visited])
  })
})

describe('claims of several workers at once', () => {
  /** A claim of another worker that has visited the queue and not committed. */
  async function visit(t: Awaited<ReturnType<typeof openLedger>>, webhook: WebhookId) {
    const other = await t.database.pool.connect()
    await other.query('begin')
    await other.query('select pg_advisory_xact_lock_shared(7320115)')
    await other.query('select from webhook_queue where webhook = $1 for update', [webhook])
    return async () => {
      await other.query('commit')
      other.release()
    }
  }

  test('visit webhooks of their own, and do not wait for each other', async () => {
    await using t = await openLedger()
    const [visited, free] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    for (const webhook of [visited, free]) await t.ledger.addDispatches(webhook, { dueAt: t.later(0) })
    const commit = await visit(t, visited)
    expect((await t.claim()).map(({ webhook }) => webhook.id)).toEqual([free])
    await commit()
    expect((await t.claim()).map(({ webhook }) => webhook.id)).toEqual([visited])
  })

  test('wait for each other where one has visited all that is due, and leave nothing of it to the next poll', async () => {
    await using t = await openLedger()
    const webhook = await t.ledger.addWebhook()
    await t.ledger.addDispatches(webhook, { dueAt: t.later(0) })
    const commit = await visit(t, webhook)
    const claimed = t.claim()
    await untilWaiting(t.db, 1)
    await commit()
    expect(await claimed).toHaveLength(1)
  })

  test('wait for the one that is alone with the queue', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook(), { dueAt: t.later(0) })
    const alone = (tx: Database) => sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.webhookClaims.key})`.execute(tx)
    expect(await whileHeld(t.db, alone, () => t.claim())).toHaveLength(1)
  })
})
