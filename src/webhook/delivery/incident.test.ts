import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { addLedgerRow, addWebhook, clearLedger } from '../../../test/harness/delivery/ledger-rows.ts'
import { type Receiver, startReceiver } from '../../../test/harness/fakes/receiver.ts'

let receiver: Receiver
let alerts: Receiver
let app: TestApp
let webhook: string
let seen = 0

beforeAll(async () => {
  receiver = await startReceiver()
  alerts = await startReceiver()
  app = await createTestApp({
    env: {
      ALERT_WEBHOOK_URL: `${alerts.origin}/alerts?key=1`,
      WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}`,
    },
  })
})
beforeEach(async () => {
  await clearLedger(app)
  await app.database.pool.query('delete from alert_incident')
  receiver.behave({ kind: 'status', status: 500 })
  const body = { url: `${receiver.origin}/`, is_global: true }
  webhook = (await app.admin('POST', '/api/v3/webhook/webhook', body)).body.data.document_id
  await app.settle()
  seen = alerts.requests.length
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await receiver.close()
  await alerts.close()
})

/** Runs the checks and posts; returns what the receiver of alerts got since the last time. */
async function takeAlerts(from: TestApp = app): Promise<{ incident: string; status: string; subject: string }[]> {
  await from.app.alertWorker.check()
  await from.app.alertWorker.drain()
  const bodies = alerts.requests.slice(seen).map(({ body }) => JSON.parse(body.toString()))
  seen = alerts.requests.length
  return bodies.map(({ incident, status, subject }) => ({ incident, status, subject }))
}

/** Makes the fifth POST of a delivery. */
async function deliver(from: TestApp = app): Promise<void> {
  await from.admin('POST', `/api/v3/webhook/webhook/${webhook}/test`)
  await app.database.pool.query(
    "update webhook_dispatch_open set is_test = false, attempt_trigger = 'schedule', attempts = 4",
  )
  await from.settle()
}

test('exhausted deliveries of a webhook post one alert, however many follow, and its next success the end', async () => {
  await deliver()
  expect(await takeAlerts()).toEqual([{ incident: 'deliveries-exhausted', status: 'firing', subject: webhook }])
  await deliver()
  expect(await takeAlerts()).toEqual([])
  receiver.behave({ kind: 'status', status: 200 })
  await deliver()
  expect(await takeAlerts()).toEqual([{ incident: 'deliveries-exhausted', status: 'resolved', subject: webhook }])
  expect(alerts.requests.at(-1)?.path).toBe('/alerts?key=1')
})

test('a webhook that the service disables posts an alert, and its activation the end', async () => {
  await app.database.pool.query('update webhook set consecutive_failures = 19 where document_id = $1', [webhook])
  receiver.behave({ kind: 'redirect', location: 'https://elsewhere.example.com/' })
  await deliver()
  expect(await takeAlerts()).toEqual([{ incident: 'webhook-disabled', status: 'firing', subject: webhook }])
  expect(await takeAlerts()).toEqual([])
  await app.admin('PATCH', `/api/v3/webhook/webhook/${webhook}/active`, { is_actived: true })
  expect(await takeAlerts()).toEqual([{ incident: 'webhook-disabled', status: 'resolved', subject: webhook }])
})

test('a failed test delivery and the deletion of a failing webhook leave no incident behind', async () => {
  receiver.behave({ kind: 'redirect', location: 'https://elsewhere.example.com/' })
  await app.admin('POST', `/api/v3/webhook/webhook/${webhook}/test`)
  await app.settle()
  expect(await takeAlerts()).toEqual([])
  receiver.behave({ kind: 'status', status: 500 })
  await deliver()
  await app.admin('DELETE', `/api/v3/webhook/webhook/${webhook}`)
  expect((await takeAlerts()).map(({ status }) => status)).toEqual(['firing', 'resolved'])
})

test('work that waits for five minutes posts one alert over two processes, and its end after it moves again', async () => {
  await using second = await createTestApp({
    ...{ database: app.database, clock: app.clock },
    env: { ALERT_WEBHOOK_URL: `${alerts.origin}/alerts` },
  })
  const waiting = await addWebhook(app)
  await app.settle()
  await addLedgerRow(app, { webhook: waiting, status: 'pending', dueAgeMs: 299_000 })
  expect(await takeAlerts()).toEqual([])
  app.clock.advance(1_000)
  await Promise.all([app.app.alertWorker.check(), second.app.alertWorker.check()])
  const firing = { incident: 'backlog', status: 'firing', subject: 'webhook-out' }
  expect([...(await takeAlerts()), ...(await takeAlerts(second))]).toEqual([firing])
  await app.database.pool.query('truncate webhook_dispatch_open')
  app.clock.advance(299_000)
  expect(await takeAlerts()).toEqual([])
  app.clock.advance(1_000)
  expect(await takeAlerts()).toEqual([{ ...firing, status: 'resolved' }])
})

test('a stored secret that does not open posts an alert, which ends when the key is back', async () => {
  await app.database.pool.query("update webhook set secret_encrypted = 'v1.00000000.aa.bb' where document_id = $1", [
    webhook,
  ])
  const firing = { incident: 'secret-unreadable', status: 'firing', subject: 'SECRET_KEY' }
  expect(await takeAlerts()).toEqual([firing])
  await app.database.pool.query('delete from webhook where document_id = $1', [webhook])
  app.clock.advance(300_000)
  expect(await takeAlerts()).toEqual([{ ...firing, status: 'resolved' }])
})

test('a process whose machine has another time posts an alert, which ends when none has', async () => {
  const report = () =>
    app.database.pool.query(
      `insert into process_skew values ('worker-a', -3000, $1)
       on conflict (process) do update set seen_at = excluded.seen_at`,
      [new Date(app.clock.now())],
    )
  await report()
  const firing = { incident: 'clock-skew', status: 'firing', subject: 'clock' }
  expect(await takeAlerts()).toEqual([firing])
  const { summary } = JSON.parse(alerts.requests.at(-1)?.body.toString() ?? '{}')
  expect(summary).toBe('1 processes have another time than the database; the furthest is 3 s behind.')
  app.clock.advance(300_000)
  await report()
  expect(await takeAlerts()).toEqual([])
  app.clock.advance(30_001)
  expect(await takeAlerts()).toEqual([{ ...firing, status: 'resolved' }])
})

test('an incident that ended more than a day before there was a receiver is not posted', async () => {
  await using silent = await createTestApp({
    ...{ database: app.database, clock: app.clock },
    env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}` },
  })
  await deliver(silent)
  await app.admin('DELETE', `/api/v3/webhook/webhook/${webhook}`)
  await silent.app.alertWorker.check()
  expect(await silent.app.alertWorker.drain()).toBe(0)
  await app.database.pool.query("update alert_incident set resolved_at = resolved_at - interval '25 hours'")
  expect(await takeAlerts()).toEqual([])
})
