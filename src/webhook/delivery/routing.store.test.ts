import { describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database.ts'
import { buildLedger } from '../../../test/harness/ledger.ts'
import { buildManualClock } from '../../../test/harness/manual-clock.ts'
import { recordEvents } from '../../event/event.ts'
import type { EventId, WebhookId } from '../../id.ts'
import { inTransaction } from '../../postgres/database.ts'
import { ROUTER_BATCH_ROWS, ROUTER_BATCH_SIZE, routeEvents } from './router.ts'
import { readTotals } from './total.store.ts'

async function openRouter() {
  const database = await createTestDatabase({ poolSize: 8 })
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  const route = (workerId = 'worker-a') =>
    routeEvents({ ids: ledger.ids, workerId }, database.db, new Date(clock.now()))
  /** Routes until nothing waits, and tells to which webhooks each event went. */
  const routeAll = async () => {
    while ((await route()).hasMore);
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

  it('never goes back to a webhook that was inactive when its event was routed', async () => {
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

  it('never tells a webhook of itself what is about itself', async () => {
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

describe('routing a backlog', () => {
  it('routes each event exactly once when several routers take one backlog at the same time', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    const webhooks = [
      await t.ledger.addWebhook({ events: ['contract.create'] }),
      await t.ledger.addWebhook({ events: ['contract.create'] }),
    ]
    const events = await t.ledger.recordMany('contract.create', { count: ROUTER_BATCH_SIZE * 3 + 7 })
    const drain = async (workerId: string) => {
      let routed = 0
      for (let idle = 0; idle < 3; ) {
        const { events: count } = await t.route(workerId)
        routed += count
        idle = count === 0 ? idle + 1 : 0
      }
      return routed
    }
    const routed = await Promise.all(['a', 'b', 'c', 'd'].map(drain))
    expect(routed.reduce((sum, count) => sum + count, 0)).toBe(events.length)
    const rows = await t.ledger.listRouted()
    expect(rows).toHaveLength(events.length * webhooks.length)
    expect(new Set(rows.map((row) => `${row.webhook} ${row.event_id}`)).size).toBe(rows.length)
  })

  it('does not lose an event that commits after later ones were routed', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    await t.ledger.addWebhook({ events: ['contract.create'] })
    const draft = {
      type: 'contract.create',
      accountScope: 'account',
      account: null,
      resource: 'contract',
      action: 'create',
    } as const
    let late: EventId | undefined
    await inTransaction(t.db, async (open) => {
      const [first] = await recordEvents(
        t.ledger.deps,
        open,
        [{ ...draft, resourceId: null, url: null }],
        t.ledger.now(),
      )
      late = first!.id
      const [later] = await t.ledger.recordMany('contract.create')
      expect([...(await t.routeAll()).keys()]).toEqual([later!.id])
    })
    expect((await t.routeAll()).get(late!)).toHaveLength(1)
  })

  it('routes nothing of a transaction that was rolled back', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    await t.ledger.addWebhook({ events: ['contract.create'] })
    const draft = {
      type: 'contract.create',
      accountScope: 'account',
      account: null,
      resource: 'contract',
      action: 'create',
    } as const
    const change = inTransaction(t.db, async (tx) => {
      await recordEvents(t.ledger.deps, tx, [{ ...draft, resourceId: null, url: null }], t.ledger.now())
      throw new Error('refused')
    })
    await expect(change).rejects.toThrow('refused')
    expect(await t.routeAll()).toEqual(new Map())
  })

  it('ends a round after so many rows, and goes on with the events it left in the next one', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    for (let index = 0; index < 60; index += 1) await t.ledger.addWebhook({ events: ['contract.create'] })
    const events = await t.ledger.recordMany('contract.create', { count: 200 })
    const first = await t.route()
    const perRound = Math.ceil(ROUTER_BATCH_ROWS / 60)
    expect(first).toEqual({ events: perRound, dispatches: perRound * 60, hasMore: true })
    expect(await t.route()).toEqual({ events: 200 - perRound, dispatches: (200 - perRound) * 60, hasMore: false })
    expect(await t.ledger.listRouted()).toHaveLength(events.length * 60)
  })

  it('says at both edges of a full round whether more may wait', async () => {
    await using t = await openRouter()
    expect(await t.route()).toEqual({ events: 0, dispatches: 0, hasMore: false })
    await t.ledger.recordMany('contract.create', { count: ROUTER_BATCH_SIZE - 1 })
    expect(await t.route()).toMatchObject({ events: ROUTER_BATCH_SIZE - 1, hasMore: false })
    await t.ledger.recordMany('contract.create', { count: ROUTER_BATCH_SIZE })
    expect(await t.route()).toMatchObject({ events: ROUTER_BATCH_SIZE, hasMore: true })
  })

  it('leaves a webhook that is purged meanwhile without rows, and fails nobody', async () => {
    await using t = await openRouter()
    await t.ledger.addEventType('contract.create')
    const webhooks = []
    for (let index = 0; index < 10; index += 1)
      webhooks.push(await t.ledger.addWebhook({ events: ['contract.create'] }))
    await t.ledger.recordMany('contract.create', { count: 400 })
    const purges = webhooks.slice(0, 5).map((id) => t.db.deleteFrom('webhook').where('document_id', '=', id).execute())
    await Promise.all([t.route('a'), ...purges, t.route('b')])
    await t.routeAll()
    const rows = await t.ledger.listRouted()
    expect(new Set(rows.map((row) => row.webhook))).toEqual(new Set(webhooks.slice(5)))
    expect(rows).toHaveLength(5 * 400)
  })
})
