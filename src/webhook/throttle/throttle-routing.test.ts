import { expect, test } from 'vitest'
import { openRouting } from '../../../test/harness/delivery/routing-database.ts'
import { claimDispatches } from '../delivery/claim.store.ts'

const SLOTS = { fastSlots: 100, slowSlots: 10 }

async function openLimited() {
  const t = await openRouting()
  await t.ledger.addEventType('contract.create')
  const events = ['contract.create']
  const limited = await t.ledger.addWebhook({ events, maxPerSecond: 2 })
  const readQueue = () => t.db.selectFrom('webhook_queue').selectAll().execute()
  const claim = () =>
    claimDispatches(t.db, {
      ...{ workerId: 'worker-a', now: t.ledger.now(), ...SLOTS, slowGroups: [], lateGroups: [] },
      ...{ inFlight: new Map(), perGroup: 100, hasPeers: false },
    })
  return { ...t, limited, readQueue, claim }
}

test('a row of a webhook with a limit is not claimed as it is routed, and no other row is left for it', async () => {
  await using t = await openLimited()
  const plain = await t.ledger.addWebhook({ events: ['contract.create'] })
  await t.ledger.recordMany('contract.create', { count: 5 })
  const { work, opened, nextDueAt } = await t.routeRows({ ...SLOTS, fastSlots: 5 })
  expect(opened).toBe(10)
  expect(work).toHaveLength(5)
  expect(nextDueAt).toEqual(t.ledger.now())
  expect(await t.readQueue()).toMatchObject([{ webhook: t.limited, visit_at: t.ledger.now(), free_at: null }])
  const rows = await t.db.selectFrom('webhook_dispatch_open').selectAll().where('webhook', '=', plain).execute()
  expect(rows.map((row) => row.lease_owner)).toEqual(Array.from({ length: 5 }, () => 'worker-a'))
})

test('nor is one of an event that is routed in parts', async () => {
  await using t = await openLimited()
  for (let count = 0; count < 4; count += 1) await t.ledger.addWebhook({ events: ['contract.create'] })
  await t.ledger.recordMany('contract.create')
  await t.routeRows(SLOTS, 2)
  expect(await t.routeParts(3)).toBe(5)
  const row = await t.db.selectFrom('webhook_dispatch_open').selectAll().where('webhook', '=', t.limited).execute()
  expect(row).toMatchObject([{ lease_owner: null, attempts: 0 }])
})

test('new events bring the visit of a webhook at its limit no nearer, and wake no dispatcher for it', async () => {
  await using t = await openLimited()
  await t.ledger.recordMany('contract.create', { count: 3 })
  await t.routeRows(SLOTS)
  expect(await t.claim()).toHaveLength(1)
  const freeAt = new Date(t.clock.now() + 400)
  expect(await t.readQueue()).toMatchObject([{ visit_at: freeAt, free_at: freeAt }])
  t.clock.advance(399)
  await t.ledger.recordMany('contract.create', { count: 3 })
  const { nextDueAt } = await t.routeRows(SLOTS)
  expect(nextDueAt).toEqual(freeAt)
  expect(await t.readQueue()).toMatchObject([{ visit_at: freeAt, free_at: freeAt }])
})

test('a webhook at its limit keeps no dispatcher from being woken for another one', async () => {
  await using t = await openLimited()
  await t.ledger.addEventType('contract.update')
  await t.ledger.addWebhook({ events: ['contract.update'], maxPerSecond: 2 })
  await t.ledger.recordMany('contract.create', { count: 3 })
  await t.routeRows(SLOTS)
  expect(await t.claim()).toHaveLength(1)
  t.clock.advance(100)
  await t.ledger.recordMany('contract.update')
  expect((await t.routeRows(SLOTS)).nextDueAt).toEqual(t.ledger.now())
})

test.each([
  ['waits for no turn', null, true],
  ['may be visited now', 0, true],
  ['may be visited in a millisecond', 1, false],
])(
  'new events of a webhook with a limit that %s and whose next row is due later wake a dispatcher: %s, %s',
  async (_name, freeInMs, isNow) => {
    await using t = await openLimited()
    const later = new Date(t.clock.now() + 10_000)
    await t.ledger.addDispatches(t.limited, { dueAt: later })
    const freeAt = freeInMs === null ? null : new Date(t.clock.now() + freeInMs)
    await t.db.updateTable('webhook_queue').set({ free_at: freeAt }).execute()
    await t.ledger.recordMany('contract.create')
    const { nextDueAt } = await t.routeRows(SLOTS)
    expect(nextDueAt !== null && nextDueAt <= t.ledger.now()).toBe(isNow)
  },
)

test('a limit that was reached before the clock of the database was set back delays new events for a second at most', async () => {
  await using t = await openLimited()
  await t.ledger.recordMany('contract.create', { count: 3 })
  await t.routeRows(SLOTS)
  await t.claim()
  t.clock.set(t.clock.now() - 3_600_000)
  await t.ledger.recordMany('contract.create')
  await t.routeRows(SLOTS)
  expect(await t.readQueue()).toMatchObject([{ visit_at: new Date(t.clock.now() + 1_000) }])
})
