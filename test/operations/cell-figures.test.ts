import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TEST_METRICS_TOKEN } from '../harness/app/test-secrets.ts'
import { type CellsService, openCellsService } from '../harness/carriage/cells-service.ts'
import { runCommand } from '../harness/process/command-line.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { buildServiceEnvironment, callService } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

const DASHBOARD = '/api/v3/webhook/dashboard'
const PLACES = [null, 'c1', 'c2'] as const
type Place = (typeof PLACES)[number]

let ground: CellsService
let service: LocalService
/** An account in each database, with its webhooks. */
const accounts = new Map<Place, string>()
const webhooks = new Map<Place, string>()

beforeAll(async () => {
  ground = await openCellsService()
  for (const place of PLACES) {
    const account = await ground.addAccount(`In ${place ?? 'home'}`, place)
    accounts.set(place, account)
    await fill(place, account)
  }
  service = await ground.start({ CELL_DISK_BYTES: `c1=1000000000000,c2=${await fillDisk('c2')}` })
}, 180_000)
afterAll(() => ground?.[Symbol.asyncDispose]())

/** Writes an active and a disabled webhook with a waiting, a successful and an exhausted delivery, and their sums. */
async function fill(place: Place, account: string): Promise<void> {
  const { pool } = ground.at(place)
  const [active, disabled] = [randomUUID(), randomUUID()]
  webhooks.set(place, active)
  await pool.query(
    `insert into webhook (document_id, url, account, secret_encrypted, is_actived, disabled_reason, created_at, updated_at)
     values ($1, 'https://a.example/', $3, '', true, null, now(), now()),
       ($2, 'https://b.example/', $3, '', false, 'consecutive-failures', now(), now())`,
    [active, disabled, account],
  )
  await pool.query(
    `insert into webhook_event (document_id, webhook, event, created_at, updated_at)
     values (gen_random_uuid(), $1, $2, now(), now())`,
    [active, ground.eventType],
  )
  await pool.query(
    `insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, created_at, updated_at,
       ended_at, worker, last_attempt_at)
     select gen_random_uuid(), $1, gen_random_uuid(), 'order.create', $2, s, 1, now(), now(), now(), 'w', now()
     from unnest(array['success', 'exhausted']) s`,
    [active, account],
  )
  await pool.query(
    `insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, status, attempts, next_attempt_at, created_at,
       updated_at)
     values (gen_random_uuid(), $1, gen_random_uuid(), 'order.create', $2, 'retrying', 1, now() + interval '1 hour', now(), now())`,
    [active, account],
  )
  await pool.query(
    `insert into webhook_queue (webhook, visit_at) values ($1, now() + interval '1 hour') on conflict do nothing`,
    [active],
  )
  await pool.query(
    `insert into webhook_delivery_minute (minute, status, shard, came, deliveries)
     select date_trunc('minute', now()), s, 0, 1, 1 from unnest(array['success', 'exhausted', 'retrying']) s
     on conflict (minute, status, shard) do update
     set came = webhook_delivery_minute.came + 1, deliveries = webhook_delivery_minute.deliveries + 1`,
  )
  await pool.query(
    `insert into webhook_outcome (scope, width, at, measure, count)
     select s, 'hour', date_trunc('hour', now()), m, 1
     from unnest(array[$1::uuid, '00000000-0000-0000-0000-000000000000']) s, unnest(array['success', 'exhausted', 'duration:3']) m
     on conflict (scope, width, at, measure) do update set count = webhook_outcome.count + 1`,
    [account],
  )
  await pool.query(
    `insert into webhook_breakdown (subject, at, width, measure, attempts, failed)
     select s, date_trunc('hour', now()), 'hour', 'event:order.create', 2, 1
     from unnest(array[$1::uuid, '00000000-0000-0000-0000-000000000000']) s on conflict do nothing`,
    [account],
  )
  await pool.query(
    `insert into activity_sum (kind, width, at, measure, count) values ('realtime', 'hour', date_trunc('hour', now()), 'published', 5)
     on conflict do nothing`,
  )
}

/** Writes a day of events into a cell. Returns the size of a disk that has little room for more. */
async function fillDisk(place: Place): Promise<number> {
  const { pool } = ground.at(place)
  await pool.query(
    `insert into event_occurrence (document_id, event, resource, action, created_at, routed_at)
     select gen_random_uuid(), 'a.b', 'a', 'b', now() - n * interval '72 seconds', now() from generate_series(1200, 1, -1) n`,
  )
  const { rows } = await pool.query('select pg_database_size(current_database())::int as bytes')
  return rows[0].bytes + 100_000
}

const of = (place: Place) => accounts.get(place) as string
const hookOf = (place: Place) => webhooks.get(place) as string
const get = async (path: string, call: LocalService['call'] = service.call) => {
  const { status, body } = await call('GET', path)
  expect([path, status, body.detail]).toEqual([path, 200, undefined])
  return body
}
const scrape = async () =>
  (await service.call('GET', '/metrics', undefined, { authorization: `Bearer ${TEST_METRICS_TOKEN}` })).body as string
/** Calls the API by a key that is bound to an account. */
async function actAs(account: string): Promise<LocalService['call']> {
  const made = await service.call('POST', '/api/v3/identity/api-key', {
    ...{ name: 'Bound', account, permissions: ['webhook:*', 'webhook-dispatch:*'] },
  })
  return (method, path, body) => callService({ url: service.url, token: made.body.data.key }, { method, path, body })
}

describe('figures of an operator are those of all databases', () => {
  test('the summary', async () => {
    const { data, missing_cells: missing } = await get(`${DASHBOARD}/summary`)
    expect(missing).toBeUndefined()
    expect(data).toMatchObject({
      deliveries_24h: { success: 3, exhausted: 3, retrying: 3, pending: 0 },
      ...{ is_complete: true, exhausted: { last_24h: 3 }, webhooks: { active: 3, inactive: 3, auto_disabled: 3 } },
      catalogue: { in_sync: true },
    })
    expect(data.recent_failures.map(({ webhook }: { webhook: string }) => webhook).sort()).toEqual(
      PLACES.map(hookOf).sort(),
    )
    expect(data.series_24h.at(-1)).toMatchObject({ success: 3, failed: 3 })
  })

  test('series, event types, realtime messages, the queue', async () => {
    expect((await get(`${DASHBOARD}/series`)).data).toMatchObject({ success: 3, exhausted: 3, buckets: { length: 24 } })
    expect((await get(`${DASHBOARD}/event`)).data.events).toEqual([{ event: 'order.create', attempts: 6, failed: 3 }])
    expect((await get('/api/v3/realtime/dashboard/message')).data.published).toBe(15)
    expect((await get(`${DASHBOARD}/queue`)).data.retry).toMatchObject({
      waiting: 3,
      next_attempt_at: expect.any(String),
    })
  })

  test('webhooks and accounts, in the order of the request', async () => {
    const asked = [...PLACES].reverse()
    const hooks = asked.map((place) => `webhook=${hookOf(place)}`).join('&')
    const { data } = await get(`${DASHBOARD}/webhook?${hooks}&webhook=${randomUUID()}`)
    expect(data.map(({ webhook }: { webhook: string }) => webhook)).toEqual(asked.map(hookOf))
    expect(data.map(({ event_types: types }: { event_types: number }) => types)).toEqual([1, 1, 1])
    const ids = asked.map((place) => `account=${of(place)}`).join('&')
    expect((await get(`${DASHBOARD}/account?${ids}`)).data).toEqual(
      asked.map((place) => ({ account: of(place), members: 0, webhooks: 2, success: 1, exhausted: 1, failed: 0 })),
    )
  })

  test('subscribers, and the forecast of a routing', async () => {
    const { data } = await get('/api/v3/webhook/catalogue/subscribers')
    expect(data.find(({ internal }: { internal: string }) => internal === 'order.create').subscribers).toBe(3)
    const forecast = `/api/v3/webhook/event/${ground.eventType}/routing`
    const predicted = await get(`${forecast}?account=${of('c1')}`)
    expect(predicted.data.webhooks).toHaveLength(2)
    expect(predicted.data.webhooks).toContainEqual(
      expect.objectContaining({ webhook: hookOf('c1'), verdict: 'deliver', account: of('c1') }),
    )
    const one = await get(`${forecast}?account=${of('c1')}&webhook=${hookOf('c2')}`)
    expect(one.data.webhooks).toMatchObject([{ webhook: hookOf('c2'), verdict: 'other_account' }])
    expect((await service.call('GET', `/api/v3/webhook/event/${randomUUID()}/routing`)).status).toBe(404)
  })

  test('health and metrics', async () => {
    const read = async () => (await get('/api/v3/health/component/integration/webhook-out')).data
    await waitFor('a look at all cells', async () => (await read()).details.auto_disabled === 3)
    const data = await read()
    expect(data).toMatchObject({ status: 'degraded', details: { exhausted_24h: 3 } })
    expect(data.details.missing_cells).toBeUndefined()
    const text = await scrape()
    for (const line of [
      'webhook_out_auto_disabled 3',
      'cell_deliveries_total{cell="c1",status="success"} 1',
      'cell_deliveries_total{cell="c1",status="failed"} 0',
      'webhook_out_deliveries_total{status="success"} 1',
      'cells_missing 0',
    ])
      expect(text).toContain(line)
  })
})

test('the disk of each cell has a forecast, in the metrics and in the health', async () => {
  await waitFor('the sizes of cells', async () => (await scrape()).match(/^cell_database_size_bytes/gm)?.length === 2)
  const text = await scrape()
  const read = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
  const [size, free] = ['size', 'disk_free'].map((name) => read(`cell_database_${name}_bytes{cell="c1"}`))
  expect(size! + free!).toBe(1e12)
  expect(text).toContain('cell_database_disk_full_seconds{cell="c1"} +Inf')
  const full = read('cell_database_disk_full_seconds{cell="c2"}')
  expect(full).toBeGreaterThanOrEqual(0)
  expect(full).toBeLessThan(2 * 86_400)
  const { components } = (await get('/api/v3/health')).data
  const { status, details } = components.find(({ component }: { component: string }) => component === 'cells')
  expect(status).toBe('degraded')
  expect(details.cells).toMatchObject([
    { name: 'c1', disk_full_s: null },
    { name: 'c2', disk_full_s: expect.any(Number) },
  ])
  expect(details.remedy).toContain('Give the cell a larger disk')
})

describe('figures of a caller of one account are those of its database', () => {
  test.each(PLACES)('in %s, and none of others', async (place) => {
    const call = await actAs(of(place))
    const summary = (await get(`${DASHBOARD}/summary`, call)).data
    expect(summary).toMatchObject({
      deliveries_24h: { success: 1, exhausted: 1, retrying: 1 },
      ...{ webhooks: { active: 1, inactive: 1, auto_disabled: 1 }, catalogue: null },
    })
    expect(summary.recent_failures).toMatchObject([{ webhook: hookOf(place) }])
    expect((await get(`${DASHBOARD}/series`, call)).data.success).toBe(1)
    expect((await get(`${DASHBOARD}/event`, call)).data.events).toMatchObject([{ attempts: 2 }])
    const hooks = PLACES.map((one) => `webhook=${hookOf(one)}`).join('&')
    expect((await get(`${DASHBOARD}/webhook?${hooks}`, call)).data).toMatchObject([{ webhook: hookOf(place) }])
    const ids = PLACES.map((one) => `account=${of(one)}`).join('&')
    const known = (await get(`${DASHBOARD}/account?${ids}`, call)).data
    expect(known).toEqual([{ account: of(place), members: null, webhooks: 2, success: 1, exhausted: 1, failed: 0 }])
    for (const path of ['queue', 'nothing'])
      expect((await call('GET', `${DASHBOARD}/${path}`)).status).toBe(path === 'queue' ? 403 : 404)
  })
})

test.each(PLACES)(
  'the search of the console finds a webhook, a delivery and an event in %s, and their screens read them',
  async (place) => {
    const { pool } = ground.at(place)
    const event = randomUUID()
    await pool.query(
      `insert into event_occurrence (document_id, event, resource, action, account, created_at, routed_at)
     values ($1, 'order.create', 'order', 'create', $2, now(), now())`,
      [event, of(place)],
    )
    const { rows } = await pool.query('select document_id as id from webhook_dispatch where webhook = $1', [
      hookOf(place),
    ])
    expect(rows).toHaveLength(3)
    for (const [kind, id] of [
      ['webhook', hookOf(place)],
      ['event-occurrence', event],
      ...rows.map((row) => ['dispatch', row.id]),
    ]) {
      // As `find` of the console asks: a list by the id.
      const found = await get(`/api/v3/webhook/${kind}?filters=document_id|eq|${id}&page_size=1`)
      expect(found.data).toMatchObject([{ document_id: id }])
      expect((await get(`/api/v3/webhook/${kind}/${id}`)).data).toMatchObject({ document_id: id })
    }
    const nobody = `filters=document_id|eq|${randomUUID()}&page_size=1`
    for (const kind of ['webhook', 'event-occurrence', 'dispatch'])
      expect((await get(`/api/v3/webhook/${kind}?${nobody}`)).data).toEqual([])
  },
)

test('an account that has moved is counted where it is, not where it left rows', async () => {
  const account = await ground.addAccount('Moved', null)
  const ofOthers = new Map(webhooks)
  await fill(null, account)
  const before = hookOf(null)
  await ground.place(account, 'c2')
  await fill('c2', account)
  const call = await actAs(account)
  expect((await get(`${DASHBOARD}/summary`, call)).data).toMatchObject({
    deliveries_24h: { success: 1 },
    webhooks: { active: 1 },
    recent_failures: [{ webhook: hookOf('c2') }],
  })
  expect((await get(`${DASHBOARD}/account?account=${account}`)).data).toMatchObject([{ webhooks: 2, success: 1 }])
  expect((await get(`${DASHBOARD}/webhook?webhook=${before}`, call)).data).toEqual([])
  for (const [place, webhook] of ofOthers) webhooks.set(place, webhook)
})

describe.each(['refusing', 'paused'] as const)('while a cell is away (%s)', (state) => {
  beforeAll(() => ground.proxies.c1.set(state))
  afterAll(() => ground.proxies.c1.set('open'))

  test('answers name it, and have what the others say', async () => {
    for (const path of ['summary', 'series', 'event', 'queue', `account?account=${of('c1')}&account=${of(null)}`])
      expect([path, (await get(`${DASHBOARD}/${path}`)).missing_cells]).toEqual([path, ['c1']])
    const { data } = await get(`${DASHBOARD}/account?account=${of('c1')}&account=${of(null)}`)
    expect(data).toMatchObject([
      { account: of('c1'), success: 0 },
      { account: of(null), webhooks: 2, success: 1 },
    ])
    expect((await get('/api/v3/webhook/catalogue/subscribers')).missing_cells).toEqual(['c1'])
    const forecast = `/api/v3/webhook/event/${ground.eventType}/routing`
    expect((await get(`${forecast}?account=${of('c1')}`)).missing_cells).toEqual(['c1'])
    expect((await get(`${forecast}?account=${of('c2')}`)).missing_cells).toBeUndefined()
  }, 60_000)

  test('the health names it', async () => {
    for (const path of ['integration/webhook-out', 'stored-secrets'])
      await waitFor(`the gap in ${path}`, async () => {
        const { details } = (await get(`/api/v3/health/component/${path}`)).data
        return details.missing_cells?.join() === 'c1'
      })
    await waitFor('the metric', async () => (await scrape()).includes('cells_missing 1'))
  }, 60_000)

  test('its caller is told that it is away, and others notice nothing', async () => {
    const [theirs, others] = [await actAs(of('c1')), await actAs(of('c2'))]
    const refused = await theirs('GET', `${DASHBOARD}/summary`)
    expect([refused.status, refused.body.code]).toEqual([503, 'dependency_unavailable'])
    expect(refused.body.detail).toContain('c1')
    expect((await get(`${DASHBOARD}/summary`, others)).missing_cells).toBeUndefined()
  }, 60_000)
})

test('the command about the catalogue counts the subscribers of all databases, and names a cell that is away', async () => {
  const stale = randomUUID()
  for (const place of PLACES) {
    const { pool } = ground.at(place)
    await pool.query(
      `insert into event (document_id, internal, source, account_scope, created_at, updated_at)
       values ($1, 'former.create', 'route', 'account', now(), now())`,
      [stale],
    )
    await pool.query(
      `insert into webhook_event (document_id, webhook, event, created_at, updated_at)
       values (gen_random_uuid(), $1, $2, now(), now())`,
      [hookOf(place), stale],
    )
  }
  const run = async () => {
    const env = buildServiceEnvironment(ground.at(null).connectionString)
    const { code, stdout, stderr } = await runCommand(['catalogue', 'status'], { env })
    const { subscribers } = JSON.parse(stdout).stale.find(
      ({ internal }: { internal: string }) => internal === 'former.create',
    )
    return { code, stderr, subscribers }
  }
  expect(await run()).toEqual({ code: 0, stderr: '', subscribers: 3 })
  ground.proxies.c1.set('refusing')
  try {
    expect(await run()).toMatchObject({ code: 1, stderr: expect.stringContaining('The cell c1 was'), subscribers: 2 })
  } finally {
    ground.proxies.c1.set('open')
  }
})
