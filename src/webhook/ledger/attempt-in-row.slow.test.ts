import { expect, test } from 'vitest'
import { type DeliveryApp, openDelivery } from '../../../test/harness/app/delivery-app.ts'
import { passRetrySchedule } from '../../../test/harness/delivery/retry-schedule.ts'
import { findDispatchWithAttempts } from './dispatch.store.ts'
import { deleteOldDispatches } from './removal.store.ts'

const countLogged = async (d: DeliveryApp) =>
  (await d.t.database.db.selectFrom('webhook_attempt').select('attempt').execute()).length

const readLog = async (d: DeliveryApp, id: string) => {
  const { status, body } = await d.t.admin('GET', `/api/v3/webhook/dispatch/${id}`)
  expect(status).toBe(200)
  return body.data.attempts_log
}

const deliverOne = async (d: DeliveryApp) => {
  await d.makeWebhook()
  await d.emit()
  await d.t.settle()
  const [row] = await d.listRows()
  return row!
}

test('the attempt that ends a delivery is an entry of its log without a row of its own', async () => {
  await using d = await openDelivery()
  const row = await deliverOne(d)
  expect(row.status).toBe('success')
  expect(await countLogged(d)).toBe(0)
  const [entry, ...others] = await readLog(d, row.document_id)
  expect(others).toEqual([])
  expect(entry).toEqual({
    attempt: 1,
    trigger: 'schedule',
    worker: expect.stringMatching(/./),
    started_at: row.last_attempt_at!.toISOString(),
    duration_ms: row.last_duration_ms,
    status_code: 200,
    error_class: null,
    response_excerpt: expect.any(String),
    response_headers: expect.objectContaining({ 'content-type': 'application/json' }),
    timings: {
      dns_ms: null,
      connect_ms: expect.any(Number),
      tls_ms: null,
      first_byte_ms: expect.any(Number),
      total_ms: expect.any(Number),
    },
  })
  // As JSON would have kept it: to a tenth, and not as the nearest number of single precision.
  for (const ms of Object.values(entry.timings)) if (ms !== null) expect(String(ms)).toMatch(/^\d+(\.\d)?$/)
})

test('a replay keeps the entry of the attempt that ended the delivery before', async () => {
  await using d = await openDelivery()
  const { document_id: id } = await deliverOne(d)
  const before = await readLog(d, id)
  d.receiver.behave({ kind: 'status', status: 500 })
  await d.replay(id, { confirm_duplicate: true })
  expect(await readLog(d, id)).toEqual(before)
  await d.t.settle()
  expect(await readLog(d, id)).toEqual([
    ...before,
    expect.objectContaining({ attempt: 2, trigger: 'replay', status_code: 500 }),
  ])
  expect(await countLogged(d)).toBe(1)
})

test('the log of a delivery that failed five times has all attempts in order', async () => {
  await using d = await openDelivery()
  d.receiver.behave({ kind: 'status', status: 503 })
  await d.makeWebhook()
  await d.emit()
  await d.t.settle()
  await passRetrySchedule(d.t)
  const [row] = await d.listRows()
  const found = await findDispatchWithAttempts(d.t.database.db, row!.document_id)
  expect(found!.attempts.map((attempt) => [attempt.attempt, attempt.errorClass])).toEqual(
    [1, 2, 3, 4, 5].map((attempt) => [attempt, 'http_5xx']),
  )
  expect(await countLogged(d)).toBe(4)
})

test('a test keeps its trigger in the log', async () => {
  await using d = await openDelivery()
  const { id: webhook } = await d.makeWebhook()
  const id = await d.sendTest(webhook)
  await d.t.settle()
  expect(await readLog(d, id)).toMatchObject([{ attempt: 1, trigger: 'test', status_code: 200 }])
})

test('retention counts attempts wherever they are kept', async () => {
  await using d = await openDelivery()
  d.receiver.behaveNext({ kind: 'status', status: 500 })
  await d.makeWebhook()
  await d.emit()
  await d.t.settle()
  await passRetrySchedule(d.t)
  const later = new Date(d.t.clock.now() + 1)
  expect(await deleteOldDispatches(d.t.database.db, later, 10)).toEqual({ dispatches: 1, attempts: 2 })
})
