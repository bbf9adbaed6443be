import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { DispatchId, WebhookId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { cancelWaitingDispatches, deleteDispatchesOf, lockWebhookWithLedger } from './removal.store.ts'

const clock = buildManualClock()

test('a webhook is locked for a purge with its ledger, beside others and also when it is deleted', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const ledger = buildLedger(db, clock)
  const [other, id, gone] = [
    await ledger.addWebhook(),
    await ledger.addWebhook(),
    await ledger.addWebhook({ isDeleted: true }),
  ]
  const [foreign] = await ledger.addDispatches(other)
  const [waiting] = await ledger.addDispatches(id, { count: 3 })
  const [ended] = await ledger.addDispatches(id, { status: 'exhausted', attempts: 9 })
  const lock = (webhook: string, limit = 10) => inTransaction(db, (tx) => lockWebhookWithLedger(tx, webhook, limit))
  expect(await lock(id)).toMatchObject({ webhook: { id }, locked: 4 })
  expect(await lock(id, 2)).toMatchObject({ locked: 3 })
  expect(await lock(gone)).toMatchObject({ webhook: { id: gone }, locked: 0 })
  expect(await lock(ledger.ids.next<'webhook'>() as WebhookId)).toBeUndefined()
  const hold = (tx: typeof db) => lockWebhookWithLedger(tx, id, 10)
  const touch = (table: 'webhook' | 'webhook_dispatch_open' | 'webhook_dispatch_ended', row: string | undefined) =>
    db.updateTable(table).set({ updated_at: ledger.now() }).where('document_id', '=', String(row)).execute()
  await whileHeld(db, hold, () => touch('webhook', id))
  await whileHeld(db, hold, () => touch('webhook_dispatch_open', waiting))
  await whileHeld(db, hold, () => touch('webhook_dispatch_ended', ended))
  await inTransaction(db, async (tx) => {
    await hold(tx)
    await touch('webhook', other)
    await touch('webhook_dispatch_open', foreign)
  })
})

test('what is claimed while the rows of a deleted webhook are cancelled stays with its attempt', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const ledger = buildLedger(db, clock)
  const webhook = await ledger.addWebhook()
  const [claimed, waiting] = (await ledger.addDispatches(webhook, { count: 2 })) as [DispatchId, DispatchId]
  const [other] = (await ledger.addDispatches(await ledger.addWebhook())) as [DispatchId]
  await whileHeld(
    db,
    (tx) =>
      tx
        .updateTable('webhook_dispatch_open')
        .set({ next_attempt_at: null, lease_owner: 'worker-a', fence: 1, attempts: 1 })
        .where('document_id', '=', claimed)
        .execute(),
    () => inTransaction(db, (tx) => cancelWaitingDispatches(tx, { webhook, workerId: 'worker-b', now: ledger.now() })),
  )
  const statuses = await Promise.all(
    [claimed, waiting, other].map(async (id) => (await ledger.readDispatch(id)).status),
  )
  expect(statuses).toEqual(['pending', 'cancelled', 'pending'])
})

test('rows of a webhook are deleted in batches, the open and the ended ones, and no others', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const ledger = buildLedger(db, clock)
  const [webhook, other] = [await ledger.addWebhook(), await ledger.addWebhook()]
  for (const id of [webhook, other]) {
    await ledger.addDispatches(id, { count: 3 })
    await ledger.addDispatches(id, { count: 2, status: 'exhausted', attempts: 5 })
  }
  const steps: number[] = []
  for (let step = 0; step < 3; step += 1) steps.push(await deleteDispatchesOf(db, webhook, 2))
  expect(steps).toEqual([4, 1, 0])
  const left = await db.selectFrom('webhook_dispatch').select('webhook').execute()
  expect(left.map((row) => row.webhook)).toEqual(Array(5).fill(other))
})
