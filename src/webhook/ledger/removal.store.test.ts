import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { DispatchId, WebhookId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import {
  cancelWaitingDispatches,
  deleteDispatchesOf,
  deleteOldDispatches,
  deleteOwnDispatches,
  lockWebhookWithLedger,
} from './removal.store.ts'

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

test('rows that ended are deleted before an instant, the oldest first, and those of some accounts before their own', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const ledger = buildLedger(db, clock)
  const [first, second, other] = [await ledger.addAccount(), await ledger.addAccount(), await ledger.addAccount()]
  const at = (ms: number) => new Date(clock.now() + ms)
  const names = new Map<string, string>()
  for (const [name, account] of Object.entries({ first, second, other })) {
    const webhook = await ledger.addWebhook({ account })
    for (const ms of [-2, -1, 0, 1]) {
      const row = { status: 'exhausted', attempts: 2, createdAt: at(ms) } as const
      const [id] = (await ledger.addDispatches(webhook, row)) as [DispatchId]
      names.set(id, `${name} ${ms}`)
      await database.pool.query('update webhook_dispatch_ended set account = $2 where document_id = $1', [id, account])
      await database.pool.query(
        `insert into webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms)
         values ($1, 1, 'schedule', 'worker-a', now(), 1)`,
        [id],
      )
    }
  }
  const left = async () => {
    const rows = await db.selectFrom('webhook_dispatch_ended').select('document_id').execute()
    const { rows: attempts } = await database.pool.query('select count(*)::int n from webhook_attempt')
    expect(attempts).toEqual([{ n: rows.length }])
    return rows.map((row) => names.get(row.document_id)).sort()
  }
  const all = await left()
  const without = (...gone: string[]) => all.filter((name) => !gone.includes(name!))

  const own = [
    { account: first, before: at(0) },
    { account: second, before: at(-1) },
  ]
  expect(await deleteOwnDispatches(db, own, 1)).toEqual({ dispatches: 1, attempts: 1 })
  expect(await deleteOwnDispatches(db, own, 10)).toEqual({ dispatches: 2, attempts: 2 })
  expect(await deleteOwnDispatches(db, own, 10)).toEqual({ dispatches: 0, attempts: 0 })
  const gone = ['first -2', 'first -1', 'second -2']
  expect(await left()).toEqual(without(...gone))

  expect(await deleteOldDispatches(db, at(0), 1)).toEqual({ dispatches: 1, attempts: 1 })
  expect(await left()).toEqual(without(...gone, 'other -2'))
  expect(await deleteOldDispatches(db, at(0), 10)).toEqual({ dispatches: 2, attempts: 2 })
  expect(await left()).toEqual(without(...gone, 'other -2', 'other -1', 'second -1'))
})

test('rows that another transaction has are left to the next deletion', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const ledger = buildLedger(db, clock)
  const account = await ledger.addAccount()
  const ended = { status: 'exhausted', attempts: 1, count: 2 } as const
  const [held] = await ledger.addDispatches(await ledger.addWebhook({ account }), ended)
  await database.pool.query('update webhook_dispatch_ended set account = $1', [account])
  const before = new Date(clock.now() + 1)
  for (const remove of [
    () => deleteOwnDispatches(db, [{ account, before }], 10),
    () => deleteOldDispatches(db, before, 10),
  ])
    await inTransaction(db, async (tx) => {
      await tx
        .selectFrom('webhook_dispatch_ended')
        .select('document_id')
        .where('document_id', '=', String(held))
        .forUpdate()
        .execute()
      expect((await remove()).dispatches).toBeLessThan(2)
      const rows = await db.selectFrom('webhook_dispatch_ended').select('document_id').execute()
      expect(rows.map((row) => row.document_id)).toEqual([held])
    })
})
