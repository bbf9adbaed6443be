import perfHooks from 'node:perf_hooks'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { addLedgerRow, addWebhook, clearLedger } from '../../../test/harness/delivery/ledger-rows.ts'
import { type Receiver, startReceiver } from '../../../test/harness/fakes/receiver.ts'
import { VERSION } from '../../base/version.ts'
import { ERROR_CLASSES } from '../../delivery/post/attempt-result.ts'
import { openDatabase } from '../../postgres/statement/database.ts'
import { FACTS_LIFETIME_MS } from '../health/webhook-out.ts'
import { buildMetrics } from './metrics.ts'

const STATUSES = ['pending', 'retrying', 'success', 'exhausted', 'failed', 'cancelled']
const DAY_MS = 24 * 3_600_000

let app: TestApp
let receiver: Receiver
let env: Record<string, string>

beforeAll(async () => {
  receiver = await startReceiver()
  env = { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}` }
  app = await createTestApp({ env })
})
beforeEach(() => clearLedger(app))
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await receiver.close()
})

/** The current metrics, after the cached text of 5 s expired. */
async function scrape(from: TestApp = app): Promise<string> {
  from.clock.advance(FACTS_LIFETIME_MS)
  const answer = await from.scrape()
  expect(answer.status).toBe(200)
  return answer.body
}

function readSeries(text: string, series: string): number | undefined {
  const line = text.split('\n').find((part) => part.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

const totalsOf = (text: string) =>
  Object.fromEntries(
    STATUSES.map((status) => [status, readSeries(text, `webhook_out_deliveries_total{status="${status}"}`)]),
  )

async function deliverTest(from: TestApp = app): Promise<void> {
  const body = { url: `${receiver.origin}/`, is_global: true }
  const { data } = (await from.admin('POST', '/api/v3/webhook/webhook', body)).body
  await from.admin('POST', `/api/v3/webhook/webhook/${data.document_id}/test`)
  await from.settle()
}

test('webhook_out_deliveries_total is a counter with all six statuses from the start', async () => {
  const answer = await app.scrape()
  expect(answer.headers['content-type']).toContain('text/plain')
  expect(answer.body).toContain('# TYPE webhook_out_deliveries_total counter\n')
  expect(answer.body).not.toContain('webhook_out_deliveries_total gauge')
  expect(totalsOf(answer.body)).toEqual(Object.fromEntries(STATUSES.map((status) => [status, 0])))
})

test('it counts each delivery once for each status that it reached', async () => {
  await deliverTest()
  expect(totalsOf(await scrape())).toMatchObject({ pending: 1, success: 1, retrying: 0, failed: 0 })
  receiver.behaveNext({ kind: 'status', status: 500 })
  await deliverTest()
  app.clock.advance(60_000)
  await app.settle()
  expect(totalsOf(await scrape())).toMatchObject({ pending: 2, success: 2, retrying: 1, failed: 0 })
  receiver.behaveNext({ kind: 'redirect', location: 'https://elsewhere.example.com/' })
  await deliverTest()
  expect(totalsOf(await scrape())).toMatchObject({ pending: 3, success: 2, failed: 1 })
})

test('pruning the ledger, purging a webhook and a restart do not lower it', async () => {
  await deliverTest()
  const before = totalsOf(await scrape())
  const { rows } = await app.database.pool.query('select document_id from webhook')
  await app.admin('DELETE', `/api/v3/webhook/webhook/${rows[0].document_id}/purge`)
  expect(totalsOf(await scrape())).toEqual(before)
  await deliverTest()
  await app.database.pool.query(`update webhook_dispatch_ended set created_at = $1`, [
    new Date(app.clock.now() - 40 * DAY_MS),
  ])
  expect(await app.app.maintenance.sweep()).toMatchObject({ dispatches: 1 })
  await using restarted = await createTestApp({ env, database: app.database, clock: app.clock })
  expect(totalsOf(await scrape(restarted))).toMatchObject({ pending: 2, success: 2 })
})

test('two processes on one database show the same total', async () => {
  await using second = await createTestApp({ env, database: app.database, clock: app.clock })
  await deliverTest(app)
  await deliverTest(second)
  for (const service of [app, second]) expect(totalsOf(await scrape(service))).toMatchObject({ pending: 2, success: 2 })
})

test('all scrapes share one text for 5 s', async () => {
  const first = await scrape()
  await deliverTest()
  app.clock.advance(FACTS_LIFETIME_MS - 1)
  const shared = await Promise.all(Array.from({ length: 20 }, () => app.scrape()))
  expect(new Set(shared.map(({ body }) => body))).toEqual(new Set([first]))
  app.clock.advance(1)
  expect(totalsOf((await app.scrape()).body)).toMatchObject({ success: 1 })
})

test('the backlog and its age are from the time of the text', async () => {
  const webhook = await addWebhook(app)
  await app.settle()
  await addLedgerRow(app, { webhook, status: 'pending', dueAgeMs: 100_000 - FACTS_LIFETIME_MS })
  await addLedgerRow(app, { webhook, status: 'retrying', dueAgeMs: 7_000 })
  const waiting = await scrape()
  expect(readSeries(waiting, 'webhook_out_backlog')).toBe(2)
  expect(readSeries(waiting, 'webhook_out_oldest_due_seconds')).toBe(100)
  await clearLedger(app)
  const empty = await scrape()
  expect(readSeries(empty, 'webhook_out_backlog')).toBe(0)
  expect(readSeries(empty, 'webhook_out_oldest_due_seconds')).toBe(0)
})

test('attempts are counted by failure and trigger, requests by route without the ids of their path', async () => {
  await using own = await createTestApp({ env })
  receiver.behaveNext({ kind: 'status', status: 503 })
  await deliverTest(own)
  await deliverTest(own)
  const missing = '01990000-0000-7000-8000-000000000000'
  await own.admin('GET', `/api/v3/webhook/webhook/${missing}`)
  const text = await scrape(own)
  expect(readSeries(text, 'webhook_out_attempts_total{error="none",trigger="test"}')).toBe(1)
  expect(readSeries(text, 'webhook_out_attempts_total{error="http_5xx",trigger="test"}')).toBe(1)
  expect(readSeries(text, 'webhook_out_attempt_duration_seconds_count')).toBe(2)
  expect(readSeries(text, 'webhook_out_in_flight')).toBe(0)
  const counted = text.split('\n').filter((line) => line.startsWith('http_request_duration_seconds_count'))
  const reads = counted.filter((line) => line.includes('route="/api/v3/webhook/webhook/{id}"'))
  expect(reads).toHaveLength(1)
  expect(reads[0]).toMatch(/method="GET".*status="404".* 1$|status="404".*method="GET".* 1$/)
  expect(text).not.toContain(missing)
  expect(text).not.toContain('127.0.0.1')
})

test('without a database a process shows its own metrics and leaves out the rest', async () => {
  const unreachable = openDatabase({
    connectionString: 'postgres://nobody@127.0.0.1:1/none',
    size: 1,
    applicationName: 'test',
    onError: () => {},
  })
  const metrics = buildMetrics({
    ...{
      db: unreachable.db,
      clock: app.clock,
      inFlight: () => 3,
      keyIds: [],
      readCellFacts: async () => undefined,
      hasEventLog: false,
      time: { skewMs: () => 3_500 },
    },
    logCounts: () => ({ dropped: 2, summed: 5 }),
    ...{ roles: ['api'], allRoles: ['api', 'dispatcher'] },
    storage: {
      disk: { dataDir: undefined, diskBytes: 5_000_000 },
      retention: { webhookLedgerRetentionDays: 30, auditRetentionDays: 365 },
    },
    ...{ pools: { requests: unreachable.state }, countListenReconnects: () => 2, countSwitches: () => 4 },
  })
  const text = await metrics.render()
  expect(readSeries(text, 'database_up')).toBe(0)
  expect(readSeries(text, 'webhook_out_in_flight')).toBe(3)
  expect(readSeries(text, 'clock_skew_seconds')).toBe(3.5)
  expect(readSeries(text, 'log_lines_lost_total{reason="dropped"}')).toBe(2)
  expect(readSeries(text, 'log_lines_lost_total{reason="summed"}')).toBe(5)
  expect(readSeries(text, 'database_breaker_open{pool="requests"}')).toBe(0)
  expect(readSeries(text, 'database_listen_reconnects_total')).toBe(2)
  expect(readSeries(text, 'database_primary_switches_total')).toBe(4)
  expect(text).not.toContain('webhook_out_deliveries_total')
  expect(readSeries(text, 'signalbox_role{role="api"}')).toBe(1)
  expect(readSeries(text, 'signalbox_role{role="dispatcher"}')).toBe(0)
  expect(text).toContain(`signalbox_build_info{version="${VERSION}",node_version="${process.versions.node}"} 1`)
  await unreachable.close()
  expect(readSeries(await scrape(), 'database_up')).toBe(1)
})

test('the size of the database, its room and how long that lasts are shown where they are known', async () => {
  await using unlimited = await createTestApp()
  const without = await scrape(unlimited)
  expect(readSeries(without, 'database_size_bytes')).toBeGreaterThan(1_000_000)
  expect(without).not.toMatch(/^database_disk_free_bytes/m)
  expect(without).toMatch(/^database_disk_full_seconds \+Inf$/m)

  const diskBytes = 1e12
  await using limited = await createTestApp({
    ...{ database: unlimited.database, clock: unlimited.clock },
    env: { DATABASE_DISK_BYTES: String(diskBytes) },
  })
  const empty = await scrape(limited)
  const size = readSeries(empty, 'database_size_bytes')
  expect(readSeries(empty, 'database_disk_free_bytes{source="setting"}')).toBe(diskBytes - size!)
  expect(empty).toMatch(/^database_disk_full_seconds \+Inf$/m)

  // A day of events, each second one: within the disk for 30 days.
  await unlimited.database.pool.query(
    `insert into event_occurrence (document_id, event, resource, action, created_at, routed_at)
     select gen_random_uuid(), 'a.b', 'a', 'b', $1::timestamptz - n * interval '72 seconds', $1
     from generate_series(1200, 1, -1) n`,
    [new Date(unlimited.clock.now())],
  )
  unlimited.clock.advance(60_000)
  expect(await scrape(limited)).toMatch(/^database_disk_full_seconds \+Inf$/m)
  await using tight = await createTestApp({
    ...{ database: unlimited.database, clock: unlimited.clock },
    env: { DATABASE_DISK_BYTES: String(size! + 1_000_000) },
  })
  const seconds = readSeries(await scrape(tight), 'database_disk_full_seconds')
  expect(seconds).toBeGreaterThanOrEqual(0)
  expect(seconds).toBeLessThan(5 * 86_400)
})

test('the runtime is watched once for a process, and each text shows it once', async () => {
  const watch = vi.spyOn(perfHooks, 'monitorEventLoopDelay')
  await using second = await createTestApp()
  expect(watch).not.toHaveBeenCalled()
  watch.mockRestore()
  for (const service of [app, second])
    expect((await scrape(service)).match(/^nodejs_eventloop_lag_seconds /gm)).toHaveLength(1)
})

test('every series of a counter with known label values is there from the start, with 0', async () => {
  await using fresh = await createTestApp()
  const text = await scrape(fresh)
  const counters = [...text.matchAll(/^# TYPE (\S+) counter$/gm)].map(([, name = '']) => name)
  const own = counters.filter((name) => !/^(?:process|nodejs)_/.test(name))
  expect(own).toContain('webhook_out_notices_total')
  const missing = own.filter((name) => !new RegExp(`^${name}(?:\\{[^}]*\\})? 0$`, 'm').test(text))
  expect(missing).toEqual([])
  for (const trigger of ['schedule', 'test', 'replay'])
    for (const error of ['none', ...ERROR_CLASSES])
      expect(readSeries(text, `webhook_out_attempts_total{error="${error}",trigger="${trigger}"}`)).toBe(0)
  for (const event of ['webhook.failing', 'webhook.auto-disable', 'webhook.recovered'])
    expect(readSeries(text, `webhook_out_notices_total{event="${event}"}`)).toBe(0)
  for (const error of ['none', ...ERROR_CLASSES])
    expect(readSeries(text, `provisioning_attempts_total{error="${error}"}`)).toBe(0)
})
