import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { DispatchId, WebhookId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { leaseDue, listReady } from './pull.store.ts'

const clock = buildManualClock()
const later = (ms: number) => new Date(clock.now() + ms)

let webhook: WebhookId
let other: WebhookId
/** Rows of the webhook, the longest due first, and one that is not due yet. */
let due: DispatchId[]

const { db } = await openForFile(createTestDatabase())
const ledger = buildLedger(db, clock)
beforeEach(async () => {
  ;[webhook, other] = [await ledger.addWebhook(), await ledger.addWebhook()]
  due = []
  for (const ms of [-3, -2, 0]) due.push(...(await ledger.addDispatches(webhook, { dueAt: later(ms) })))
  await ledger.addDispatches(webhook, { dueAt: later(1) })
  await ledger.addDispatches(other, { dueAt: later(-9) })
  await keepRows()
})

/** Rows of a webhook that is pulled are kept until an instant. */
const keepRows = () =>
  db
    .updateTable('webhook_dispatch_open')
    .set({ kept_until: later(60_000) })
    .execute()

const lease = async (max: number, of: Database = db) =>
  (await leaseDue(of, { webhook, now: later(0), leasedUntil: later(60_000), max })).map(({ id }) => id)
const set = (columns: { is_actived?: boolean; deleted_at?: Date }) =>
  db.updateTable('webhook').set(columns).where('document_id', '=', webhook).execute()

test('the longest due rows of a webhook are leased, once each, and no others', async () => {
  expect(await lease(2)).toEqual(due.slice(0, 2))
  expect(await ledger.readDispatch(due[0]!)).toMatchObject({ attempts: 1, next_attempt_at: null })
  expect(await lease(5)).toEqual(due.slice(2))
  expect(await lease(5)).toEqual([])
})

test('rows that another pull is leasing are passed over', async () => {
  await inTransaction(db, async (tx) => {
    expect(await lease(1, tx)).toEqual(due.slice(0, 1))
    expect(await lease(5)).toEqual(due.slice(1))
  })
})

test.each([
  ['inactive', { is_actived: false }],
  ['deleted', { deleted_at: later(0) }],
])('nothing of a webhook that is %s is leased, and a pull of it need not wait', async (_name, columns) => {
  await lease(5)
  expect(await listReady(db, [webhook, other], later(0))).toEqual([other])
  await set(columns)
  await ledger.addDispatches(webhook, { dueAt: later(0) })
  await keepRows()
  expect(await lease(5)).toEqual([])
  expect((await listReady(db, [webhook], later(0))).length).toBe(1)
})
