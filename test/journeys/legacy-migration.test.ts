import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrate, readMigrations } from '../../src/postgres/migration/migrate.ts'
import { createTestApp, type TestApp } from '../harness/app/app.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { type Receiver, startReceiver } from '../harness/fakes/receiver.ts'

const BEFORE = '0001_before_the_release'
const REASON = 'legacy-secret-rotation-required'
const WEBHOOKS = '/api/v3/webhook/webhook'
const OLD_AT = new Date('2026-03-01T08:00:00.000Z')

/** Rows as the code before the release wrote them. */
const LEGACY = {
  user: randomUUID(),
  account: randomUUID(),
  event: randomUUID(),
  goneEvent: randomUUID(),
  contract: randomUUID(),
  webhooks: {
    active: randomUUID(),
    inactive: randomUUID(),
    insecure: randomUUID(),
    deleted: randomUUID(),
  },
}
const OLD_SECRET = 'an-old-secret-that-anybody-could-read'

/** Ledger rows of the old sender: status and attempts. */
const DISPATCHES = [
  { id: randomUUID(), status: 'success', retry: 0, error: null },
  { id: randomUUID(), status: 'delivered', retry: 1, error: null },
  { id: randomUUID(), status: 'failed', retry: 3, error: 'HTTP 500' },
  { id: randomUUID(), status: 'pending', retry: 0, error: null },
  { id: randomUUID(), status: 'retrying', retry: 4, error: 'timeout' },
  { id: randomUUID(), status: 'error', retry: 9, error: 'socket hang up' },
]

let database: TestDatabase
let receiver: Receiver
let app: TestApp
let before: Record<string, unknown[]>
let ran: string[]

const select = async (sql: string) => (await database.pool.query(sql)).rows

async function insertLegacyRows(origin: string) {
  const { pool } = database
  await pool.query(
    `insert into "user" (document_id, email, created_at, updated_at) values ($1, 'old@example.com', $2, $2)`,
    [LEGACY.user, OLD_AT],
  )
  await pool.query(
    `insert into account (document_id, name, created_by, created_at, updated_at) values ($1, 'Old Ltd', $2, $3, $3)`,
    [LEGACY.account, LEGACY.user, OLD_AT],
  )
  await pool.query(
    `insert into account_member (document_id, account, "user", created_at, updated_at) values ($1, $2, $3, $4, $4)`,
    [randomUUID(), LEGACY.account, LEGACY.user, OLD_AT],
  )
  await pool.query(
    `insert into contract (document_id, account, name, status, created_at, updated_at) values ($1, $2, 'Old lease', 'active', $3, $3)`,
    [LEGACY.contract, LEGACY.account, OLD_AT],
  )
  for (const [id, name] of [
    [LEGACY.event, 'contract.create'],
    [LEGACY.goneEvent, 'ledger.closed'],
  ])
    await pool.query('insert into event (document_id, internal, created_at, updated_at) values ($1, $2, $3, $3)', [
      id,
      name,
      OLD_AT,
    ])
  const urls = {
    active: `${origin}/old`,
    inactive: `${origin}/off`,
    insecure: 'http://old.example.com/hook',
    deleted: `${origin}/gone`,
  }
  for (const [kind, id] of Object.entries(LEGACY.webhooks)) {
    await pool.query(
      `insert into webhook (document_id, url, name, account, secret, is_actived, created_at, updated_at, deleted_at)
       values ($1, $2, $3, $4, $5, $6, $7, $7, $8)`,
      [
        id,
        urls[kind as keyof typeof urls],
        kind,
        LEGACY.account,
        OLD_SECRET,
        kind !== 'inactive',
        OLD_AT,
        kind === 'deleted' ? OLD_AT : null,
      ],
    )
    await pool.query(
      'insert into webhook_event (document_id, webhook, event, created_at, updated_at) values ($1, $2, $3, $4, $4)',
      [randomUUID(), id, LEGACY.event, OLD_AT],
    )
  }
  for (const { id, status, retry, error } of DISPATCHES)
    await pool.query(
      `insert into webhook_dispatch (document_id, webhook, event, status, retry, last_error, created_at, updated_at)
       values ($1, $2, 'contract.create', $3, $4, $5, $6, $6)`,
      [id, LEGACY.webhooks.active, status, retry, error, OLD_AT],
    )
}

/** The rows that the release must not change. */
async function readOldData() {
  return {
    users: await select('select document_id, email, name, created_at, updated_at from "user" order by 1'),
    accounts: await select('select document_id, name, created_by, created_at, updated_at from account order by 1'),
    members: await select('select account, "user", created_at from account_member order by 1'),
    contracts: await select(
      'select document_id, account, name, status, created_at, updated_at from contract order by 1',
    ),
    events: await select('select document_id, internal, created_at from event order by 1'),
    webhooks: await select('select document_id, url, name, account, created_at, deleted_at from webhook order by 1'),
    links: await select('select document_id, webhook, event, created_at, deleted_at from webhook_event order by 1'),
    dispatches: await select(
      'select document_id, webhook, event, last_error, created_at, updated_at from webhook_dispatch order by 1',
    ),
  }
}

beforeAll(async () => {
  receiver = await startReceiver()
  database = await createTestDatabase({ content: 'empty' })
  expect(await migrate(database.connectionString, { upTo: BEFORE })).toEqual([BEFORE])
  await insertLegacyRows(receiver.origin)
  before = await readOldData()
  ran = await migrate(database.connectionString)
})
afterAll(async () => {
  await app?.[Symbol.asyncDispose]()
  await receiver?.close()
  await database?.[Symbol.asyncDispose]()
})

test('webhooks#legacy-migration: the release runs on a database with rows in it, after the first migration and all that follow', async () => {
  const names = (await readMigrations()).map((migration) => migration.name)
  expect(names[0]).toBe(BEFORE)
  expect(ran).toEqual(names.slice(1))
})

test('webhooks#legacy-migration, webhooks#release-history: retry keeps its values as attempts', async () => {
  const rows = await select('select document_id, attempts from webhook_dispatch')
  const attempts = Object.fromEntries(rows.map((row) => [row.document_id, row.attempts]))
  expect(attempts).toEqual(Object.fromEntries(DISPATCHES.map(({ id, retry }) => [id, retry])))
  const columns = await select(
    `select column_name from information_schema.columns where table_name = 'webhook_dispatch'`,
  )
  expect(columns.map((row) => row.column_name)).not.toContain('retry')
})

test('webhooks#legacy-migration: existing rows are unchanged', async () => {
  expect(await readOldData()).toEqual(before)
})

test('webhooks#legacy-migration, webhooks#release-history: webhook, dispatch and event have the new fields', async () => {
  const columns = await select(`select table_name || '.' || column_name as name from information_schema.columns`)
  const names = columns.map((row) => row.name)
  for (const name of ['is_global', 'description', 'consecutive_failures', 'disabled_at', 'disabled_reason'])
    expect(names).toContain(`webhook.${name}`)
  for (const name of ['account_scope', 'method', 'route']) expect(names).toContain(`event.${name}`)
  const [account] = await select(
    `select is_nullable from information_schema.columns where table_name = 'webhook' and column_name = 'account'`,
  )
  expect(account.is_nullable).toBe('YES')
})

test('webhooks#legacy-migration: every old webhook is disabled with legacy-secret-rotation-required', async () => {
  const rows = await select(
    'select is_actived, disabled_at, disabled_reason, is_global, consecutive_failures from webhook',
  )
  expect(rows).toHaveLength(4)
  for (const row of rows)
    expect(row).toEqual({
      is_actived: false,
      disabled_at: expect.any(Date),
      disabled_reason: REASON,
      is_global: false,
      consecutive_failures: 0,
    })
})

test('webhooks#legacy-migration: the database has no readable old secrets', async () => {
  const rows = await select('select w::text as text from webhook w')
  for (const { text } of rows) expect(text).not.toContain(OLD_SECRET)
})

test('delivery#statuses, webhooks#legacy-migration: old rows have one of the six statuses, and are not sent by the new dispatcher', async () => {
  const rows = await select('select document_id, status, next_attempt_at from webhook_dispatch')
  const statuses = Object.fromEntries(rows.map((row) => [row.document_id, row.status]))
  expect(DISPATCHES.map(({ id }) => statuses[id])).toEqual([
    'success',
    'success',
    'failed',
    'failed',
    'failed',
    'failed',
  ])
  expect(rows.every((row) => row.next_attempt_at === null)).toBe(true)
})

async function startApp() {
  app = await createTestApp({ database, env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}` } })
  const key = await app.admin('POST', '/api/v3/identity/api-key', { name: 'legacy', permissions: ['*:*'] })
  app = { ...app, admin: app.callAs(key.body.data.key) }
}

test('webhooks#legacy-migration: after a rotation and an activation, deliveries are signed with the new secret', async () => {
  await startApp()
  const path = `${WEBHOOKS}/${LEGACY.webhooks.active}`
  expect((await app.admin('GET', path)).body.data).toMatchObject({
    is_actived: false,
    disabled_reason: REASON,
    account: LEGACY.account,
  })
  const change = () => app.admin('POST', '/api/v3/contract/contract', { account: LEGACY.account, name: 'New lease' })
  await change()
  await app.settle()
  expect(receiver.requests).toEqual([])

  const rotated = await app.admin('POST', `${path}/rotate-secret`)
  expect(rotated.body.data).toMatchObject({
    secret: expect.stringMatching(/^whsec_/),
    is_actived: false,
    disabled_reason: REASON,
  })
  await change()
  await app.settle()
  expect(receiver.requests).toEqual([])

  const active = await app.admin('PATCH', `${path}/active`, { is_actived: true })
  expect(active.body.data).toMatchObject({ is_actived: true, disabled_at: null, disabled_reason: null })
  const contract = (await change()).body.data.document_id
  await app.settle()
  expect(receiver.requests.map((request) => request.path)).toEqual(['/old'])
  expect(JSON.parse(receiver.requests[0]!.body.toString('utf8'))).toMatchObject({
    type: 'contract.create',
    data: { id: contract },
  })
})

test('webhooks#legacy-migration: the old subscriptions stay, and a replaced set also has webhook.test', async () => {
  const path = `${WEBHOOKS}/${LEGACY.webhooks.active}/events`
  const names = async () =>
    (await app.admin('GET', path)).body.data.events.map((event: { internal: string }) => event.internal)
  expect(await names()).toContain('contract.create')
  await app.admin('PUT', path, { events: [LEGACY.event] })
  expect(await names()).toEqual(['webhook.test', 'contract.create'])
})

test('events#catalogue-status, webhooks#legacy-migration: old event rows are synced by name, and those without a route are stale and subscribable', async () => {
  const { body } = await app.admin('GET', '/api/v3/webhook/catalogue/status')
  expect(body.data).toMatchObject({ missing_internals: [], stale_internals: ['ledger.closed'] })
  const [row] = await select(`select account_scope, method, route from event where document_id = '${LEGACY.event}'`)
  expect(row).toEqual({ account_scope: 'account', method: 'POST', route: '/api/v3/contract/contract' })
})

test('webhooks#url-rules: an update of an old row with http is refused until it sets an https URL', async () => {
  const path = `${WEBHOOKS}/${LEGACY.webhooks.insecure}`
  const refused = await app.admin('PATCH', path, { name: 'renamed' })
  expect(refused.status).toBe(422)
  expect(refused.body.errors[0].path).toBe('url')
  expect((await app.admin('POST', `${path}/rotate-secret`)).status).toBe(200)
  expect((await app.admin('PATCH', path, { url: `${receiver.origin}/mended` })).status).toBe(200)
  expect((await app.admin('PATCH', `${path}/active`, { is_actived: true })).status).toBe(200)
})

test('delivery#replay: an old ledger row has its attempts, and its replay is refused without a stored event', async () => {
  const oldest = DISPATCHES.at(-1)!
  const { body } = await app.admin('GET', `/api/v3/webhook/dispatch/${oldest.id}`)
  expect(body.data).toMatchObject({ attempts: 9, status: 'failed', last_error: 'socket hang up', attempts_log: [] })
  const replay = await app.admin('POST', `/api/v3/webhook/dispatch/${oldest.id}/replay`, { confirm_duplicate: true })
  expect(replay.status).toBe(409)
  expect(replay.body.code).toBe('conflict')
})

test('delivery#metrics: the all-time metric begins with the counts of the old ledger', async () => {
  const { body } = await app.scrape()
  expect(body).toMatch(/webhook_out_deliveries_total\{status="failed"\} 4\n/)
  expect(body).toMatch(/webhook_out_deliveries_total\{status="success"\} 3\n/)
})

test('a repeated, concurrent migration does not change migrated old data', async () => {
  const snapshot = await readOldData()
  const again = await Promise.all([1, 2, 3].map(() => migrate(database.connectionString)))
  expect(again).toEqual([[], [], []])
  expect(await readOldData()).toEqual(snapshot)
})

test('webhooks#legacy-migration: an old webhook with a name over the limit keeps its name', async () => {
  await using old = await createTestDatabase({ content: 'empty' })
  await migrate(old.connectionString, { upTo: BEFORE })
  const name = 'n'.repeat(150)
  const account = randomUUID()
  await old.pool.query(
    `insert into account (document_id, name, created_at, updated_at) values ($1, 'Old Ltd', $2, $2)`,
    [account, OLD_AT],
  )
  await old.pool.query(
    `insert into webhook (document_id, url, name, account, secret, created_at, updated_at) values ($1, 'https://old.example.com/', $2, $3, 's', $4, $4)`,
    [randomUUID(), name, account, OLD_AT],
  )
  await migrate(old.connectionString)
  const { rows } = await old.pool.query('select name, is_actived, disabled_reason from webhook')
  expect(rows).toEqual([{ name, is_actived: false, disabled_reason: REASON }])
})

test('sessions and webhooks of accounts that were deleted before the release are as a deletion leaves them', async () => {
  await using old = await createTestDatabase({ content: 'empty' })
  await migrate(old.connectionString, { upTo: BEFORE })
  const [user, gone, living] = [randomUUID(), randomUUID(), randomUUID()]
  await old.pool.query(
    `insert into "user" (document_id, email, created_at, updated_at) values ($1, 'old@example.com', $2, $2)`,
    [user, OLD_AT],
  )
  for (const [account, deletedAt] of [
    [gone, OLD_AT],
    [living, null],
  ] as const) {
    await old.pool.query(
      `insert into account (document_id, name, created_at, updated_at, deleted_at) values ($1, 'Old Ltd', $2, $2, $3)`,
      [account, OLD_AT, deletedAt],
    )
    await old.pool.query(
      `insert into webhook (document_id, url, account, secret, created_at, updated_at)
       values (gen_random_uuid(), 'https://old.example.com/', $1, 's', $2, $2)`,
      [account, OLD_AT],
    )
    await old.pool.query(
      `insert into session (document_id, "user", account, expires_at, created_at, updated_at)
       values (gen_random_uuid(), $1, $2, $3, $3, $3)`,
      [user, account, OLD_AT],
    )
  }
  await migrate(old.connectionString)
  const { rows: webhooks } = await old.pool.query('select account, is_actived, disabled_reason from webhook')
  expect(Object.fromEntries(webhooks.map(({ account, ...rest }) => [account, rest]))).toEqual({
    [gone]: { is_actived: false, disabled_reason: 'account-deleted' },
    [living]: { is_actived: false, disabled_reason: REASON },
  })
  const { rows: sessions } = await old.pool.query(
    'select account, auth_time, last_used_at from session order by account nulls last',
  )
  const times = { auth_time: OLD_AT, last_used_at: OLD_AT }
  expect(sessions).toEqual([
    { account: living, ...times },
    { account: null, ...times },
  ])
})
