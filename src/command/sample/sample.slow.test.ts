import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { foldOutcomes } from '../../webhook/activity/outcome.store.ts'
import { buildSample, fillSample, type SampleFill } from './sample.ts'
import { MINUTE_MS } from './sample-plan.ts'

const NOW = new Date(Date.UTC(2026, 9, 15, 14, 30))

let app: TestApp
let fill: SampleFill
/** Processor time of this process for the fill: what it takes on a busy machine is not its fault. */
let processorSeconds: number
/** Names that the service looked up: each host of a POST. */
const lookedUp = new Set<string>()

const sampleOptions = () => ({
  ...{ db: app.database.db, keyring: app.app.keyring, now: new Date(app.clock.now()), administrator: app.adminId },
  sinkUrl: `${app.app.baseUrl()}/api/v3/webhook/sink`,
})

beforeAll(async () => {
  app = await createTestApp({
    env: { APP_ENV: 'development', SIGNALBOX_ROLES: 'api' },
    clock: buildManualClock(NOW.getTime()),
    lookup: async (host) => {
      lookedUp.add(host)
      return ['127.0.0.1']
    },
  })
  await app.app.start()
  const before = process.cpuUsage()
  fill = await fillSample(sampleOptions())
  const { user, system } = process.cpuUsage(before)
  processorSeconds = (user + system) / 1e6
})
afterAll(() => app?.[Symbol.asyncDispose]())

const read = async <Row extends object>(text: string) => (await app.database.pool.query<Row>(text)).rows
const list = async (path: string) => (await app.admin('GET', path)).body

describe('the sample', () => {
  test('has a month of traffic, written within 20 s', () => {
    expect(fill).toMatchObject({ accounts: 12, webhooks: 41 })
    expect(fill.events).toBeGreaterThan(8_000)
    expect(fill.deliveries).toBeGreaterThan(20_000)
    // PostgreSQL takes about as long again, beside it.
    expect(processorSeconds).toBeLessThan(10)
  })

  test('has event types of the platform in a group, one of them deprecated', async () => {
    const { data } = await list('/api/v3/webhook/event?filters=group|eq|shop&sort=internal')
    expect(data.length).toBe(7)
    for (const row of data) expect(row.example).toMatchObject({ type: row.internal, attempt: 1 })
    const deprecated = data.filter((row: { deprecated_at: string | null }) => row.deprecated_at !== null)
    expect(deprecated).toMatchObject([{ internal: 'shipment.delay', deprecation_remedy: 'Subscribe to order.ship.' }])
  })

  test('fails in each way, and has webhooks in each state', async () => {
    const classes = await read<{ last_error: string }>(
      `select distinct last_error from webhook_dispatch where last_error is not null`,
    )
    expect(classes.map((row) => row.last_error).sort()).toEqual([
      ...['blocked_address', 'connect', 'dns', 'http_4xx', 'http_5xx', 'redirect', 'reset', 'timeout', 'tls'],
    ])
    const states = await read(
      `select disabled_reason, is_actived, count(*)::int as webhooks from webhook group by 1, 2 order by 1, 2`,
    )
    expect(states).toEqual([
      { disabled_reason: 'consecutive-failures', is_actived: false, webhooks: 3 },
      { disabled_reason: 'legacy-secret-rotation-required', is_actived: false, webhooks: 2 },
      { disabled_reason: null, is_actived: false, webhooks: 1 },
      { disabled_reason: null, is_actived: true, webhooks: 35 },
    ])
    const [{ most } = { most: 0 }] = await read<{ most: number }>(
      'select max(consecutive_failures) as most from webhook where is_actived',
    )
    expect(most, 'one failure before it is disabled').toBe(19)
  })

  test('counts what it holds: minutes, webhooks, totals of provisioning', async () => {
    expect(
      await read(
        `select coalesce(m.status, d.status) as status, m.deliveries, d.deliveries as held from (
           select status, sum(deliveries)::int as deliveries from webhook_delivery_minute group by 1 having sum(deliveries) <> 0
         ) m full join (select status, count(*)::int as deliveries from webhook_dispatch group by 1) d using (status)
         where m.deliveries is distinct from d.deliveries`,
      ),
    ).toEqual([])
    expect(
      await read(
        `select minute from (
           select minute, sum(deliveries)::int as deliveries from webhook_delivery_minute group by 1
         ) m full join (
           select date_trunc('minute', created_at) as minute, count(*)::int as deliveries from webhook_dispatch group by 1
         ) d using (minute) where m.deliveries is distinct from d.deliveries`,
      ),
    ).toEqual([])
    expect(
      await read(
        `select status, came::int - (select count(*) from provisioning_delivery d where d.status = t.status)::int as rest
         from provisioning_total t order by 1`,
      ),
    ).toEqual(['dead_letter', 'delivered', 'failed'].map((status) => ({ status, rest: 0 })))
    const { webhooks } = (await list('/api/v3/webhook/dashboard/summary')).data
    expect(webhooks).toEqual({ active: 35, inactive: 6, auto_disabled: 3 })
  })

  test('shows every attempt of its 30 days in the series of the dashboard', async () => {
    while ((await foldOutcomes(app.database.db, { limit: 1_000 })) > 0);
    const { data } = await list('/api/v3/webhook/dashboard/series?range=30d')
    const [log] = await read<{ attempts: number }>('select count(*)::int as attempts from webhook_attempt_log')
    expect(data.success + data.retrying + data.exhausted + data.failed).toBe(log!.attempts)
    expect(data.exhausted).toBeGreaterThan(0)
  })

  test('gives each delivery its attempts, and each webhook the failures in a row that its ledger has', async () => {
    expect(
      await read(
        `select d.document_id from webhook_dispatch d where d.attempts <> (
           select count(*) from webhook_attempt_log l where l.dispatch = d.document_id) limit 5`,
      ),
    ).toEqual([])
    expect(
      await read(
        `select w.name, w.consecutive_failures, f.failures::int from webhook w cross join lateral (
           select count(*) as failures from webhook_dispatch d
           where d.webhook = w.document_id and d.status in ('exhausted', 'failed') and d.ended_at > coalesce(
             (select max(ended_at) from webhook_dispatch s where s.webhook = w.document_id and s.status = 'success'), 'epoch')
         ) f where f.failures <> w.consecutive_failures`,
      ),
    ).toEqual([])
    expect(
      await read(
        `select d.document_id from webhook_dispatch d
         where not exists (select from event_occurrence e where e.document_id = d.event_id and e.event = d.event
           and e.account is not distinct from d.account and e.routed_at is not null) limit 5`,
      ),
    ).toEqual([])
  })

  test('gives each delivery the id that the router gives the event and the webhook', async () => {
    expect(
      await read(
        `select d.document_id from webhook_dispatch d cross join lateral (select md5(d.event_id::text || d.webhook::text) as hash) h
         where d.document_id <> (substr(d.event_id::text, 1, 14) || '7' || substr(d.event_id::text, 16, 3) || '-8'
           || substr(h.hash, 1, 3) || '-' || substr(h.hash, 4, 12))::uuid limit 5`,
      ),
    ).toEqual([])
  })

  test('has what the explanation of a routing says: nothing is missing, nothing is too much', async () => {
    const events = await read<{ document_id: string }>(
      `select document_id from event_occurrence where account is not null order by created_at desc limit 20`,
    )
    for (const { document_id: id } of events) {
      const { body } = await app.admin('GET', `/api/v3/webhook/event-occurrence/${id}/routing`)
      const ledger = await list(`/api/v3/webhook/dispatch?filters=event_id|eq|${id}&page_size=100`)
      const entries: { basis: string; verdict: string }[] = body.data.webhooks
      expect(entries.filter(({ basis }) => basis === 'ledger').length).toBe(ledger.data.length)
      expect(entries.filter(({ verdict }) => verdict === 'changed_since')).toEqual([])
    }
  })

  test('has a month of realtime connections, decisions about each app, and the last use of its secrets', async () => {
    for (const range of ['1h', '24h', '7d', '30d']) {
      const { data } = await list(`/api/v3/realtime/dashboard/connection?range=${range}`)
      const empty = data.buckets.filter(({ peak }: { peak: number | null }) => peak === null)
      expect(empty.length, range).toBeLessThanOrEqual(2)
      expect(data.peak).toBeGreaterThan(data.average)
    }
    const apps = await list('/api/v3/oauth/client')
    for (const { document_id: id, type } of apps.data) {
      const decisions = (await list(`/api/v3/oauth/client/${id}/decision?page_size=200`)).data
      expect(decisions.map(({ decision }: { decision: string }) => decision)).toContain('approve')
      const secrets = (await list(`/api/v3/oauth/client/${id}/secret`)).data
      expect(secrets.length).toBe(type === 'confidential' ? 1 : 0)
      for (const secret of secrets) expect(secret.last_used_at).not.toBeNull()
    }
  })

  test('leaves health and catalogue as they are', async () => {
    expect((await list('/api/v3/health/component/integration/webhook-out')).data.status).not.toBe('down')
    expect((await list('/api/v3/health/component/stored-secrets')).data.status).toBe('operational')
    expect((await list('/api/v3/health/component/integration/provisioning')).data.status).not.toBe('down')
    expect((await list('/api/v3/webhook/catalogue/status')).data.in_sync).toBe(true)
  })

  test('a delivery of it is replayed at the sink, and nothing is posted anywhere else for a day', async () => {
    const [exhausted] = await read<{ id: string; webhook: string }>(
      `select d.document_id as id, d.webhook from webhook_dispatch d join webhook w on w.document_id = d.webhook
       where d.status = 'exhausted' and w.url like '%/sink?receiver=%' limit 1`,
    )
    expect((await app.admin('POST', `/api/v3/webhook/dispatch/${exhausted!.id}/replay`)).status).toBeLessThan(300)
    for (const hours of [0, 1, 3, 24]) {
      app.clock.advance(hours * 60 * MINUTE_MS)
      await app.settle()
    }
    const replayed = await read(
      `select status, last_status_code from webhook_dispatch where document_id = '${exhausted!.id}'`,
    )
    expect(replayed).toEqual([{ status: 'success', last_status_code: 200 }])
    expect(
      await read(
        `select w.name from webhook_dispatch d join webhook w on w.document_id = d.webhook
         where d.ended_at is null and w.is_actived`,
      ),
    ).toEqual([])
    expect([...lookedUp]).toEqual(['localhost'])
  })
})

test('a second fill adds nothing, and moves the webhooks to the sink of this start', async () => {
  const count = () => read('select (select count(*) from account) as accounts, (select count(*) from webhook_dispatch)')
  const before = await count()
  const sinkUrl = 'http://localhost:4999/api/v3/webhook/sink'
  expect(await fillSample({ ...sampleOptions(), sinkUrl })).toMatchObject({ rows: 0 })
  expect(await count()).toEqual(before)
  const [{ moved } = { moved: 0 }] = await read<{ moved: number }>(
    `select count(*)::int as moved from webhook where url like '${sinkUrl}?receiver=%'`,
  )
  expect(moved).toBe(28)
})

test('the same seed gives the same rows, another seed others', () => {
  const input = {
    ...{ roles: new Map([['member', 'a role']]), eventTypes: new Map(), administrator: app.adminId, now: NOW },
    ...{ sinkUrl: 'http://localhost:3000/api/v3/webhook/sink', seal: (context: string) => context },
    random: { bytes: (length: number) => Buffer.alloc(length) },
  }
  const hash = (seed: number) => {
    const { webhook, session, event_occurrence, audit_log } = buildSample({ ...input, seed })
    const text = JSON.stringify([webhook, session, event_occurrence, audit_log])
    return createHash('sha256').update(text).digest('hex')
  }
  const first = hash(1)
  expect([hash(1), hash(2)].map((item) => item === first)).toEqual([true, false])
})
