import { beforeEach, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { addLedgerRow, addWebhook, clearLedger } from '../../../test/harness/delivery/ledger-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const PATH = '/api/v3/webhook/dashboard/summary'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NONE = { pending: 0, retrying: 0, success: 0, exhausted: 0, failed: 0, cancelled: 0 }

let webhook: string

const app = await openForFile(createTestApp())
beforeEach(async () => {
  // Twenty minutes into an hour.
  app.clock.set(Date.UTC(2026, 8, 11, 12, 20))
  await clearLedger(app)
  webhook = await addWebhook(app)
})

async function read() {
  const answer = await app.admin('GET', PATH)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body.data
}

test('an empty ledger shows every status and every one of 24 hours, with zeros', async () => {
  const summary = await read()
  expect(Object.keys(summary).sort()).toEqual([
    'catalogue',
    'deliveries_24h',
    'exhausted',
    'is_complete',
    'recent_failures',
    'series_24h',
    'webhooks',
  ])
  expect(summary.deliveries_24h).toEqual(NONE)
  expect(summary.exhausted).toEqual({ last_24h: 0, before_24h: 0 })
  expect(summary.is_complete).toBe(true)
  expect(summary.webhooks).toEqual({ active: 1, inactive: 0, auto_disabled: 0 })
  expect(summary.catalogue).toEqual({
    generated_count: app.app.catalogue.length,
    synced_count: app.app.catalogue.length,
    in_sync: true,
  })
  expect(summary.recent_failures).toEqual([])
  const start = Date.UTC(2026, 8, 10, 13)
  expect(summary.series_24h).toEqual(
    Array.from({ length: 24 }, (_, n) => ({
      hour: new Date(start + n * HOUR_MS).toISOString(),
      success: 0,
      failed: 0,
    })),
  )
})

test('deliveries count by status for 24 h from their creation, by whole minutes', async () => {
  for (const status of Object.keys(NONE)) await addLedgerRow(app, { webhook, status, createdAgeMs: DAY_MS })
  const intoMinuteMs = app.clock.now() % 60_000
  await addLedgerRow(app, { webhook, status: 'success', createdAgeMs: DAY_MS + intoMinuteMs + 1 })
  await addLedgerRow(app, { webhook, status: 'success', createdAgeMs: 0 })
  expect((await read()).deliveries_24h).toEqual({
    pending: 1,
    retrying: 1,
    success: 2,
    exhausted: 1,
    failed: 1,
    cancelled: 1,
  })
})

test('webhooks count as active or inactive, auto-disabled ones as inactive, deleted ones not', async () => {
  const { pool } = app.database
  const off = await addWebhook(app)
  const auto = await addWebhook(app)
  const deleted = await addWebhook(app)
  await pool.query('update webhook set is_actived = false where document_id = any($1::uuid[])', [[off, auto]])
  await pool.query(`update webhook set disabled_reason = 'consecutive-failures' where document_id = $1`, [auto])
  await pool.query('update webhook set deleted_at = $2 where document_id = $1', [deleted, new Date(app.clock.now())])
  expect((await read()).webhooks).toEqual({ active: 1, inactive: 2, auto_disabled: 1 })
})

test('the catalogue is out of sync when a row is missing', async () => {
  await app.database.pool.query(`update event set internal = 'contract.elsewhere' where internal = 'contract.delete'`)
  try {
    const { catalogue } = await read()
    expect(catalogue).toEqual({
      generated_count: app.app.catalogue.length,
      synced_count: app.app.catalogue.length - 1,
      in_sync: false,
    })
  } finally {
    await app.database.pool.query(`update event set internal = 'contract.delete' where internal = 'contract.elsewhere'`)
  }
})

test('recent failures are the ten that ended last, latest first, as ledger rows', async () => {
  const ids: string[] = []
  for (let n = 0; n < 12; n += 1) {
    const status = n % 2 === 0 ? 'exhausted' : 'failed'
    ids.push(await addLedgerRow(app, { webhook, status, endedAgeMs: n * 60_000, createdAgeMs: 2 * DAY_MS }))
  }
  for (const status of ['success', 'cancelled']) await addLedgerRow(app, { webhook, status, endedAgeMs: 0 })
  const { recent_failures: rows } = await read()
  expect(rows.map((row: { document_id: string }) => row.document_id)).toEqual(ids.slice(0, 10))
  const answer = await app.admin('GET', `/api/v3/webhook/dispatch/${ids[0]}`)
  const { attempts_log: _log, ...row } = answer.body.data
  expect(rows[0]).toEqual(row)
})

test('a failure is recent for 24 h from its end', async () => {
  await addLedgerRow(app, { webhook, status: 'failed', endedAgeMs: DAY_MS + 1, createdAgeMs: 2 * DAY_MS })
  const edge = await addLedgerRow(app, { webhook, status: 'failed', endedAgeMs: DAY_MS, createdAgeMs: 2 * DAY_MS })
  const { recent_failures: rows } = await read()
  expect(rows.map((row: { document_id: string }) => row.document_id)).toEqual([edge])
})

test('the series counts a delivery in the hour of its creation, with failed and exhausted together', async () => {
  const intoHourMs = 20 * 60_000
  await addLedgerRow(app, { webhook, status: 'success', createdAgeMs: 0 })
  await addLedgerRow(app, { webhook, status: 'success', createdAgeMs: intoHourMs })
  await addLedgerRow(app, { webhook, status: 'exhausted', createdAgeMs: intoHourMs + 1 })
  await addLedgerRow(app, { webhook, status: 'failed', createdAgeMs: intoHourMs + HOUR_MS })
  await addLedgerRow(app, { webhook, status: 'pending', createdAgeMs: 0 })
  await addLedgerRow(app, { webhook, status: 'success', createdAgeMs: intoHourMs + 23 * HOUR_MS })
  await addLedgerRow(app, { webhook, status: 'success', createdAgeMs: intoHourMs + 23 * HOUR_MS + 1 })
  const { series_24h: series } = await read()
  const filled = series.filter((item: { success: number; failed: number }) => item.success + item.failed > 0)
  expect(filled).toEqual([
    { hour: '2026-09-10T13:00:00.000Z', success: 1, failed: 0 },
    { hour: '2026-09-11T11:00:00.000Z', success: 0, failed: 2 },
    { hour: '2026-09-11T12:00:00.000Z', success: 2, failed: 0 },
  ])
})

test('needs the permission webhook:dashboard', async () => {
  expect((await app.anonymous('GET', PATH)).status).toBe(401)
  const member = await app.signInMember([])
  const refused = await member.call('GET', PATH)
  expect(refused.status).toBe(403)
  expect(refused.body.detail).toContain('webhook:dashboard')
})
