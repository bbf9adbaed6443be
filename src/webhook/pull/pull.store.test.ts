import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger, type Ledger } from '../../../test/harness/delivery/ledger.ts'
import { whileLockedInOrder } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { DispatchId, WebhookId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { extendLeases, leaseDue, listLapsed, listReady, listReceiptRows, readBacklog } from './pull.store.ts'

const clock = buildManualClock()
const later = (ms: number) => new Date(clock.now() + ms)

let database: TestDatabase
let db: Database
let ledger: Ledger
let webhook: WebhookId
let other: WebhookId
/** Rows of the webhook, the longest due first, and one that is not due yet. */
let due: DispatchId[]

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  ledger = buildLedger(db, clock)
})
afterAll(() => database[Symbol.asyncDispose]())
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
  const [last] = await leaseDue(db, { webhook, now: later(1), leasedUntil: later(60_000), max: 5 })
  expect(await ledger.readDispatch(last!.id)).toMatchObject({ last_attempt_at: later(1), updated_at: later(1) })
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
  expect(await listReady(db, { webhooks: [webhook, other], now: later(0) })).toEqual([other])
  await set(columns)
  await ledger.addDispatches(webhook, { dueAt: later(0) })
  await keepRows()
  expect(await lease(5)).toEqual([])
  expect((await listReady(db, { webhooks: [webhook], now: later(0) })).length).toBe(1)
})

test('the backlog of a webhook is its due rows, and begins with the one that is due longest', async () => {
  expect(await readBacklog(db, { webhook, now: later(0) })).toEqual({ waiting: 3, oldestAt: later(-3) })
  expect(await readBacklog(db, { webhook, now: later(-3) })).toEqual({ waiting: 1, oldestAt: later(-3) })
  expect(await readBacklog(db, { webhook, now: later(-4) })).toEqual({ waiting: 0, oldestAt: null })
  expect(await listReady(db, { webhooks: [webhook], now: later(-3) })).toEqual([webhook])
  expect(await listReady(db, { webhooks: [webhook], now: later(-4) })).toEqual([])
})

test('a lease lapses at its end, the earliest first', async () => {
  await lease(1)
  await leaseDue(db, { webhook, now: later(0), leasedUntil: later(50_000), max: 1 })
  const lapsed = async (ms: number, limit = 999) =>
    (await listLapsed(db, { now: later(ms), limit })).map(({ id }) => id)
  const ours = (ids: DispatchId[]) => ids.filter((id) => due.includes(id))
  expect(ours(await lapsed(49_999))).toEqual([])
  expect(ours(await lapsed(50_000))).toEqual([due[1]])
  expect(ours(await lapsed(60_000))).toEqual([due[1], due[0]])
  expect(await lapsed(60_000, 1)).toEqual([due[1]])
})

test('receipts find the rows of their webhook alone, open or ended', async () => {
  await lease(1)
  const [failed, delivered] = [
    ...(await ledger.addDispatches(webhook, { status: 'failed' })),
    ...(await ledger.addDispatches(webhook, { status: 'success' })),
  ] as [DispatchId, DispatchId]
  const foreign = [
    ...(await ledger.addDispatches(other)),
    ...(await ledger.addDispatches(other, { status: 'success' })),
  ]
  const found = await listReceiptRows(db, { webhook, ids: [due[0]!, due[1]!, failed, delivered, ...foreign] })
  const byId = new Map(found.map((row) => [row.id, row]))
  expect(found).toHaveLength(byId.size)
  expect([...byId.keys()].toSorted()).toEqual([due[0]!, due[1]!, failed, delivered].toSorted())
  const open = { isSuccess: false, isEnded: false }
  expect(byId.get(due[0]!)).toMatchObject({ ...open, fence: 1, attempt: 1, webhook, leasedUntil: later(60_000) })
  expect(byId.get(due[1]!)).toMatchObject({ ...open, attempt: 0, leasedUntil: null })
  expect(byId.get(failed)).toMatchObject({ isSuccess: false, isEnded: true, leasedUntil: null })
  expect(byId.get(delivered)).toMatchObject({ isSuccess: true, isEnded: true, leasedUntil: null })
})

test('a lease is extended under its fence while it lasts, never shortened, and not beyond its longest time', async () => {
  await lease(3)
  const extend = async (ms: { now: number; until: number }, totalSeconds: number, fence = 1, ids = due.slice(0, 1)) => {
    const leases = ids.map((id) => ({ id, fence }))
    const bounds = { now: later(ms.now), until: later(ms.until), totalSeconds }
    const extended = await extendLeases(db, leases, bounds)
    return extended.map(({ id, leasedUntil }) => [id, leasedUntil.getTime() - clock.now()])
  }
  const first = due[0]
  expect(await extend({ now: 1, until: 70_000 }, 3_600)).toEqual([[first, 70_000]])
  expect(await extend({ now: 1, until: 65_000 }, 3_600)).toEqual([[first, 70_000]])
  expect(await extend({ now: 2, until: 90_000 }, 80)).toEqual([[first, 80_000]])
  expect(await ledger.readDispatch(due[0]!)).toMatchObject({ updated_at: later(2) })
  expect(await ledger.readDispatch(due[1]!)).toMatchObject({ updated_at: later(0) })
  for (const fence of [0, 2]) expect(await extend({ now: 1, until: 99_000 }, 3_600, fence)).toEqual([])
  expect(await extend({ now: 80_000, until: 99_000 }, 3_600)).toEqual([])
  expect(await extend({ now: 79_999, until: 99_000 }, 3_600)).toEqual([[first, 99_000]])
  expect(await extend({ now: 1, until: 99_000 }, 3_600, 1, [])).toEqual([])
})

test('a lease is extended while another transaction changes other rows of the webhook', async () => {
  await lease(2)
  const bounds = { now: later(1), until: later(70_000), totalSeconds: 3_600 }
  await inTransaction(db, async (tx) => {
    await tx.updateTable('webhook_dispatch_open').set({ attempts: 2 }).where('document_id', '=', due[1]!).execute()
    expect(await extendLeases(db, [{ id: due[0]!, fence: 1 }], bounds)).toHaveLength(1)
  })
})

test('leases are extended in the order of their ids', async () => {
  await lease(3)
  const [least, greatest] = [due[0]!, due[2]!].toSorted() as [DispatchId, DispatchId]
  // What was written last is found last.
  await db.updateTable('webhook_dispatch_open').set({ attempts: 2 }).where('document_id', '=', least).execute()
  const lock = (id: DispatchId) => (tx: Database) =>
    tx.selectFrom('webhook_dispatch_open').select('fence').where('document_id', '=', id).forUpdate().execute()
  const bounds = { now: later(1), until: later(70_000), totalSeconds: 3_600 }
  const leases = [greatest, least].map((id) => ({ id, fence: 1 }))
  const extended = await whileLockedInOrder(db, { first: lock(least), last: lock(greatest) }, () =>
    extendLeases(db, leases, bounds),
  )
  expect(extended).toHaveLength(2)
})
