import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import { VERSION } from '../../src/base/version.ts'
import { buildCatalogue } from '../../src/event/catalogue/catalogue.ts'
import { findCatalogueDrift } from '../../src/event/catalogue/catalogue-files.ts'
import type { RouteDeclaration } from '../../src/http/route/route.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { expectProblem, type Json, startContractFixture } from './contract-fixture.ts'

const EVENTS = '/api/v3/webhook/event'
const STATUS = '/api/v3/webhook/catalogue/status'

const fixture = await openForFile(startContractFixture())

const list = async (query = '') => fixture.app.admin('GET', `${EVENTS}?${query}`)
const readStatus = async () => (await fixture.app.admin('GET', STATUS)).body.data

async function listAll(): Promise<Json[]> {
  const rows: Json[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body } = await list(
      new URLSearchParams({ sort: 'internal', page_size: '20', ...(cursor && { cursor }) }).toString(),
    )
    rows.push(...body.data)
    cursor = body.pagination.next_cursor
  }
  return rows
}

test('events#catalogue, events#synthetic-event-types, events#event-types: the event table has one event type per v3 route, named <resource>.<action>', async () => {
  const rows = await listAll()
  const wanted = (ROUTE_TREE as readonly RouteDeclaration[])
    .filter((route) => route.event !== 'none' && route.eventAction === undefined)
    .map((route) => `${route.resource}.${route.action}`)
  const fromRoutes = rows.filter((row) => row.route !== null).map((row) => row.internal)
  expect(fromRoutes.sort()).toEqual(wanted.sort())
  expect(new Set(wanted).size).toBe(wanted.length)
  for (const row of rows) expect(row.internal).toMatch(/^[a-z0-9-]+\.[a-z0-9-]+$/)
  const { rows: stored } = await fixture.app.database.pool.query('select internal from event order by internal')
  expect(stored.map((row) => row.internal).sort()).toEqual(rows.map((row) => row.internal).sort())
})

test('events#catalogue-fields: a row names its event, account_scope, method and route', async () => {
  const { body } = await list('filters=internal|in|contract.create,role.create')
  const byName = Object.fromEntries(body.data.map((row: Json) => [row.internal, row]))
  expect(byName['contract.create']).toMatchObject({
    account_scope: 'account',
    method: 'POST',
    route: '/api/v3/contract/contract',
  })
  expect(byName['role.create']).toMatchObject({ account_scope: 'none', method: 'POST', route: '/api/v3/identity/role' })
})

test('events#catalogue-fields: account_scope is account or none and says whether an owner is resolved', async () => {
  for (const row of await listAll()) expect(['account', 'none']).toContain(row.account_scope)
})

test('events#synthetic-event-types, events#event-types: webhook.test is synthetic, and the contract names all that are', async () => {
  const { body } = await list('filters=source|eq|synthetic')
  const names = body.data.map((row: Json) => row.internal)
  expect(names).toContain('webhook.test')
  const page = await readFile(join(PROJECT_ROOT, 'docs/contract/events.md'), 'utf8')
  const table = page.split('### Synthetic event types')[1]!.split('\n#')[0]!
  const named = [...table.matchAll(/^\| `([a-z.-]+)` \|/gm)].map(([, name]) => name)
  expect(named.sort()).toEqual(names.sort())
})

test('events#catalogue-endpoints, api#filters: filters are <field>|<operator>|<comma-separated values>, for instance in on internal', async () => {
  const { status, body } = await list('filters=internal|in|webhook.create,webhook.delete&sort=internal')
  expect(status).toBe(200)
  expect(body.data.map((row: Json) => row.internal)).toEqual(['webhook.create', 'webhook.delete'])
})

test('api#filters, api#page-size: page_size sets the page, and its default is 50', async () => {
  expect((await list('page_size=3')).body.data).toHaveLength(3)
  const byDefault = (await list()).body
  expect(byDefault.data).toHaveLength(50)
  expect(byDefault.pagination).toMatchObject({ page_size: 50, next_cursor: expect.any(String) })
  expect((await list('page_size=50')).body.data.map((row: Json) => row.internal)).toEqual(
    byDefault.data.map((row: Json) => row.internal),
  )
})

test('events#catalogue-status: a synced catalogue is in sync with equal counts', async () => {
  const generated = buildCatalogue(ROUTE_TREE).length
  expect(await readStatus()).toEqual({
    generated_count: generated,
    synced_count: generated,
    in_sync: true,
    missing_internals: [],
    stale_internals: [],
    stale: [],
    differences: [],
    last_sync: { at: expect.any(String), by: null, version: VERSION, written: generated },
  })
})

test('events#catalogue-status, events#catalogue-sync: an event type without a row is missing until a sync writes it', async () => {
  const { pool } = fixture.app.database
  await pool.query(`delete from event where internal in ('contract.delete', 'role.delete')`)
  const generated = buildCatalogue(ROUTE_TREE).length
  expect(await readStatus()).toMatchObject({
    generated_count: generated,
    synced_count: generated - 2,
    in_sync: false,
    missing_internals: ['contract.delete', 'role.delete'],
  })
  const synced = await fixture.app.admin('POST', '/api/v3/webhook/catalogue/sync')
  expect(synced.status).toBe(200)
  expect(synced.body.data).toMatchObject({ in_sync: true, missing_internals: [], written: 2 })
  expect(await readStatus()).toMatchObject({ in_sync: true, missing_internals: [], synced_count: generated })
})

async function addStaleEvent(internal: string): Promise<string> {
  const { rows } = await fixture.app.database.pool.query(
    `insert into event (document_id, internal, account_scope, method, route, source, created_at, updated_at)
     values (gen_random_uuid(), $1, 'account', 'POST', '/api/v3/gone', 'route', now(), now()) returning document_id`,
    [internal],
  )
  return rows[0].document_id
}

test('events#catalogue-status: an event type without a route is stale, and subscribable until an operator deactivates it', async () => {
  const account = (await fixture.createAccount()).document_id
  const id = await addStaleEvent('gone.create')
  expect(await readStatus()).toMatchObject({ in_sync: false, stale_internals: ['gone.create'] })
  const before = await fixture.createWebhook({ account })
  expect((await fixture.subscribe(before.id, ['gone.create'])).events.map((event: Json) => event.internal)).toContain(
    'gone.create',
  )
  const off = await fixture.app.admin('PATCH', `${EVENTS}/${id}/active`, { is_actived: false })
  expect(off.body.data).toMatchObject({ internal: 'gone.create', is_actived: false })
  const after = await fixture.createWebhook({ account })
  const refused = await fixture.app.admin('PUT', `/api/v3/webhook/webhook/${after.id}/events`, { events: [id] })
  expectProblem(refused, 422, 'validation_failed')
  await fixture.app.admin('POST', '/api/v3/webhook/catalogue/sync')
  expect((await fixture.app.admin('GET', `${EVENTS}/${id}`)).body.data.is_actived).toBe(false)
})

test('events#catalogue-status: a sync neither deletes nor activates a stale row', async () => {
  const id = await addStaleEvent('gone.update')
  await fixture.app.admin('POST', '/api/v3/webhook/catalogue/sync')
  const read = await fixture.app.admin('GET', `${EVENTS}/${id}`)
  expect(read.body.data).toMatchObject({ internal: 'gone.update', is_actived: true })
  await fixture.app.admin('PATCH', `${EVENTS}/${id}/active`, { is_actived: false })
  expect((await readStatus()).in_sync).toBe(true)
})

test('events#catalogue-sync: a row that differs from the code is out of sync until a sync updates it', async () => {
  await fixture.app.database.pool.query(`update event set account_scope = 'none' where internal = 'contract.create'`)
  expect(await readStatus()).toMatchObject({ in_sync: false, missing_internals: [] })
  await fixture.app.admin('POST', '/api/v3/webhook/catalogue/sync')
  expect((await list('filters=internal|eq|contract.create')).body.data[0].account_scope).toBe('account')
})

test('events#catalogue-sync: the committed catalogue and its docs match the route tree', async () => {
  expect(await findCatalogueDrift(buildCatalogue(ROUTE_TREE))).toEqual([])
})

test('events#catalogue-sync, events#event-types: the check finds every difference of the committed files', async () => {
  const catalogue = buildCatalogue(ROUTE_TREE)
  const [first, ...rest] = catalogue
  expect(await findCatalogueDrift(rest)).toEqual(expect.arrayContaining(['catalogue.json', 'docs/events.md']))
  expect((await findCatalogueDrift(rest)).some((line) => line.startsWith('- ') && line.includes(first!.internal))).toBe(
    true,
  )
  const added = [...catalogue, { ...first!, internal: 'zebra.create' }]
  expect((await findCatalogueDrift(added)).some((line) => line.startsWith('+ ') && line.includes('zebra.create'))).toBe(
    true,
  )
})

test('events#publishing-from-outside: an external event type is registered by POST and is not stale', async () => {
  const created = await fixture.app.admin('POST', EVENTS, { internal: 'invoice.paid', account_scope: 'account' })
  expect(created.status).toBe(201)
  expect(created.headers.location).toBe(`${EVENTS}/${created.body.data.document_id}`)
  expect(created.body.data).toMatchObject({ internal: 'invoice.paid', source: 'external', method: null, route: null })
  expect(await readStatus()).toMatchObject({ in_sync: true })
  expect((await readStatus()).stale_internals).not.toContain('invoice.paid')
  expectProblem(await fixture.app.admin('POST', EVENTS, { internal: 'invoice.paid' }), 409, 'conflict')
  expectProblem(await fixture.app.admin('POST', EVENTS, { internal: 'contract.create' }), 409, 'conflict')
  expectProblem(await fixture.app.admin('POST', EVENTS, { internal: 'webhook.forged' }), 422, 'validation_failed')
})
