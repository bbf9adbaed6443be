import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildKeyring } from '../../src/base/keyring.ts'
import { systemRandom } from '../../src/base/random.ts'
import { TEST_SECRETS } from '../harness/app/test-secrets.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../harness/fakes/proxy.ts'
import type { Receiver } from '../harness/fakes/receiver.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { callService } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

/** Without a server behind it: what crosses databases waits. */
const LOG = { EVENT_LOG_URL: 'nats://127.0.0.1:1' }
const WEBHOOKS = '/api/v3/webhook/webhook'
const OTHER = '0199aaaa-0000-7000-8000-00000000000b'

let home: TestDatabase
let cell: TestDatabase
/** Between the service and the cell. */
let proxy: DatabaseProxy
let fixture: DeliveryFixture
let service: LocalService
let receiver: Receiver
let account: string
let orderEvent: string

beforeAll(async () => {
  home = await createTestDatabase({ content: 'prepared', isOwn: true })
  cell = await createTestDatabase({ content: 'prepared', isOwn: true })
  fixture = await openDeliveryFixture(home)
  receiver = await fixture.receive()
  account = fixture.account
  await home.pool.query(
    `insert into account (document_id, name, created_at, updated_at) values ($1, 'Other', now(), now())`,
    [OTHER],
  )
  await home.pool.query(
    `insert into event (document_id, internal, source, account_scope, is_tenant_visible, created_at, updated_at)
     values (gen_random_uuid(), 'order.create', 'external', 'account', true, now(), now())`,
  )
  // What logical replication brings.
  for (const [table, column] of [
    ['account', 'document_id'],
    ['event', 'document_id'],
  ]) {
    const { rows } = await home.pool.query(`select to_json(t)::text as row from ${table} t`)
    for (const { row } of rows)
      await cell.pool.query(
        `insert into ${table} select * from json_populate_record(null::${table}, $1::json) on conflict (${column}) do nothing`,
        [row],
      )
  }
  orderEvent = (await home.pool.query(`select document_id from event where internal = 'order.create'`)).rows[0]
    .document_id
  const id = randomUUID()
  for (const [database, name] of [
    [home, null],
    [cell, 'c1'],
  ] as const) {
    await database.pool.query('insert into database_identity (home, cell) values ($1, $2)', [id, name])
    await database.pool.query('select open_fence()')
  }
  proxy = await startDatabaseProxy(cell.connectionString)
  const url = buildKeyring(TEST_SECRETS.secretKey, systemRandom).seal(proxy.connectionString, 'cell:c1')
  await home.pool.query(
    `insert into cell (name, database_url_encrypted, state, created_at, updated_at) values ('c1', $1, 'active', now(), now())`,
    [url],
  )
  await place(account, 'c1')
  service = await fixture.startLocal({ env: LOG })
})
afterAll(async () => {
  await fixture?.[Symbol.asyncDispose]()
  await proxy?.[Symbol.asyncDispose]()
  for (const database of [home, cell]) await database?.[Symbol.asyncDispose]()
})

/** Puts an account into the cell or home, as the last step of a move does; `isTold`: the directory says so. */
async function place(one: string, at: 'c1' | null, isTold = true): Promise<void> {
  const write = `insert into account_fence (account, version, state) values ($1, 1, $2)
    on conflict (account) do update set state = excluded.state`
  await home.pool.query(write, [one, at === null ? 'open' : 'gone'])
  await cell.pool.query(write, [one, at === null ? 'gone' : 'open'])
  if (!isTold) return
  await home.pool.query(
    `insert into account_cell (account, cell, version) values ($1, $2, 1)
     on conflict (account) do update set cell = excluded.cell, version = account_cell.version + 1`,
    [one, at],
  )
}

const count = async (database: TestDatabase, table: string, where = 'true', values: unknown[] = []) =>
  Number((await database.pool.query(`select count(*) from ${table} where ${where}`, values)).rows[0].count)

const makeWebhook = async (body: object = {}, headers?: Record<string, string>) =>
  service.call('POST', WEBHOOKS, { url: `${receiver.origin}/own`, account, name: 'Own', ...body }, headers)

test('the webhook of an account in a cell is made, read, changed and purged there', async () => {
  const made = await makeWebhook({ events: ['order.create'] }, { 'idempotency-key': 'make' })
  expect(made.status).toBe(201)
  const id = made.body.data.document_id
  const path = `${WEBHOOKS}/${id}`
  expect(await count(cell, 'webhook', 'document_id = $1', [id])).toBe(1)
  expect(await count(home, 'webhook', 'document_id = $1', [id])).toBe(0)
  for (const [table, where] of [
    ['audit_log', `action = 'webhook.create' and target = '${id}'`],
    ['event_occurrence', `event = 'webhook.create' and resource_id = '${id}'`],
    ['idempotency_key', `key = 'make'`],
  ] as const) {
    expect([table, await count(cell, table, where)]).toEqual([table, 1])
    expect([table, await count(home, table, where)]).toEqual([table, 0])
  }
  const repeated = await makeWebhook({ events: ['order.create'] }, { 'idempotency-key': 'make' })
  expect(repeated.body.data.document_id).toBe(id)
  expect(repeated.headers['idempotency-replayed']).toBe('true')

  expect((await service.call('GET', path)).body.data.name).toBe('Own')
  expect((await service.call('PATCH', path, { name: 'Renamed' })).body.data.name).toBe('Renamed')
  expect((await service.call('PATCH', path, { nothing: 1 })).status).toBe(422)
  const set = await service.call('GET', `${path}/events`)
  expect(set.body.data.events.map(({ internal }: { internal: string }) => internal)).toContain('order.create')
  const ofWebhook = `filters=webhook|eq|${id}&filters=event|eq|${orderEvent}`
  const [link] = (await service.call('GET', `/api/v3/webhook/webhook-event?${ofWebhook}`)).body.data
  const linkPath = `/api/v3/webhook/webhook-event/${link.document_id}`
  expect((await service.call('GET', linkPath)).body.data.webhook).toBe(id)
  expect((await service.call('DELETE', linkPath)).status).toBe(200)
  const again = { webhook: id, event: orderEvent }
  expect((await service.call('POST', '/api/v3/webhook/webhook-event', again)).status).toBe(201)
  const listed = await service.call('GET', `${WEBHOOKS}?filters=account|eq|${account}`)
  expect(listed.body.data.map(({ document_id }: { document_id: string }) => document_id)).toEqual([id])

  expect((await service.call('DELETE', `${path}/purge`, undefined, { 'idempotency-key': 'purge' })).status).toBe(200)
  // The row is gone, and the answer that is kept is still found.
  const purged = await service.call('DELETE', `${path}/purge`, undefined, { 'idempotency-key': 'purge' })
  expect([purged.status, purged.headers['idempotency-replayed']]).toEqual([200, 'true'])
  expect((await service.call('GET', path)).status).toBe(404)
})

test('a publication for it is delivered from the cell, and its delivery is read, replayed and tested there', async () => {
  const id = (await makeWebhook({ events: ['order.create'] })).body.data.document_id
  const before = receiver.requests.length
  const published = await service.call('POST', '/api/v3/webhook/publish', { event: 'order.create', account, id: '1' })
  expect(published.status).toBe(202)
  const [{ event_id: event }] = published.body.data.events
  await waitFor('a delivery', () => receiver.requests.length === before + 1)
  expect(await count(home, 'event_occurrence', 'document_id = $1', [event])).toBe(0)
  const ended = () => count(cell, 'webhook_dispatch', `event_id = $1 and status = 'success'`, [event])
  await waitFor('its result', async () => (await ended()) === 1)
  const filter = `event_id|eq|${event}`
  const [row] = (await service.call('GET', `/api/v3/webhook/dispatch?filters=${filter}`)).body.data
  const exported = await service.call('GET', `/api/v3/webhook/dispatch/export?filters=webhook|eq|${id}`)
  expect(exported.body).toMatchObject([{ document_id: row.document_id }])
  const many = { filters: [`webhook|eq|${id}`], confirm_duplicate: true, dry_run: true }
  const preview = await service.call('POST', '/api/v3/webhook/dispatch/replay', many)
  expect(preview.body.data.would_replay).toBe(1)
  const dispatch = `/api/v3/webhook/dispatch/${row.document_id}`
  expect((await service.call('GET', dispatch)).body.data).toMatchObject({ status: 'success', attempts: 1 })
  expect((await service.call('POST', `${dispatch}/replay`, { confirm_duplicate: true })).status).toBe(202)
  await waitFor('the replay', () => receiver.requests.length === before + 2)
  expect((await service.call('POST', `${WEBHOOKS}/${id}/test`)).status).toBe(202)
  await waitFor('the test', () => receiver.requests.length === before + 3)
  const read = `/api/v3/webhook/event-occurrence/${event}`
  expect((await service.call('GET', read)).body.data.account).toBe(account)
  const explained = await service.call('GET', `${read}/routing`)
  expect(explained.body.data.webhooks).toMatchObject([{ webhook: id, verdict: 'delivered' }])
  const summary = await service.call('GET', `/api/v3/webhook/dashboard/webhook/${id}`)
  expect(summary.status).toBe(200)
})

test('a batch of several databases is checked as a whole, and each takes its part in the order of the answer', async () => {
  const entry = (owner: string, id: string) => ({ event: 'order.create', account: owner, id })
  const events = [entry(account, 'a'), entry(OTHER, 'b'), entry(account, 'c')]
  const sum = async () => (await count(home, 'event_occurrence')) + (await count(cell, 'event_occurrence'))
  const before = await sum()
  const wrong = [...events, { ...entry(OTHER, 'd'), event: 'order.unknown' }]
  const refused = await service.call('POST', '/api/v3/webhook/publish', { events: wrong })
  expect([refused.status, refused.body.errors[0].path]).toEqual([422, 'events.3.event'])
  expect(await sum()).toBe(before)
  const headers = { 'idempotency-key': 'batch' }
  const published = await service.call('POST', '/api/v3/webhook/publish', { events }, headers)
  expect([published.status, published.body.data.accepted]).toEqual([202, 3])
  const ids = published.body.data.events.map(({ event_id: id }: { event_id: string }) => id)
  const resourceOf = async (database: TestDatabase) =>
    (
      await database.pool.query(
        `select resource_id from event_occurrence where document_id = any($1) order by array_position($1, document_id)`,
        [ids],
      )
    ).rows.map(({ resource_id: id }) => id)
  expect(await resourceOf(cell)).toEqual(['a', 'c'])
  expect(await resourceOf(home)).toEqual(['b'])
  const repeated = await service.call('POST', '/api/v3/webhook/publish', { events }, headers)
  expect(repeated.body.data.events).toEqual(published.body.data.events)
  expect(await sum()).toBe(before + 3)
})

test('a webhook does not change its database with its owner, and a global one is made in home', async () => {
  const id = (await makeWebhook()).body.data.document_id
  const moved = await service.call('PATCH', `${WEBHOOKS}/${id}`, { account: OTHER })
  expect([moved.status, moved.body.code]).toEqual([409, 'conflict'])
  expect(moved.body.detail).toContain('signalbox account move')
  expect((await service.call('PATCH', `${WEBHOOKS}/${id}`, { is_global: true })).status).toBe(409)
  const global = await makeWebhook({ account: undefined, is_global: true })
  expect(await count(home, 'webhook', 'document_id = $1', [global.body.data.document_id])).toBe(1)
  await service.call('DELETE', `${WEBHOOKS}/${global.body.data.document_id}`)
})

test('a caller of one account gets what is in its cell, and nothing of others', async () => {
  const id = (await makeWebhook()).body.data.document_id
  const foreign = (await makeWebhook({ account: OTHER })).body.data.document_id
  expect(await count(home, 'webhook', 'document_id = $1', [foreign])).toBe(1)
  const token = await makeKey(account)
  const call = (method: string, path: string, body?: object) =>
    callService({ url: service.url, token }, { method, path, body })
  const listed = await call('GET', WEBHOOKS)
  expect(listed.body.data.map(({ document_id: one }: { document_id: string }) => one)).toContain(id)
  expect(listed.body.data.every((row: { account: string }) => row.account === account)).toBe(true)
  expect((await call('GET', '/api/v3/webhook/dispatch')).body.data.length).toBeGreaterThan(0)
  expect((await call('GET', '/api/v3/webhook/event-occurrence')).body.data.length).toBeGreaterThan(0)
  expect((await call('GET', '/api/v3/webhook/dashboard/summary')).status).toBe(200)
  expect((await call('GET', `${WEBHOOKS}/${id}`)).status).toBe(200)
  for (const [method, path, body] of [
    ['GET', foreign, undefined],
    ['PATCH', foreign, { account }],
    ['DELETE', `${foreign}/purge`, undefined],
  ] as const)
    expect((await call(method, `${WEBHOOKS}/${path}`, body)).status).toBe(404)
  expect((await call('PATCH', `${WEBHOOKS}/${id}`, { account: OTHER })).status).toBe(403)
  expect((await call('POST', WEBHOOKS, { url: receiver.origin, account: OTHER })).status).toBe(403)
  const both = [account, OTHER].map((one) => ({ event: 'order.create', account: one, id: '1' }))
  const before = await count(cell, 'event_occurrence')
  expect((await call('POST', '/api/v3/webhook/publish', { events: both })).status).toBe(403)
  expect(await count(cell, 'event_occurrence')).toBe(before)
})

test('pulls wait in the cell', async () => {
  const body = { mode: 'pull', account, url: undefined, events: ['order.create'] }
  const id = (await makeWebhook(body)).body.data.document_id
  const pulled = service.call('POST', `${WEBHOOKS}/${id}/pull`, { wait_seconds: 20 })
  await service.call('POST', '/api/v3/webhook/publish', { event: 'order.create', account, id: 'pulled' })
  const { deliveries } = (await pulled).body.data
  expect(deliveries).toHaveLength(1)
  const receipts = [deliveries[0].receipt]
  const acknowledged = await service.call('POST', `${WEBHOOKS}/${id}/ack`, { receipts })
  expect(acknowledged.body.data.receipts).toMatchObject([{ status: 'acknowledged' }])
})

test('a stale directory is read again, and an account that is nowhere open is 503', async () => {
  const publish = (id: string) =>
    service.call('POST', '/api/v3/webhook/publish', { event: 'order.create', account: OTHER, id })
  expect((await publish('before')).status).toBe(202)
  expect((await makeWebhook({ account: OTHER })).status).toBe(201)
  await place(OTHER, 'c1', false)
  for (const refused of [await publish('moving'), await makeWebhook({ account: OTHER })]) {
    expect([refused.status, refused.body.code]).toEqual([503, 'account_moving'])
    expect(refused.headers['retry-after']).toBe('5')
  }
  // As a change of the directory whose notification is late.
  await home.pool.query('alter table account_cell disable trigger invalidate')
  await place(OTHER, 'c1')
  const answers = await Promise.all(['1', '2', '3', '4'].map(publish))
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202])
  const made = await makeWebhook({ account: OTHER })
  expect(made.status).toBe(201)
  expect(await count(cell, 'event_occurrence', 'account = $1', [OTHER])).toBeGreaterThanOrEqual(5)
  await home.pool.query('alter table account_cell enable trigger invalidate')
})

test('what is published while an account changes its database is in one of them, or was refused', async () => {
  const accepted: string[] = []
  const others = new Set<string>()
  let isOver = false
  const publishOn = async () => {
    while (!isOver) {
      const sent = { event: 'order.create', account: OTHER, id: 'during' }
      const { status, body } = await service.call('POST', '/api/v3/webhook/publish', sent)
      if (status === 202) accepted.push(body.data.events[0].event_id)
      else others.add(`${status} ${body.code}`)
    }
  }
  const publishers = [publishOn(), publishOn(), publishOn(), publishOn()]
  for (const at of [null, 'c1', null, 'c1'] as const) {
    const before = accepted.length
    await place(OTHER, at)
    await waitFor('publications after the change', () => accepted.length > before + 4)
  }
  isOver = true
  await Promise.all(publishers)
  expect([...others].filter((one) => one !== '503 account_moving')).toEqual([])
  const [there, here] = await Promise.all(
    [cell, home].map((database) => count(database, 'event_occurrence', 'document_id = any($1)', [accepted])),
  )
  expect([(there ?? 0) + (here ?? 0), (there ?? 0) > 0, (here ?? 0) > 0]).toEqual([accepted.length, true, true])
})

test('a cell that is away is named, and what is in home is served', async () => {
  const id = (await makeWebhook()).body.data.document_id
  await place(OTHER, null)
  proxy.set('refusing')
  try {
    const late = await fixture.startLocal({ env: LOG })
    for (const { call } of [service, late])
      for (const answer of [
        await call('GET', `${WEBHOOKS}/${id}`),
        await call('GET', `${WEBHOOKS}/${randomUUID()}`),
        await call('POST', WEBHOOKS, { url: `${receiver.origin}/own`, account }),
        await call('GET', `${WEBHOOKS}?filters=account|eq|${account}`),
        await call('POST', '/api/v3/webhook/publish', { event: 'order.create', account, id: '1' }),
      ]) {
        expect([answer.status, answer.body.code]).toEqual([503, 'dependency_unavailable'])
        expect(answer.body.detail).toContain('The cell c1 does not answer')
      }
    await late.stop()
    const published = { event: 'order.create', account: OTHER, id: '1' }
    expect((await service.call('POST', '/api/v3/webhook/publish', published)).status).toBe(202)
    const made = await makeWebhook({ account: OTHER })
    expect((await service.call('GET', `${WEBHOOKS}/${made.body.data.document_id}`)).status).toBe(200)
  } finally {
    proxy.set('open')
  }
})

/** An API key bound to an account, with every permission of webhooks there. */
async function makeKey(of: string): Promise<string> {
  const made = await service.call('POST', '/api/v3/identity/api-key', {
    name: 'Bound',
    account: of,
    permissions: ['webhook:*', 'webhook-dispatch:*', 'event-occurrence:*', 'event:publish'],
  })
  expect([made.status, made.body]).toMatchObject([201, {}])
  return made.body.data.key
}
