import fc from 'fast-check'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database.ts'
import { buildLedger } from '../../../test/harness/ledger.ts'
import { buildManualClock } from '../../../test/harness/manual-clock.ts'
import type { ClaimRequest } from '../../delivery/policy.ts'
import { routeBatch, routeFanOut } from '../../delivery/routing.store.ts'
import { recordEvents } from '../../event/event.ts'
import type { AccountId, EventId, WebhookId } from '../../id.ts'
import { deleteOrphanedDispatches } from '../ledger/removal.store.ts'
import { type ClaimedDispatch, readClaimedDispatch } from './claimed-work.ts'
import { readTotals } from './delivery-count.store.ts'
import { buildWebhookFanOut, buildWebhookRouting } from './routing.store.ts'
import { decideRouting, type RoutedEvent, type RoutedWebhook } from './routing.ts'

const FIRST = '00000000-0000-0000-0000-000000000000'

async function openRouter() {
  const database = await createTestDatabase({ poolSize: 8 })
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  /** Routes up to 1,000 events, and returns what this worker claimed of their rows: none without slots. */
  const route = async (change: Partial<ClaimRequest> = {}, rowsOfEvent?: number): Promise<ClaimedDispatch[]> => {
    const request = buildRequest(change)
    const input = { after: FIRST, limit: 1_000, now: ledger.now() }
    const part = buildWebhookRouting(request, rowsOfEvent)
    const { byPolicy } = await routeBatch(database.db, input, [{ name: 'webhook', part }])
    return byPolicy[0]!.work.map(readClaimedDispatch)
  }
  /** Writes the parts of events that were set aside, each of `limit` rows; returns how many rows those were. */
  const routeParts = async (limit: number): Promise<number> => {
    const writePart = () =>
      routeFanOut(database.db, {
        name: 'webhook',
        written: buildWebhookFanOut(buildRequest(), limit),
        now: ledger.now(),
      })
    let rows = 0
    for (let part = await writePart(); part; part = await writePart()) rows += part.opened
    return rows
  }
  const buildRequest = (change: Partial<ClaimRequest> = {}): ClaimRequest => ({
    workerId: 'worker-a',
    now: ledger.now(),
    fastSlots: 0,
    slowSlots: 0,
    slowGroups: [],
    inFlight: new Map(),
    perGroup: 100,
    hasPeers: true,
    ...change,
  })
  /** Routes all that waits, and tells to which webhooks each event went. */
  const routeAll = async () => {
    await route()
    const targets = new Map<EventId, WebhookId[]>()
    for (const row of await ledger.listRouted())
      targets.set(row.event_id, [...(targets.get(row.event_id) ?? []), row.webhook])
    return targets
  }
  return {
    database,
    db: database.db,
    clock,
    ledger,
    route,
    routeParts,
    routeAll,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

describe('routing rules', () => {
  it('gives an account event to its account and to global webhooks, and to no other account', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    const [mine, other] = [await t.ledger.addAccount(), await t.ledger.addAccount()]
    const events = ['contract.create']
    const own = await t.ledger.addWebhook({ account: mine, events })
    const global = await t.ledger.addWebhook({ events })
    await t.ledger.addWebhook({ account: other, events })
    await t.ledger.addWebhook({ account: mine })
    const [event] = await t.ledger.recordMany('contract.create', { account: mine })
    expect((await t.routeAll()).get(event!.id)?.sort()).toEqual([own, global].sort())
  })

  it('gives what has no owner to global webhooks only, although an account webhook subscribes', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('health.find-all', 'none')
    const account = await t.ledger.addAccount()
    await t.ledger.addWebhook({ account, events: ['health.find-all'] })
    const global = await t.ledger.addWebhook({ events: ['health.find-all'] })
    const [event] = await t.ledger.recordMany('health.find-all', { account, scope: 'none' })
    expect((await t.routeAll()).get(event!.id)).toEqual([global])
  })

  it('gives a purge to global webhooks only, and without its account', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('webhook.purge')
    const account = await t.ledger.addAccount()
    await t.ledger.addWebhook({ account, events: ['webhook.purge'] })
    const global = await t.ledger.addWebhook({ events: ['webhook.purge'] })
    const [event] = await t.ledger.recordMany('webhook.purge', { account })
    expect(event).toMatchObject({ isPurge: true, account: null })
    expect((await t.routeAll()).get(event!.id)).toEqual([global])
    expect(await t.db.selectFrom('webhook_dispatch').select('account').execute()).toEqual([{ account: null }])
  })

  it('writes no row for inactive, deleted and unsubscribed webhooks, nor for a deactivated event type', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    await t.ledger.addEventType('contract.update', 'account', false)
    const events = ['contract.create', 'contract.update']
    await t.ledger.addWebhook({ events, isActived: false })
    await t.ledger.addWebhook({ events, isDeleted: true })
    const unsubscribed = await t.ledger.addWebhook({ events })
    await t.db
      .updateTable('webhook_event')
      .set({ deleted_at: t.ledger.now() })
      .where('webhook', '=', unsubscribed)
      .execute()
    const subscribed = await t.ledger.addWebhook({ events })
    const [created] = await t.ledger.recordMany('contract.create')
    await t.ledger.recordMany('contract.update')
    await t.ledger.recordMany('nothing.known')
    expect(await t.routeAll()).toEqual(new Map([[created!.id, [subscribed]]]))
  })

  it('gives nothing later to a webhook that was inactive when its event was routed', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    await t.ledger.addWebhook({ events: ['contract.create'], isActived: false })
    await t.ledger.recordMany('contract.create')
    await t.routeAll()
    await t.db.updateTable('webhook').set({ is_actived: true }).execute()
    expect(await t.routeAll()).toEqual(new Map())
  })

  it('gives nothing from before its creation to a webhook, and everything from the same millisecond on', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    const [before] = await t.ledger.recordMany('contract.create')
    t.clock.advance(1)
    const webhook = await t.ledger.addWebhook({ events: ['contract.create'] })
    const [same] = await t.ledger.recordMany('contract.create')
    const targets = await t.routeAll()
    expect(targets.get(before!.id)).toBeUndefined()
    expect(targets.get(same!.id)).toEqual([webhook])
  })

  it('never gives an event to the webhook that it is about', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('webhook.failing', 'none')
    const [about, other] = [
      await t.ledger.addWebhook({ events: ['webhook.failing'] }),
      await t.ledger.addWebhook({ events: ['webhook.failing'] }),
    ]
    const draft = {
      type: 'webhook.failing',
      accountScope: 'none',
      account: null,
      resource: 'webhook',
      action: 'failing',
    } as const
    const rest = { resourceId: about, url: null, excludedWebhook: about }
    const [event] = await recordEvents(t.ledger.deps, t.db, [{ ...draft, ...rest }], t.ledger.now())
    expect((await t.routeAll()).get(event!.id)).toEqual([other])
  })

  it('writes rows that are pending, due at once, of the account of the event, and counts them', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    const account = await t.ledger.addAccount()
    const webhook = await t.ledger.addWebhook({ account, events: ['contract.create'] })
    const [event] = await t.ledger.recordMany('contract.create', { account })
    t.clock.advance(5)
    await t.routeAll()
    const [row] = await t.db.selectFrom('webhook_dispatch').selectAll().execute()
    expect(row).toMatchObject({
      webhook,
      event_id: event!.id,
      event: 'contract.create',
      account,
      status: 'pending',
      attempts: 0,
      next_attempt_at: t.ledger.now(),
      created_at: t.ledger.now(),
      is_test: false,
    })
    expect(await readTotals(t.db)).toEqual(new Map([['pending', 1]]))
  })
})

describe('rows that are claimed as they are written', () => {
  it('are as many as there are slots, a first row of each webhook before any second one', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    const webhooks = [
      await t.ledger.addWebhook({ events: ['contract.create'] }),
      await t.ledger.addWebhook({ events: ['contract.create'] }),
      await t.ledger.addWebhook({ events: ['contract.create'] }),
    ]
    await t.ledger.recordMany('contract.create', { count: 3 })
    const claimed = await t.route({ fastSlots: 4 })
    expect(claimed).toHaveLength(4)
    expect(new Set(claimed.map((one) => one.group))).toEqual(new Set(webhooks))
    const rows = await t.db.selectFrom('webhook_dispatch_open').selectAll().execute()
    expect(rows).toHaveLength(9)
    const mine = rows.filter((row) => row.lease_owner === 'worker-a')
    expect(mine.map((row) => row.document_id).sort()).toEqual(claimed.map((one) => one.id).sort())
    for (const row of mine)
      expect(row).toMatchObject({
        status: 'pending',
        attempts: 1,
        fence: 1,
        next_attempt_at: null,
        last_attempt_at: t.ledger.now(),
      })
    for (const row of rows.filter((one) => one.lease_owner === null))
      expect(row).toMatchObject({ attempts: 0, fence: 0, next_attempt_at: t.ledger.now(), last_attempt_at: null })
    expect(await readTotals(t.db)).toEqual(new Map([['pending', 9]]))
  })

  it('carry what an attempt needs, as a claim of the same row does', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    const account = await t.ledger.addAccount()
    const webhook = await t.ledger.addWebhook({ account, secretEncrypted: 'box', events: ['contract.create'] })
    const [event] = await t.ledger.recordMany('contract.create', { account })
    t.clock.advance(5)
    const [claimed] = await t.route({ fastSlots: 1 })
    expect(claimed).toEqual({
      id: (await t.ledger.listRouted()).length === 1 ? claimed!.id : 'one row',
      fence: 1,
      group: webhook,
      attempt: 1,
      trigger: 'schedule',
      isTest: false,
      createdAt: t.ledger.now(),
      webhook: { id: webhook, url: 'https://subscriber.example.com/hook', secretEncrypted: 'box' },
      event: {
        id: event!.id,
        type: 'contract.create',
        createdAt: event!.createdAt,
        account,
        resource: 'contract',
        action: 'create',
        resourceId: null,
        url: null,
        trace: null,
      },
    })
    const row = await t.ledger.readDispatch(claimed!.id)
    expect(row).toMatchObject({ created_at: claimed!.createdAt, event_id: event!.id, webhook, account })
  })

  it('never exceed the cap of a webhook, with what this worker and the others have in flight', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    const [own, others, idle] = [
      await t.ledger.addWebhook({ events: ['contract.create'] }),
      await t.ledger.addWebhook({ events: ['contract.create'] }),
      await t.ledger.addWebhook({ events: ['contract.create'] }),
    ]
    await t.ledger.addDispatches(others, { count: 2, leaseUntil: t.ledger.now() })
    await t.ledger.recordMany('contract.create', { count: 10 })
    const claimed = await t.route({ fastSlots: 100, perGroup: 3, inFlight: new Map([[own, 1]]) })
    const count = (webhook: WebhookId) => claimed.filter((one) => one.group === webhook).length
    expect([count(own), count(others), count(idle)]).toEqual([2, 1, 3])
  })

  it('are none of a slow webhook: its rows wait for the slow slots', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    const slow = await t.ledger.addWebhook({ events: ['contract.create'] })
    const prompt = await t.ledger.addWebhook({ events: ['contract.create'] })
    await t.ledger.recordMany('contract.create', { count: 2 })
    const claimed = await t.route({ fastSlots: 10, slowSlots: 5, slowGroups: [slow] })
    expect(claimed.map((one) => one.group)).toEqual([prompt, prompt])
    expect([...(await t.ledger.readHeads()).keys()]).toEqual([slow])
  })

  it('need no head in the queue; the webhooks of rows that wait have one', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    const webhook = await t.ledger.addWebhook({ events: ['contract.create'] })
    await t.ledger.recordMany('contract.create')
    await t.route({ fastSlots: 1 })
    expect(await t.ledger.readHeads()).toEqual(new Map())
    await t.ledger.recordMany('contract.create')
    await t.route({ fastSlots: 0 })
    expect(await t.ledger.readHeads()).toEqual(new Map([[webhook, { visitAt: t.ledger.now(), isHeld: false }]]))
  })
})

describe('the ids of rows', () => {
  it('are of the event and the webhook, so that an event is never routed to a webhook twice', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    await t.ledger.addWebhook({ events: ['contract.create'] })
    await t.ledger.addWebhook({ events: ['contract.create'] })
    const [event] = await t.ledger.recordMany('contract.create')
    await t.route()
    const ids = (await t.db.selectFrom('webhook_dispatch').select('document_id').execute()).map(
      (one) => one.document_id,
    )
    expect(new Set(ids).size).toBe(2)
    for (const id of ids) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
      // In front the time of the event, so that ids of rows are in the order of their events.
      expect(id.slice(0, 13)).toBe(event!.id.slice(0, 13))
    }
    await sql`insert into event_queue values (${event!.id})`.execute(t.db)
    await expect(t.route()).rejects.toMatchObject({ code: '23505' })
  })
})

describe('a webhook that is purged while events are routed to it', () => {
  it('leaves a webhook that is purged meanwhile without rows, and fails nobody', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    const webhooks: WebhookId[] = []
    for (let index = 0; index < 10; index += 1)
      webhooks.push(await t.ledger.addWebhook({ events: ['contract.create'] }))
    await t.ledger.recordMany('contract.create', { count: 400 })
    const purges = webhooks.slice(0, 5).map((id) => t.db.deleteFrom('webhook').where('document_id', '=', id).execute())
    await Promise.all([t.route({ workerId: 'a' }), ...purges, t.route({ workerId: 'b' })])
    await t.routeAll()
    // What was written for a webhook right before it went is removed by the maintenance.
    await deleteOrphanedDispatches(t.db, new Date(t.clock.now() + 1), 100_000)
    const rows = await t.ledger.listRouted()
    expect(new Set(rows.map((row) => row.webhook))).toEqual(new Set(webhooks.slice(5)))
    expect(rows).toHaveLength(5 * 400)
  })

  it('leaves no row behind that was written after its purge', async () => {
    await using t = await openRouter()
    const [purged, kept] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    await t.ledger.addDispatches(purged, { count: 3 })
    await t.ledger.addDispatches(kept)
    await t.db.deleteFrom('webhook').where('document_id', '=', purged).execute()
    await deleteOrphanedDispatches(t.db, t.ledger.now(), 10)
    expect((await t.ledger.listRouted()).map((row) => row.webhook)).toEqual([kept])
    await deleteOrphanedDispatches(t.db, new Date(t.clock.now() + 1), 10)
    expect([...(await t.ledger.readHeads()).keys()]).toEqual([kept])
  })
})

/** What a run of the property writes: by these fields each event and webhook is made. */
const ACCOUNTS = fc.constantFrom<0 | 1 | null>(0, 1, null)
const SELDOM = fc.constantFrom(false, false, false, false, true)
const MOSTLY = SELDOM.map((one) => !one)
const SIDES = fc.record({
  isTypeActive: MOSTLY,
  scope: fc.constantFrom<'account' | 'none'>('account', 'account', 'none'),
  events: fc.array(fc.record({ account: ACCOUNTS, isPurge: SELDOM, excluded: fc.nat(12), ageMs: fc.nat(3) }), {
    minLength: 1,
    maxLength: 6,
  }),
  webhooks: fc.array(
    fc.record({
      account: ACCOUNTS,
      isGlobal: fc.boolean(),
      isActived: MOSTLY,
      isDeleted: SELDOM,
      ageMs: fc.nat(3),
      subscription: fc.constantFrom('living', 'living', 'living', 'living', 'deleted', 'of another type', 'none'),
    }),
    { minLength: 1, maxLength: 6 },
  ),
})

type Sides = typeof SIDES extends fc.Arbitrary<infer Value> ? Value : never

/** Writes the sides, and returns them as `decideRouting` takes them. */
async function writeSides(t: Awaited<ReturnType<typeof openRouter>>, accounts: readonly AccountId[], sides: Sides) {
  await sql`truncate webhook_dispatch_open, webhook_queue, webhook_fan_out, event_queue, event_occurrence, webhook_event,
    webhook, event cascade`.execute(t.db)
  await t.ledger.addEventType('contract.create', sides.scope, sides.isTypeActive)
  await t.ledger.addEventType('contract.update')
  const at = (ageMs: number) => new Date(t.clock.now() - ageMs)
  const accountOf = (place: 0 | 1 | null) => (place === null ? null : accounts[place]!)
  const webhooks: RoutedWebhook[] = []
  for (const side of sides.webhooks) {
    const id = t.ledger.ids.next<'webhook'>()
    const account = side.isGlobal ? accountOf(side.account) : accountOf(side.account ?? 0)
    const { isGlobal, isActived, subscription } = side
    const [createdAt, deletedAt] = [at(side.ageMs), side.isDeleted ? t.ledger.now() : null]
    await sql`insert into webhook (document_id, url, is_global, account, is_actived, created_at, updated_at, deleted_at)
      values (${id}, 'https://subscriber.example.com/', ${isGlobal}, ${account}, ${isActived}, ${createdAt}, ${createdAt},
        ${deletedAt})`.execute(t.db)
    if (subscription === 'of another type') await t.ledger.subscribe(id, 'contract.update')
    else if (subscription !== 'none') await t.ledger.subscribe(id, 'contract.create')
    if (subscription === 'deleted')
      await sql`update webhook_event set deleted_at = now() where webhook = ${id}`.execute(t.db)
    const isSubscribed = subscription === 'living' && sides.isTypeActive
    webhooks.push({ id, isGlobal, account, isActived, deletedAt, createdAt, isSubscribed })
  }
  const events: (RoutedEvent & { id: string })[] = []
  for (const side of sides.events) {
    const id = t.ledger.ids.next<'event'>()
    const [account, createdAt] = [accountOf(side.account), at(side.ageMs)]
    const { isPurge } = side
    const excludedWebhook = webhooks[side.excluded]?.id ?? null
    await sql`with recorded as (
        insert into event_occurrence (document_id, event, account, resource, action, is_purge, excluded_webhook, created_at)
        values (${id}, 'contract.create', ${account}, 'contract', 'create', ${isPurge}, ${excludedWebhook}, ${createdAt})
        returning document_id
      ) insert into event_queue select document_id from recorded`.execute(t.db)
    events.push({ id, accountScope: sides.scope, account, isPurge, excludedWebhook, createdAt })
  }
  return { events, webhooks }
}

describe('the statement and the rules', () => {
  it('route any event to the same webhooks, each webhook once', async () => {
    await using t = await openRouter()
    const accounts = [await t.ledger.addAccount(), await t.ledger.addAccount()]
    let delivered = 0
    const agree = fc.asyncProperty(SIDES, fc.nat(8), async (sides, fastSlots) => {
      const { events, webhooks } = await writeSides(t, accounts, sides)
      const claimed = await t.route({ fastSlots, perGroup: 2 })
      const wanted = events.flatMap((event) =>
        webhooks
          .filter((webhook) => decideRouting(event, webhook) === 'deliver')
          .map((webhook) => `${event.id} ${webhook.id}`),
      )
      const routed = (await t.ledger.listRouted()).map((row) => `${row.event_id} ${row.webhook}`)
      expect(routed.sort()).toEqual(wanted.sort())
      delivered += wanted.length
      const perWebhook = Map.groupBy(wanted, (pair) => pair.split(' ')[1]!)
      const room = [...perWebhook.values()].reduce((sum, pairs) => sum + Math.min(2, pairs.length), 0)
      expect(claimed).toHaveLength(Math.min(fastSlots, room))
    })
    await fc.assert(agree, { numRuns: 100 })
    // Samples of which nothing is delivered would agree about anything.
    expect(delivered).toBeGreaterThan(20)
  })

  it('agree about events that are routed in parts too, however large a part is', async () => {
    await using t = await openRouter()
    const accounts = [await t.ledger.addAccount(), await t.ledger.addAccount()]
    let inParts = 0
    const agree = fc.asyncProperty(SIDES, fc.nat(2), fc.integer({ min: 1, max: 4 }), async (sides, most, limit) => {
      const { events, webhooks } = await writeSides(t, accounts, sides)
      await t.route({}, most)
      inParts += await t.routeParts(limit)
      const wanted = events.flatMap((event) =>
        webhooks.filter((one) => decideRouting(event, one) === 'deliver').map((one) => `${event.id} ${one.id}`),
      )
      const routed = (await t.ledger.listRouted()).map((row) => `${row.event_id} ${row.webhook}`)
      expect(routed.sort()).toEqual(wanted.sort())
      const waiting = await t.db.selectFrom('event_occurrence').select('event').where('routed_at', 'is', null).execute()
      expect(waiting).toEqual([])
    })
    await fc.assert(agree, { numRuns: 100 })
    expect(inParts).toBeGreaterThan(10)
  })
})
