import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { openRouting } from '../../../test/harness/delivery/routing-database.ts'
import type { WebhookId } from '../../base/id.ts'
import { recordEvents } from '../../event/occurrence/event.ts'
import { deleteOrphanedDispatches } from '../ledger/removal.store.ts'
import { readTotals } from './delivery-count.store.ts'

describe('routing rules', () => {
  test('gives an account event to its account and to global webhooks, and to no other account', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    const [mine, other] = [await t.ledger.addAccount(), await t.ledger.addAccount()]
    const events = ['contract.create']
    const own = await t.ledger.addWebhook({ account: mine, events })
    const global = await t.ledger.addWebhook({ events })
    await t.ledger.addWebhook({ account: other, events })
    await t.ledger.addEventType('contract.update')
    await t.ledger.addWebhook({ account: mine, events: ['contract.update'] })
    await t.ledger.addWebhook({ account: mine })
    const [event] = await t.ledger.recordMany('contract.create', { account: mine })
    expect((await t.routeAll()).get(event!.id)?.sort()).toEqual([own, global].sort())
  })

  test('gives what has no owner to global webhooks only, although an account webhook subscribes', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('health.find-all', 'none')
    const account = await t.ledger.addAccount()
    await t.ledger.addWebhook({ account, events: ['health.find-all'] })
    const global = await t.ledger.addWebhook({ events: ['health.find-all'] })
    const [event] = await t.ledger.recordMany('health.find-all', { account, scope: 'none' })
    expect((await t.routeAll()).get(event!.id)).toEqual([global])
  })

  test('gives an event whose type has lost its account scope to global webhooks only', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    const account = await t.ledger.addAccount()
    await t.ledger.addWebhook({ account, events: ['contract.create'] })
    const global = await t.ledger.addWebhook({ events: ['contract.create'] })
    const [event] = await t.ledger.recordMany('contract.create', { account })
    await t.db.updateTable('event').set({ account_scope: 'none' }).where('internal', '=', 'contract.create').execute()
    expect((await t.routeAll()).get(event!.id)).toEqual([global])
  })

  test('gives a purge to global webhooks only, and without its account', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('webhook.purge')
    const account = await t.ledger.addAccount()
    await t.ledger.addWebhook({ account, events: ['webhook.purge'] })
    const global = await t.ledger.addWebhook({ events: ['webhook.purge'] })
    const [event] = await t.ledger.recordMany('webhook.purge', { account })
    expect(event).toMatchObject({ isPurge: true, account: null })
    expect((await t.routeAll()).get(event!.id)).toEqual([global])
    expect(await t.db.selectFrom('webhook_dispatch').select('account').execute()).toEqual([{ account: null }])
  })

  test('writes no row for inactive, deleted and unsubscribed webhooks, nor for a deactivated event type', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    await t.ledger.addEventType('contract.update', 'account', false)
    const events = ['contract.create', 'contract.update']
    await t.ledger.addWebhook({ events, isActived: false })
    await t.ledger.addWebhook({ events, isDeleted: true })
    const account = await t.ledger.addAccount()
    const unsubscribed = [await t.ledger.addWebhook({ events }), await t.ledger.addWebhook({ account, events })]
    await t.db
      .updateTable('webhook_event')
      .set({ deleted_at: t.ledger.now() })
      .where('webhook', 'in', unsubscribed)
      .execute()
    const subscribed = await t.ledger.addWebhook({ events })
    const [created] = await t.ledger.recordMany('contract.create', { account })
    await t.ledger.recordMany('contract.update')
    await t.ledger.recordMany('nothing.known')
    expect(await t.routeAll()).toEqual(new Map([[created!.id, [subscribed]]]))
  })

  test('gives nothing later to a webhook that was inactive when its event was routed', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    await t.ledger.addWebhook({ events: ['contract.create'], isActived: false })
    await t.ledger.recordMany('contract.create')
    await t.routeAll()
    await t.db.updateTable('webhook').set({ is_actived: true }).execute()
    expect(await t.routeAll()).toEqual(new Map())
  })

  test('gives nothing from before its creation to a webhook, and everything from the same millisecond on', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    const [before] = await t.ledger.recordMany('contract.create')
    t.clock.advance(1)
    const webhook = await t.ledger.addWebhook({ events: ['contract.create'] })
    const [same] = await t.ledger.recordMany('contract.create')
    const targets = await t.routeAll()
    expect(targets.get(before!.id)).toBeUndefined()
    expect(targets.get(same!.id)).toEqual([webhook])
  })

  test('compares the times of events that have no number, to the millisecond', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    await t.ledger.recordMany('contract.create')
    t.clock.advance(1)
    const [same] = await t.ledger.recordMany('contract.create')
    const webhook = await t.ledger.addWebhook({ events: ['contract.create'] })
    await t.db.updateTable('event_occurrence').set({ ordinal: null }).execute()
    expect(await t.routeAll()).toEqual(new Map([[same!.id, [webhook]]]))
  })

  test('never gives an event to the webhook that it is about', async () => {
    await using t = await openRouting()
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

  test('writes rows that are pending, due at once, of the account of the event, and counts them', async () => {
    await using t = await openRouting()
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
  test('are as many as there are slots, a first row of each webhook before any second one', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    const webhooks = [
      await t.ledger.addWebhook({ events: ['contract.create'] }),
      await t.ledger.addWebhook({ events: ['contract.create'] }),
      await t.ledger.addWebhook({ events: ['contract.create'] }),
    ]
    await t.ledger.recordMany('contract.create', { count: 3 })
    const claimed = await t.route({ fastSlots: 4 })
    expect(claimed).toHaveLength(4)
    expect(new Set(claimed.map((claim) => claim.group))).toEqual(new Set(webhooks))
    const rows = await t.db.selectFrom('webhook_dispatch_open').selectAll().execute()
    expect(rows).toHaveLength(9)
    const mine = rows.filter((row) => row.lease_owner === 'worker-a')
    expect(mine.map((row) => row.document_id).sort()).toEqual(claimed.map((claim) => claim.id).sort())
    for (const row of mine)
      expect(row).toMatchObject({
        status: 'pending',
        attempts: 1,
        fence: 1,
        next_attempt_at: null,
        last_attempt_at: t.ledger.now(),
      })
    for (const row of rows.filter((row) => row.lease_owner === null))
      expect(row).toMatchObject({ attempts: 0, fence: 0, next_attempt_at: t.ledger.now(), last_attempt_at: null })
    expect(await readTotals(t.db)).toEqual(new Map([['pending', 9]]))
  })

  test('carry what an attempt needs, as a claim of the same row does', async () => {
    await using t = await openRouting()
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
      keepsSchedule: false,
      isLimited: false,
      createdAt: t.ledger.now(),
      webhook: {
        id: webhook,
        url: 'https://subscriber.example.com/hook',
        secretEncrypted: 'box',
        headersEncrypted: null,
        signingKeyEncrypted: null,
      },
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

  test('never exceed the cap of a webhook, with what this worker and the others have in flight', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    const [own, others, idle] = [
      await t.ledger.addWebhook({ events: ['contract.create'] }),
      await t.ledger.addWebhook({ events: ['contract.create'] }),
      await t.ledger.addWebhook({ events: ['contract.create'] }),
    ]
    await t.ledger.addDispatches(others, { count: 2, leaseUntil: t.ledger.now() })
    await t.ledger.recordMany('contract.create', { count: 10 })
    const claimed = await t.route({ fastSlots: 100, perGroup: 3, inFlight: new Map([[own, 1]]) })
    const count = (webhook: WebhookId) => claimed.filter((claim) => claim.group === webhook).length
    expect([count(own), count(others), count(idle)]).toEqual([2, 1, 3])
  })

  test('are none of a slow webhook: its rows wait for the slow slots', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    const slow = await t.ledger.addWebhook({ events: ['contract.create'] })
    const prompt = await t.ledger.addWebhook({ events: ['contract.create'] })
    await t.ledger.recordMany('contract.create', { count: 2 })
    const claimed = await t.route({ fastSlots: 10, slowSlots: 5, slowGroups: [slow] })
    expect(claimed.map((claim) => claim.group)).toEqual([prompt, prompt])
    expect([...(await t.ledger.readHeads()).keys()]).toEqual([slow])
  })

  test('are none of a late webhook, though slots are free, and all of the others', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    const late = await t.ledger.addWebhook({ events: ['contract.create'] })
    const prompt = await t.ledger.addWebhook({ events: ['contract.create'] })
    await t.ledger.recordMany('contract.create', { count: 2 })
    const claimed = await t.route({ fastSlots: 10, lateGroups: [late] })
    expect(claimed.map((claim) => claim.group)).toEqual([prompt, prompt])
    expect([...(await t.ledger.readHeads()).keys()]).toEqual([late])
  })

  test('need no head in the queue; the webhooks of rows that wait have one', async () => {
    await using t = await openRouting()
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

describe('rows of a webhook that pulls', () => {
  test('wait outside of the queue with their expiry, are never claimed, and make nothing due', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    const pulling = await t.ledger.addWebhook({ events: ['contract.create'], mode: 'pull' })
    await t.ledger.recordMany('contract.create')
    const routed = await t.routeRows({ fastSlots: 5 })
    expect(routed).toMatchObject({ work: [], opened: 1, nextDueAt: null })
    expect(await t.ledger.readHeads()).toEqual(new Map())
    const keptUntil = new Date(t.clock.now() + 7 * 86_400_000)
    const rows = () => t.db.selectFrom('webhook_dispatch_open').select(['webhook', 'kept_until']).execute()
    expect(await rows()).toEqual([{ webhook: pulling, kept_until: keptUntil }])
    await t.ledger.addWebhook({ events: ['contract.create'] })
    await t.ledger.recordMany('contract.create')
    expect(await t.routeRows({ fastSlots: 5 })).toMatchObject({ work: [expect.anything()], opened: 2, nextDueAt: null })
    const pushed = (await rows()).filter(({ webhook }) => webhook !== pulling)
    expect(pushed.map(({ kept_until: until }) => until)).toEqual([null])
  })
})

describe('when the next row is due, behind the rows that a worker claims', () => {
  test('is now while a row was written that it does not claim, and never where it claims them all', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    await t.ledger.addWebhook({ events: ['contract.create'] })
    expect((await t.routeRows({ fastSlots: 1 })).nextDueAt).toBeNull()
    await t.ledger.recordMany('contract.create')
    expect((await t.routeRows({ fastSlots: 1 })).nextDueAt).toBeNull()
    await t.ledger.recordMany('contract.create')
    expect((await t.routeRows({ fastSlots: 0 })).nextDueAt).toEqual(t.ledger.now())
  })

  test('is the earlier one of a row that waited before and of those that were written', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    const waiting = await t.ledger.addWebhook()
    const later = new Date(t.clock.now() + 5)
    await t.ledger.addDispatches(waiting, { dueAt: later })
    expect((await t.routeRows()).nextDueAt).toEqual(later)
    await t.ledger.addWebhook({ events: ['contract.create'] })
    await t.ledger.recordMany('contract.create')
    expect((await t.routeRows()).nextDueAt).toEqual(t.ledger.now())
  })

  test('is not that of a webhook that rests', async () => {
    await using t = await openRouting()
    const [resting, live] = [await t.ledger.addWebhook({ isActived: false }), await t.ledger.addWebhook()]
    const [soon, later] = [new Date(t.clock.now() + 5), new Date(t.clock.now() + 9)]
    await t.ledger.addDispatches(resting, { dueAt: soon })
    expect((await t.routeRows()).nextDueAt).toBeNull()
    await t.ledger.addDispatches(live, { dueAt: later })
    expect((await t.routeRows()).nextDueAt).toEqual(later)
  })

  test('is not that of a webhook without room, neither of rows that waited nor of those that were written', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    const [waited, late] = [await t.ledger.addWebhook(), await t.ledger.addWebhook({ events: ['contract.create'] })]
    await t.ledger.addDispatches(waited)
    await t.ledger.recordMany('contract.create')
    const blocked = { fastSlots: 10, lateGroups: [waited, late] }
    expect((await t.routeRows(blocked)).nextDueAt).toBeNull()
    expect((await t.ledger.readHeads()).size).toBe(2)
  })
})

describe('the ids of rows', () => {
  test('are of the event and the webhook, so that an event is never routed to a webhook twice', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    await t.ledger.addWebhook({ events: ['contract.create'] })
    await t.ledger.addWebhook({ events: ['contract.create'] })
    const [event] = await t.ledger.recordMany('contract.create')
    await t.route()
    const ids = (await t.db.selectFrom('webhook_dispatch').select('document_id').execute()).map(
      (item) => item.document_id,
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
  test('leaves a webhook that is purged meanwhile without rows, and fails nobody', async () => {
    await using t = await openRouting()
    await t.ledger.addEventType('contract.create')
    const webhooks: WebhookId[] = []
    for (let index = 0; index < 10; index += 1)
      webhooks.push(await t.ledger.addWebhook({ events: ['contract.create'] }))
    await t.ledger.recordMany('contract.create', { count: 400 })
    const purges = webhooks.slice(0, 5).map((id) => t.db.deleteFrom('webhook').where('document_id', '=', id).execute())
    await Promise.all([t.route({ workerId: 'a' }), ...purges, t.route({ workerId: 'b' })])
    await t.routeAll()
    // Rows written for a webhook right before its removal are removed by the maintenance.
    await deleteOrphanedDispatches(t.db, new Date(t.clock.now() + 1), 100_000)
    const rows = await t.ledger.listRouted()
    expect(new Set(rows.map((row) => row.webhook))).toEqual(new Set(webhooks.slice(5)))
    expect(rows).toHaveLength(5 * 400)
  })

  test('leaves no row behind that was written after its purge', async () => {
    await using t = await openRouting()
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
