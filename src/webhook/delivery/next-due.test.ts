import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { Room } from '../../delivery/policy.ts'
import { findNextDueAt } from './claim.store.ts'

async function openLedger() {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  return {
    db: database.db,
    ledger: buildLedger(database.db, clock),
    later: (ms: number) => new Date(clock.now() + ms),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** A worker that has one attempt of this webhook in flight. */
const roomBeside = (webhook: string, perGroup = 1): Room => ({
  ...{ fastSlots: 1, slowSlots: 1, slowGroups: [], lateGroups: [], hasPeers: true },
  ...{ inFlight: new Map([[webhook, 1]]), perGroup },
})

describe('findNextDueAt', () => {
  test('is the earlier one of what waits in the queue and of the tests of inactive webhooks', async () => {
    await using t = await openLedger()
    const [active, inactive] = [await t.ledger.addWebhook(), await t.ledger.addWebhook({ isActived: false })]
    await t.ledger.addDispatches(active, { dueAt: t.later(5) })
    const [test] = await t.ledger.addDispatches(inactive, { isTest: true, trigger: 'test', dueAt: t.later(3) })
    expect(await findNextDueAt(t.db)).toEqual(t.later(3))
    await t.db
      .updateTable('webhook_dispatch_open')
      .set({ next_attempt_at: t.later(9) })
      .where('document_id', '=', test!)
      .execute()
    expect(await findNextDueAt(t.db)).toEqual(t.later(5))
  })

  test('tells when the next row is due that a claim would take', async () => {
    await using t = await openLedger()
    expect(await findNextDueAt(t.db)).toBeNull()
    const [active, other, inactive, deleted] = [
      await t.ledger.addWebhook(),
      await t.ledger.addWebhook(),
      await t.ledger.addWebhook({ isActived: false }),
      await t.ledger.addWebhook({ isDeleted: true }),
    ]
    await t.ledger.addDispatches(inactive, { dueAt: t.later(1) })
    await t.ledger.addDispatches(deleted, { dueAt: t.later(2), isTest: true })
    await t.ledger.addDispatches(active, { dueAt: t.later(3), leaseUntil: t.later(9) })
    await t.ledger.addDispatches(active, { status: 'success' })
    expect(await findNextDueAt(t.db)).toBeNull()
    await t.ledger.addDispatches(other, { dueAt: t.later(9) })
    await t.ledger.addDispatches(active, { dueAt: t.later(7) })
    expect(await findNextDueAt(t.db)).toEqual(t.later(7))
  })

  test('passes over webhooks whose cap this worker has reached', async () => {
    await using t = await openLedger()
    const [full, free] = [await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    await t.ledger.addDispatches(full, { dueAt: t.later(1) })
    await t.ledger.addDispatches(free, { dueAt: t.later(2) })
    expect(await findNextDueAt(t.db, roomBeside(full))).toEqual(t.later(2))
    expect(await findNextDueAt(t.db, roomBeside(full, 2))).toEqual(t.later(1))
  })

  test('is not that of the tests of active webhooks at their caps, or of deleted ones, beside an inactive one', async () => {
    await using t = await openLedger()
    const [active, deleted] = [
      await t.ledger.addWebhook(),
      await t.ledger.addWebhook({ isActived: false, isDeleted: true }),
    ]
    await t.ledger.addWebhook({ isActived: false })
    for (const webhook of [active, deleted])
      await t.ledger.addDispatches(webhook, { dueAt: t.later(1), isTest: true, trigger: 'test' })
    expect(await findNextDueAt(t.db, roomBeside(active))).toBeNull()
  })

  test('looks at the tests of inactive webhooks too', async () => {
    await using t = await openLedger()
    const inactive = await t.ledger.addWebhook({ isActived: false })
    await t.ledger.addDispatches(inactive, { dueAt: t.later(5), isTest: true })
    await t.ledger.addDispatches(inactive, { dueAt: t.later(8), isTest: true })
    expect(await findNextDueAt(t.db)).toEqual(t.later(5))
  })

  test('comes 200 ms later for a webhook of another worker, and not for one that rests or is at its cap', async () => {
    await using t = await openLedger()
    const [held, full, free] = [await t.ledger.addWebhook(), await t.ledger.addWebhook(), await t.ledger.addWebhook()]
    for (const [ms, webhook] of [held, full, free].entries())
      await t.ledger.addDispatches(webhook, { dueAt: t.later(ms + 1) })
    await t.db.updateTable('webhook_queue').set({ visitor: 'worker-b' }).execute()
    await t.db.updateTable('webhook_queue').set({ is_held: true }).where('webhook', '=', held).execute()
    const room = { ...roomBeside(full), workerId: 'worker-a' }
    expect(await findNextDueAt(t.db, room)).toEqual(t.later(203))
    expect(await findNextDueAt(t.db, { ...room, workerId: 'worker-b' })).toEqual(t.later(3))
  })

  test('is not that of the test of an inactive webhook that is pulled', async () => {
    await using t = await openLedger()
    await t.ledger.addDispatches(await t.ledger.addWebhook({ isActived: false }), { isTest: true })
    await t.db
      .updateTable('webhook_dispatch_open')
      .set({ kept_until: t.later(60_000) })
      .execute()
    expect(await findNextDueAt(t.db)).toBeNull()
  })
})
