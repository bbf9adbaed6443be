import { beforeEach, expect, test } from 'vitest'
import { addLedgerRow } from '../harness/delivery/ledger-rows.ts'
import { buildManualClock } from '../harness/run/manual-clock.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { type ContractWebhook, type Json, startContractFixture, TIMESTAMP } from './contract-fixture.ts'

const HEALTH = '/api/v3/health/component/integration/webhook-out'
const DAY_MS = 86_400_000

const fixture = await openForFile(startContractFixture())
const account: string = (await fixture.createAccount()).document_id
beforeEach(() => fixture.receiver.behave({ kind: 'status', status: 200 }))

/** The current health, after the cached answer of 5 s expired. */
async function readHealth(from = fixture) {
  from.app.clock.advance(5_000)
  return (await from.app.anonymous('GET', HEALTH)).body.data
}
const readSummary = async (from = fixture) =>
  (await from.app.admin('GET', '/api/v3/webhook/dashboard/summary')).body.data
const total = (status: string, from = fixture) => from.readMetric(`webhook_out_deliveries_total{status="${status}"}`)

/** Writes ended rows into the ledger, as deliveries at that instant would have. */
async function addEndedRows(
  webhook: ContractWebhook,
  rows: { status: string; count: number; endedAt: Date },
  from = fixture,
) {
  await from.app.database.pool.query(
    `insert into webhook_dispatch_ended
       (document_id, webhook, event_id, event, status, attempts, created_at, updated_at, ended_at)
     select gen_random_uuid(), $1, gen_random_uuid(), 'contract.create', $2, 5, $3, $3, $3 from generate_series(1, $4)`,
    [webhook.id, rows.status, rows.endedAt, rows.count],
  )
}

const ago = (ms: number, from = fixture) => new Date(from.app.clock.now() - ms)

async function changeTimes(count: number, from = fixture, owner = account) {
  for (let change = 0; change < count; change += 1) await from.makeChange(owner)
  await from.app.settle()
}

test('delivery#health-of-outbound-webhooks, delivery#health: the health component answers its name, status, instant and figures without a token', async () => {
  await fixture.app.settle()
  const answer = await fixture.app.anonymous('GET', HEALTH)
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({
    data: {
      component: 'webhook-out',
      status: 'operational',
      checked_at: expect.stringMatching(TIMESTAMP),
      details: {
        ...{ exhausted_24h: 0, auto_disabled: 0, backlog: 0, oldest_pending_s: 0 },
        ...{ throttled: 0, oldest_throttled_s: 0 },
      },
    },
    message: expect.any(String),
  })
})

test('delivery#health-of-outbound-webhooks, delivery#automatic-attempts: 10 exhausted deliveries in the last 24 h degrade the component, 9 or older ones do not', async () => {
  await using fresh = await startContractFixture()
  const owner = (await fresh.createAccount()).document_id
  const webhook = await fresh.createWebhook({ account: owner })
  await addEndedRows(webhook, { status: 'exhausted', count: 9, endedAt: ago(1_000, fresh) }, fresh)
  await addEndedRows(webhook, { status: 'exhausted', count: 50, endedAt: ago(DAY_MS + 1_000, fresh) }, fresh)
  await addEndedRows(webhook, { status: 'failed', count: 50, endedAt: ago(1_000, fresh) }, fresh)
  expect(await readHealth(fresh)).toMatchObject({ status: 'operational', details: { exhausted_24h: 9 } })
  await addEndedRows(webhook, { status: 'exhausted', count: 1, endedAt: ago(1_000, fresh) }, fresh)
  expect(await readHealth(fresh)).toMatchObject({ status: 'degraded', details: { exhausted_24h: 10 } })
  await fresh.app.settle()
  fresh.app.clock.advance(DAY_MS)
  expect(await readHealth(fresh)).toMatchObject({ status: 'operational', details: { exhausted_24h: 0 } })
})

test('delivery#health-of-outbound-webhooks, delivery#automatic-disable: one auto-disabled webhook degrades the component until it is activated', async () => {
  await using fresh = await startContractFixture()
  const owner = (await fresh.createAccount()).document_id
  const webhook = await fresh.createWebhook({ account: owner }, ['contract.create'])
  fresh.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
  await changeTimes(20, fresh, owner)
  expect(await readHealth(fresh)).toMatchObject({ status: 'degraded', details: { auto_disabled: 1 } })
  await fresh.app.admin('PATCH', `/api/v3/webhook/webhook/${webhook.id}/active`, { is_actived: true })
  expect(await readHealth(fresh)).toMatchObject({ status: 'operational', details: { auto_disabled: 0 } })
})

test('delivery#health-of-outbound-webhooks: health is operational or degraded, never down', async () => {
  await using fresh = await startContractFixture()
  const owner = (await fresh.createAccount()).document_id
  for (let each = 0; each < 3; each += 1) {
    const webhook = await fresh.createWebhook({ account: owner }, ['contract.create'])
    await addEndedRows(webhook, { status: 'exhausted', count: 500, endedAt: ago(1_000, fresh) }, fresh)
    await fresh.app.database.pool.query(
      `update webhook set is_actived = false, disabled_at = $2, disabled_reason = 'consecutive-failures' where document_id = $1`,
      [webhook.id, ago(0, fresh)],
    )
  }
  fresh.app.clock.advance(DAY_MS / 2)
  const answer = await fresh.app.anonymous('GET', HEALTH)
  expect(answer.status).toBe(200)
  expect(answer.body.data.status).toBe('degraded')
})

test('delivery#health-of-outbound-webhooks: a webhook that an operator switched off does not degrade the component', async () => {
  const webhook = await fixture.createWebhook({ account })
  await fixture.app.admin('PATCH', `/api/v3/webhook/webhook/${webhook.id}/active`, { is_actived: false })
  expect(await readHealth()).toMatchObject({ status: 'operational', details: { auto_disabled: 0 } })
})

test('delivery#health: all components, liveness and readiness are public, without secrets or tenant data', async () => {
  const webhook = await fixture.createWebhook({ account })
  for (const path of ['/api/v3/health', '/livez', '/readyz', HEALTH]) {
    const answer = await fixture.app.anonymous('GET', path)
    expect(answer.status, path).toBe(200)
    const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body)
    for (const secret of [webhook.secret, webhook.id, account, webhook.path]) expect(text, path).not.toContain(secret)
  }
  const metrics = await fixture.app.scrape()
  expect(metrics.status).toBe(200)
  for (const secret of [webhook.secret, webhook.id, account, webhook.path]) expect(metrics.body).not.toContain(secret)
  const all = (await fixture.app.anonymous('GET', '/api/v3/health')).body.data
  expect(all.components.map((component: Json) => component.component)).toContain('webhook-out')
})

test('delivery#dashboard: the summary has exactly these members', async () => {
  const summary = await readSummary()
  expect(Object.keys(summary).sort()).toEqual([
    'catalogue',
    'deliveries_24h',
    'exhausted',
    'is_complete',
    'recent_failures',
    'series_24h',
    'webhooks',
  ])
  expect(Object.keys(summary.deliveries_24h).sort()).toEqual([
    'cancelled',
    'exhausted',
    'failed',
    'pending',
    'retrying',
    'success',
  ])
  expect(Object.keys(summary.webhooks).sort()).toEqual(['active', 'auto_disabled', 'inactive'])
  expect(summary.catalogue).toMatchObject({ in_sync: true })
  expect(summary.catalogue.generated_count).toBe(summary.catalogue.synced_count)
  for (const point of summary.series_24h)
    expect(point).toEqual({
      hour: expect.stringMatching(TIMESTAMP),
      success: expect.any(Number),
      failed: expect.any(Number),
    })
})

test('delivery#dashboard: deliveries by status count the last 24 h only', async () => {
  await using fresh = await startContractFixture()
  const owner = (await fresh.createAccount()).document_id
  await fresh.createWebhook({ account: owner }, ['contract.create'])
  await changeTimes(3, fresh, owner)
  expect((await readSummary(fresh)).deliveries_24h).toMatchObject({ success: 3, pending: 0 })
  fresh.app.clock.advance(DAY_MS - 1_000)
  await changeTimes(1, fresh, owner)
  expect((await readSummary(fresh)).deliveries_24h.success).toBe(4)
  // The window begins at a whole minute.
  fresh.app.clock.advance(1_000 + 60_000)
  expect((await readSummary(fresh)).deliveries_24h.success).toBe(1)
})

test('delivery#dashboard: active, inactive and auto-disabled webhooks are counted, deleted ones are not', async () => {
  await using fresh = await startContractFixture()
  const owner = (await fresh.createAccount()).document_id
  const ids: string[] = []
  for (let each = 0; each < 4; each += 1) ids.push((await fresh.createWebhook({ account: owner })).id)
  await fresh.app.admin('PATCH', `/api/v3/webhook/webhook/${ids[0]}/active`, { is_actived: false })
  await fresh.app.database.pool.query(
    `update webhook set is_actived = false, disabled_at = now(), disabled_reason = 'consecutive-failures' where document_id = $1`,
    [ids[1]],
  )
  await fresh.app.admin('DELETE', `/api/v3/webhook/webhook/${ids[2]}`)
  expect((await readSummary(fresh)).webhooks).toEqual({ active: 1, inactive: 2, auto_disabled: 1 })
})

test('delivery#dashboard: the 10 most recent failures are shown, newest first', async () => {
  await using fresh = await startContractFixture()
  const owner = (await fresh.createAccount()).document_id
  const webhook = await fresh.createWebhook({ account: owner })
  for (let hour = 1; hour <= 12; hour += 1) {
    const status = hour % 2 ? 'failed' : 'exhausted'
    await addEndedRows(webhook, { status, count: 1, endedAt: ago(hour * 3_600_000, fresh) }, fresh)
  }
  await addEndedRows(webhook, { status: 'success', count: 3, endedAt: ago(1, fresh) }, fresh)
  const { recent_failures: failures } = await readSummary(fresh)
  expect(failures).toHaveLength(10)
  const times = failures.map((row: Json) => row.updated_at)
  expect(times).toEqual(times.toSorted().toReversed())
  expect(times[0]).toBe(ago(3_600_000, fresh).toISOString())
  expect(failures[0]).toMatchObject({ webhook: webhook.id, status: 'failed' })
})

test('delivery#delivery-totals, delivery#metrics: webhook_out_deliveries_total counts by status and is a counter', async () => {
  const before = { success: await total('success'), failed: await total('failed') }
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await changeTimes(3)
  fixture.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
  await changeTimes(2)
  expect({ success: await total('success'), failed: await total('failed') }).toEqual({
    success: before.success + 3,
    failed: before.failed + 2,
  })
  const { body, headers } = await fixture.app.scrape()
  expect(headers['content-type']).toContain('text/plain')
  expect(body).toContain('# TYPE webhook_out_deliveries_total counter')
  await fixture.subscribe(webhook.id, ['webhook.test'])
})

test('delivery#metrics: every status has its line from the start', async () => {
  await using fresh = await startContractFixture()
  for (const status of ['pending', 'retrying', 'success', 'exhausted', 'failed', 'cancelled'])
    expect(await total(status, fresh)).toBe(0)
})

test('delivery#metrics: a restart, a second process or a pruned ledger does not lower the metric', async () => {
  const clock = buildManualClock()
  const first = await startContractFixture({ clock })
  const { receiver } = first
  const owner = (await first.createAccount()).document_id
  await first.createWebhook({ account: owner }, ['contract.create'])
  await changeTimes(4, first, owner)
  expect(await total('success', first)).toBe(4)
  await using second = await startContractFixture({ clock, receiver, database: first.app.database })
  await changeTimes(3, second, owner)
  expect(await total('success', second)).toBe(7)
  expect(await total('success', first)).toBe(7)
  clock.advance(31 * DAY_MS)
  await second.app.app.maintenance.sweep()
  const { rows } = await first.app.database.pool.query('select count(*)::int as count from webhook_dispatch')
  expect(rows[0].count).toBe(0)
  expect(await total('success', second)).toBe(7)
  await second[Symbol.asyncDispose]()
  await first[Symbol.asyncDispose]()
})

test('delivery#retention: ledger rows are kept 30 days by default, and waiting rows without a limit', async () => {
  const kept = await fixture.createWebhook({ account })
  await addEndedRows(kept, { status: 'success', count: 2, endedAt: ago(30 * DAY_MS - 60_000) })
  await addEndedRows(kept, { status: 'exhausted', count: 3, endedAt: ago(30 * DAY_MS + 60_000) })
  await addLedgerRow(fixture.app, { webhook: kept.id, status: 'retrying', createdAgeMs: 90 * DAY_MS })
  await fixture.app.app.maintenance.sweep()
  const statuses = (await fixture.readLedger(kept)).map((row) => row.status).sort()
  expect(statuses).toEqual(['retrying', 'success', 'success'])
  await fixture.app.admin('DELETE', `/api/v3/webhook/webhook/${kept.id}/purge`)
})

test('delivery#retention: WEBHOOK_LEDGER_RETENTION_DAYS sets the retention, and events are deleted with the last of their rows', async () => {
  await using short = await startContractFixture({ env: { WEBHOOK_LEDGER_RETENTION_DAYS: '2' } })
  const owner = (await short.createAccount()).document_id
  const webhook = await short.createWebhook({ account: owner }, ['contract.create'])
  await changeTimes(1, short, owner)
  const [row] = await short.readLedger(webhook)
  const countEvents = async () =>
    (await short.app.database.pool.query('select from event_occurrence where document_id = $1', [row.event_id])).rows
      .length
  short.app.clock.advance(2 * DAY_MS - 1_000)
  await short.app.app.maintenance.sweep()
  expect([await countEvents(), (await short.readLedger(webhook)).length]).toEqual([1, 1])
  short.app.clock.advance(2_000)
  await short.app.app.maintenance.sweep()
  expect([await countEvents(), (await short.readLedger(webhook)).length]).toEqual([0, 0])
})
