import fc from 'fast-check'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { openRouting } from '../../../test/harness/delivery/routing-database.ts'
import type { AccountId } from '../../base/id.ts'
import { decideRouting, type RoutedEvent, type RoutedWebhook } from './routing.ts'

/** Two resources, and none. */
const RESOURCE = fc.constantFrom('a', 'b', null)
/** Fields from which a run of the property makes each event and webhook. */
const ACCOUNTS = fc.constantFrom<0 | 1 | null>(0, 1, null)
const SELDOM = fc.constantFrom(false, false, false, false, true)
const MOSTLY = SELDOM.map((item) => !item)
const SIDES = fc.record({
  isTypeActive: MOSTLY,
  scope: fc.constantFrom<'account' | 'none'>('account', 'account', 'none'),
  events: fc.array(
    fc.record({
      account: ACCOUNTS,
      isPurge: SELDOM,
      excluded: fc.nat(12),
      resourceId: RESOURCE,
      ageMs: fc.nat(3),
      ordinal: fc.option(fc.nat(3)),
    }),
    {
      minLength: 1,
      maxLength: 6,
    },
  ),
  webhooks: fc.array(
    fc.record({
      account: ACCOUNTS,
      isGlobal: fc.boolean(),
      resourceIds: fc.constantFrom(null, null, ['a'], ['a', 'b'], ['c']),
      isActived: MOSTLY,
      isDeleted: SELDOM,
      ageMs: fc.nat(3),
      ordinal: fc.nat(3),
      subscription: fc.constantFrom('living', 'living', 'living', 'living', 'deleted', 'of another type', 'none'),
    }),
    { minLength: 1, maxLength: 6 },
  ),
})

type Sides = typeof SIDES extends fc.Arbitrary<infer Value> ? Value : never

/** Sides of which each event goes to each webhook: both properties see deliveries and parts whatever the run draws. */
const ALL_MATCH: Sides = {
  isTypeActive: true,
  scope: 'account',
  events: Array.from({ length: 3 }, () => ({
    account: 0,
    isPurge: false,
    excluded: 12,
    resourceId: 'a',
    ageMs: 0,
    ordinal: 3,
  })),
  webhooks: Array.from({ length: 4 }, () => ({
    account: 0,
    isGlobal: false,
    resourceIds: null,
    isActived: true,
    isDeleted: false,
    ageMs: 3,
    ordinal: 0,
    subscription: 'living',
  })),
}

/** Without triggers. To truncate would take more work than to write the few rows, and makes the server plan all anew. */
const EMPTY_SIDES = `set local session_replication_role = replica;
  delete from webhook_dispatch_open; delete from webhook_queue; delete from webhook_fan_out; delete from event_queue;
  delete from event_occurrence; delete from webhook_event; delete from webhook; delete from event`

/** Writes the sides, and returns them as `decideRouting` takes them. */
async function writeSides(t: Awaited<ReturnType<typeof openRouting>>, accounts: readonly AccountId[], sides: Sides) {
  await t.database.pool.query(EMPTY_SIDES)
  await t.ledger.addEventType('contract.create', sides.scope, sides.isTypeActive)
  await t.ledger.addEventType('contract.update')
  const at = (ageMs: number) => new Date(t.clock.now() - ageMs)
  const accountOf = (place: 0 | 1 | null) => (place === null ? null : accounts[place]!)
  const webhooks: RoutedWebhook[] = []
  for (const side of sides.webhooks) {
    const id = t.ledger.ids.next<'webhook'>()
    const account = side.isGlobal ? accountOf(side.account) : accountOf(side.account ?? 0)
    const { isGlobal, isActived, resourceIds, subscription, ordinal } = side
    const [createdAt, deletedAt] = [at(side.ageMs), side.isDeleted ? t.ledger.now() : null]
    await sql`insert into webhook (document_id, url, is_global, account, resource_ids, is_actived, ordinal, created_at,
        updated_at, deleted_at)
      values (${id}, 'https://subscriber.example.com/', ${isGlobal}, ${account}, ${resourceIds}, ${isActived}, ${ordinal},
        ${createdAt}, ${createdAt}, ${deletedAt})`.execute(t.db)
    if (subscription === 'of another type') await t.ledger.subscribe(id, 'contract.update')
    else if (subscription !== 'none') await t.ledger.subscribe(id, 'contract.create')
    if (subscription === 'deleted')
      await sql`update webhook_event set deleted_at = now() where webhook = ${id}`.execute(t.db)
    const isSubscribed = subscription === 'living' && sides.isTypeActive
    webhooks.push({ id, isGlobal, account, resourceIds, isActived, deletedAt, createdAt, ordinal, isSubscribed })
  }
  const events: (RoutedEvent & { id: string })[] = []
  for (const side of sides.events) {
    const id = t.ledger.ids.next<'event'>()
    const [account, createdAt] = [accountOf(side.account), at(side.ageMs)]
    const { isPurge, resourceId, ordinal } = side
    const excludedWebhook = webhooks[side.excluded]?.id ?? null
    await sql`with recorded as (
        insert into event_occurrence (document_id, event, account, resource, action, resource_id, is_purge, excluded_webhook,
          ordinal, created_at)
        values (${id}, 'contract.create', ${account}, 'contract', 'create', ${resourceId}, ${isPurge}, ${excludedWebhook},
          ${ordinal}, ${createdAt})
        returning document_id
      ) insert into event_queue select document_id from recorded`.execute(t.db)
    events.push({ id, accountScope: sides.scope, account, isPurge, excludedWebhook, resourceId, createdAt, ordinal })
  }
  return { events, webhooks }
}

describe('the statement and the rules', () => {
  test('route any event to the same webhooks, each webhook once', async () => {
    await using t = await openRouting()
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
    await fc.assert(agree, { numRuns: 50, examples: [[ALL_MATCH, 8]] })
    // Samples of which nothing is delivered would agree about anything.
    expect(delivered).toBeGreaterThanOrEqual(12)
  })

  test('agree about events that are routed in parts too, however large a part is', async () => {
    await using t = await openRouting()
    const accounts = [await t.ledger.addAccount(), await t.ledger.addAccount()]
    let inParts = 0
    const agree = fc.asyncProperty(SIDES, fc.nat(2), fc.integer({ min: 1, max: 4 }), async (sides, most, limit) => {
      const { events, webhooks } = await writeSides(t, accounts, sides)
      await t.route({}, most)
      inParts += await t.routeParts(limit)
      const wanted = events.flatMap((event) =>
        webhooks
          .filter((webhook) => decideRouting(event, webhook) === 'deliver')
          .map((webhook) => `${event.id} ${webhook.id}`),
      )
      const routed = (await t.ledger.listRouted()).map((row) => `${row.event_id} ${row.webhook}`)
      expect(routed.sort()).toEqual(wanted.sort())
      const waiting = await t.db.selectFrom('event_occurrence').select('event').where('routed_at', 'is', null).execute()
      expect(waiting).toEqual([])
    })
    await fc.assert(agree, { numRuns: 50, examples: [[ALL_MATCH, 2, 1]] })
    expect(inParts).toBeGreaterThanOrEqual(6)
  })
})
