import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId, WebhookId } from '../../base/id.ts'
import { routeBatch } from '../../delivery/routing/routing.store.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { findEvent, listSubscribedTypes } from './event.store.ts'
import { type EventDraft, recordEvents, recordRoutedEvent } from './event.ts'

async function open() {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  const draft = (change: Partial<EventDraft> = {}): EventDraft => ({
    type: 'contract.create',
    accountScope: 'account',
    account: null,
    resource: 'contract',
    action: 'create',
    resourceId: null,
    url: null,
    ...change,
  })
  const count = async () => (await database.db.selectFrom('event_occurrence').select('document_id').execute()).length
  return {
    database,
    db: database.db,
    clock,
    ledger,
    draft,
    count,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** A policy that passes on the ids of what is routed, and writes nothing. */
const IDS = {
  name: 'id',
  part: {
    matched: 'select document_id as id from routed',
    written: {
      name: 'ids',
      text: `id_opened as (select id from id_matched), id_work as (select to_json(id) as work from id_opened),
      id_next as (select null::timestamptz as due_at)`,
      values: [],
    },
  },
}

/** Takes up to `limit` events out of the queue, oldest first; their ids. */
async function takeEvents(db: Database, limit: number, now = new Date(0)): Promise<unknown[]> {
  const request = { after: '00000000-0000-0000-0000-000000000000', limit, now }
  const { byPolicy } = await routeBatch(db, request, [IDS])
  return [...(byPolicy[0]?.work ?? [])].sort()
}

const ACCOUNT = '0198a000-0000-7000-8000-000000000001' as AccountId
const WEBHOOK = '0198a000-0000-7000-8000-000000000002' as WebhookId

describe('recording events', () => {
  test('keeps every member, and gives the events back in the order of the drafts', async () => {
    await using t = await open()
    const full = t.draft({
      account: ACCOUNT,
      resourceId: 'r-1',
      url: '/api/v3/contract/contract/r-1',
      excludedWebhook: WEBHOOK,
    })
    const events = await recordEvents(t.ledger.deps, t.db, [full, t.draft({ resourceId: 'r-2' })], t.ledger.now())
    expect(events.map((event) => event.resourceId)).toEqual(['r-1', 'r-2'])
    expect(await findEvent(t.db, { id: events[0]!.id })).toMatchObject({
      id: events[0]!.id,
      type: 'contract.create',
      account: ACCOUNT,
      resource: 'contract',
      action: 'create',
      resourceId: 'r-1',
      url: '/api/v3/contract/contract/r-1',
      isPurge: false,
      excludedWebhook: WEBHOOK,
      createdAt: t.ledger.now(),
      routedAt: null,
    })
    expect(await findEvent(t.db, { id: events[1]!.id })).toMatchObject({
      account: null,
      url: null,
      excludedWebhook: null,
    })
  })

  test('never carries an account for what has no owner, nor for a purge', async () => {
    await using t = await open()
    const drafts = [t.draft({ account: ACCOUNT, accountScope: 'none' }), t.draft({ account: ACCOUNT, action: 'purge' })]
    const events = await recordEvents(t.ledger.deps, t.db, drafts, t.ledger.now())
    expect(events.map((event) => [event.account, event.isPurge])).toEqual([
      [null, false],
      [null, true],
    ])
  })

  test('is gone with the change when the transaction is rolled back', async () => {
    await using t = await open()
    const change = inTransaction(t.db, async (tx) => {
      await recordEvents(t.ledger.deps, tx, [t.draft()], t.ledger.now())
      throw new Error('the change failed')
    })
    await expect(change).rejects.toThrow('the change failed')
    expect(await t.count()).toBe(0)
  })

  test('records nothing while ENABLE_API_EVENT_QUEUE is false', async () => {
    await using t = await open()
    await t.ledger.addEventType('contract.create')
    await t.ledger.addWebhook({ events: ['contract.create'] })
    const off = { ...t.ledger.deps, enableApiEventQueue: false }
    expect(await recordEvents(off, t.db, [t.draft()], t.ledger.now())).toEqual([])
    expect(await t.count()).toBe(0)
  })

  test('takes the events of a bulk operation of 10,000 resources in one statement', async () => {
    // Found by reading: with a parameter for each value, 65,535 of them were passed at 5,958 events.
    await using t = await open()
    const drafts = Array.from({ length: 10_000 }, (_, index) => t.draft({ resourceId: `r-${index}` }))
    const events = await recordEvents(t.ledger.deps, t.db, drafts, t.ledger.now())
    expect(await t.count()).toBe(10_000)
    expect(await findEvent(t.db, { id: events[9_999]!.id })).toMatchObject({ resourceId: 'r-9999' })
  })

  test('leaves what its caller routes itself out of the queue of the router', async () => {
    await using t = await open()
    const event = await recordRoutedEvent(t.ledger.deps, t.db, t.draft({ type: 'webhook.test' }), t.ledger.now())
    expect(await findEvent(t.db, { id: event.id })).toMatchObject({ routedAt: t.ledger.now() })
    expect(await takeEvents(t.db, 10)).toEqual([])
  })
})

describe('the event types that have a subscriber', () => {
  test('are active, with an active, living webhook that subscribes to them', async () => {
    await using t = await open()
    for (const name of ['contract.find-all', 'contract.find-one', 'account.find-all', 'account.find-one'])
      await t.ledger.addEventType(name, 'none')
    await t.ledger.addEventType('role.find-all', 'none', false)
    const subscribed = await t.ledger.addWebhook({ events: ['contract.find-all', 'role.find-all'] })
    await t.ledger.addWebhook({ events: ['contract.find-one'], isActived: false })
    await t.ledger.addWebhook({ events: ['account.find-one'], isDeleted: true })
    expect(await listSubscribedTypes(t.db)).toEqual(['contract.find-all'])
    await t.db
      .updateTable('webhook_event')
      .set({ deleted_at: t.ledger.now() })
      .where('webhook', '=', subscribed)
      .execute()
    expect(await listSubscribedTypes(t.db)).toEqual([])
  })
})

describe('the queue of the router', () => {
  test('is taken oldest first, and gives no event to two takers', async () => {
    await using t = await open()
    const events = await recordEvents(
      t.ledger.deps,
      t.db,
      Array.from({ length: 6 }, () => t.draft()),
      t.ledger.now(),
    )
    const ids = events.map((event) => event.id)
    await inTransaction(t.db, async (tx) => {
      expect(await takeEvents(tx, 4)).toEqual(ids.slice(0, 4))
      await inTransaction(t.db, async (other) => expect(await takeEvents(other, 4)).toEqual(ids.slice(4)))
    })
    expect(await takeEvents(t.db, 4)).toEqual([])
  })

  test('holds what a taker gave back, and says when the rest was routed', async () => {
    await using t = await open()
    const drafts = [t.draft(), t.draft(), t.draft()]
    const ids = (await recordEvents(t.ledger.deps, t.db, drafts, t.ledger.now())).map((item) => item.id)
    const failing = inTransaction(t.db, async (tx) => {
      expect(await takeEvents(tx, 2)).toEqual(ids.slice(0, 2))
      throw new Error('the taker failed')
    })
    await expect(failing).rejects.toThrow('the taker failed')
    t.clock.advance(5)
    expect(await takeEvents(t.db, 2, t.ledger.now())).toEqual(ids.slice(0, 2))
    expect(await findEvent(t.db, { id: ids[1]! })).toMatchObject({ routedAt: t.ledger.now() })
    expect(await findEvent(t.db, { id: ids[2]! })).toMatchObject({ routedAt: null })
  })
})
