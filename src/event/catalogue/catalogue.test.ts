import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { ROUTE_TREE } from '../../app/feature/route-tree.ts'
import { VERSION } from '../../base/version.ts'
import type { EventTypeRecord } from './catalogue.store.ts'
import { buildCatalogue } from './catalogue.ts'
import { findCatalogueDrift, renderCatalogueFiles } from './catalogue-files.ts'
import { compareCatalogue } from './sync.ts'

const CATALOGUE = buildCatalogue(ROUTE_TREE)

function toRow(internal: string, change: Partial<EventTypeRecord> = {}): EventTypeRecord {
  const entry = CATALOGUE.find((item) => item.internal === internal)
  return {
    id: internal as never,
    internal,
    accountScope: entry?.account_scope ?? 'none',
    method: entry?.method ?? null,
    route: entry?.route ?? null,
    source: entry?.source ?? 'route',
    description: entry?.description ?? null,
    isActived: true,
    isTenantVisible: false,
    group: entry?.group ?? null,
    deprecatedAt: null,
    deprecationRemedy: null,
    example: null,
    createdAt: new Date(0),
    updatedAt: new Date(0),
    ...change,
  }
}

describe('catalogue', () => {
  test('has one event type for each v3 route that changes or reads a resource, and the synthetic ones', () => {
    const names = new Set(CATALOGUE.map((entry) => entry.internal))
    const routes = ROUTE_TREE.filter(({ event, eventAction }) => event !== 'none' && eventAction === undefined)
    for (const route of routes) expect(names).toContain(`${route.resource}.${route.action}`)
    expect(names).toContain('webhook.test')
    expect(names).toContain('webhook.auto-disable')
    expect(names.size).toBe(CATALOGUE.length)
  })

  test('names follow <resource>.<action>', () => {
    for (const { internal } of CATALOGUE) expect(internal).toMatch(/^[a-z][a-z0-9-]*\.[a-z][a-z0-9-]*$/)
  })

  test('refuses two routes with one name', () => {
    expect(() => buildCatalogue([...ROUTE_TREE, ROUTE_TREE[0]!])).toThrow(/two sources/)
  })

  test('lists each type under the module of its route, with its deprecation', () => {
    const groups = new Set(CATALOGUE.map(({ group }) => group))
    expect([...groups].sort()).toEqual([
      'audit',
      'auth',
      'contract',
      'health',
      'identity',
      'oauth',
      'provisioning',
      'realtime',
      'webhook',
    ])
    const route = ROUTE_TREE.find(({ resource, action }) => resource === 'contract' && action === 'create')!
    const eventDeprecation = { at: '2026-11-01T00:00:00.000Z', remedy: 'Subscribe to contract.update.' }
    const catalogue = buildCatalogue([{ ...route, eventDeprecation }])
    expect(catalogue.find(({ internal }) => internal === 'contract.create')).toMatchObject({
      group: 'contract',
      deprecated_at: eventDeprecation.at,
      deprecation_remedy: eventDeprecation.remedy,
    })
    const docs = renderCatalogueFiles(catalogue).get('docs/events.md')
    expect(docs).toContain('Deprecated from 2026-11-01 on: Subscribe to contract.update. |')
    expect(docs).toContain('## contract\n')
  })

  test('the committed files match the route tree', async () => {
    expect(await findCatalogueDrift(CATALOGUE)).toEqual([])
  })

  test('a changed route tree is reported as a diff', async () => {
    const changed = CATALOGUE.filter((entry) => entry.internal !== 'contract.create')
    const drift = await findCatalogueDrift(changed)
    expect(drift).toContain('catalogue.json')
    expect(drift.some((line) => line.startsWith('- ') && line.includes('contract.create'))).toBe(true)
    expect(renderCatalogueFiles(changed).get('docs/events.md')).not.toContain('`contract.create`')
  })
})

describe('catalogue status', () => {
  const all = CATALOGUE.map((entry) => toRow(entry.internal))

  test('is in sync when every entry has its row', () => {
    expect(compareCatalogue(CATALOGUE, all)).toEqual({
      generated_count: CATALOGUE.length,
      synced_count: CATALOGUE.length,
      in_sync: true,
      missing_internals: [],
      stale_internals: [],
      differences: [],
    })
  })

  test('lists missing event types', () => {
    const status = compareCatalogue(CATALOGUE, all.slice(1))
    expect(status).toMatchObject({
      in_sync: false,
      missing_internals: [CATALOGUE[0]!.internal],
      synced_count: CATALOGUE.length - 1,
    })
  })

  test('lists stale event types until they are deactivated', () => {
    const stale = toRow('contract.gone')
    expect(compareCatalogue(CATALOGUE, [...all, stale])).toMatchObject({
      in_sync: false,
      stale_internals: ['contract.gone'],
    })
    const resting = { ...stale, isActived: false }
    expect(compareCatalogue(CATALOGUE, [...all, resting])).toMatchObject({
      in_sync: true,
      stale_internals: ['contract.gone'],
    })
  })

  test('does not count an event type of another service as stale', () => {
    const status = compareCatalogue(CATALOGUE, [...all, toRow('invoice.paid', { source: 'external' })])
    expect(status).toMatchObject({ in_sync: true, stale_internals: [] })
  })

  test('is out of sync when a row differs', () => {
    const changed = all.map((row) => (row.internal === 'contract.create' ? { ...row, route: '/old' } : row))
    const status = compareCatalogue(CATALOGUE, changed)
    expect(status.in_sync).toBe(false)
    expect(status.differences).toEqual([
      { internal: 'contract.create', member: 'route', is: '/old', becomes: '/api/v3/contract/contract' },
    ])
  })
})

describe('catalogue over the API', () => {
  test('sync restores a changed table, keeps ids, and reports the written rows', async () => {
    await using t = await createTestApp()
    const before = await t.admin('GET', '/api/v3/webhook/event?filters=internal|eq|contract.create')
    await t.database.db.deleteFrom('event').where('internal', '=', 'contract.delete').execute()
    await t.database.db.updateTable('event').set({ route: '/old' }).where('internal', '=', 'contract.create').execute()
    const status = await t.admin('GET', '/api/v3/webhook/catalogue/status')
    expect(status.body.data).toMatchObject({ in_sync: false, missing_internals: ['contract.delete'] })
    const synced = await t.admin('POST', '/api/v3/webhook/catalogue/sync')
    expect(status.body.data.last_sync.by).toBeNull()
    const { user } = (await t.admin('GET', '/api/v3/auth/session')).body.data
    const last = { by: user.document_id, at: new Date(t.clock.now()).toISOString(), written: 2, version: VERSION }
    expect(synced.body.data).toMatchObject({ in_sync: true, written: 2, differences: [], last_sync: last })
    expect((await t.admin('GET', '/api/v3/webhook/catalogue/status')).body.data.last_sync).toEqual(last)
    const after = await t.admin('GET', '/api/v3/webhook/event?filters=internal|eq|contract.create')
    expect(after.body.data[0]).toMatchObject({
      document_id: before.body.data[0].document_id,
      route: '/api/v3/contract/contract',
    })
  })

  test('counts who subscribes to a stale event type, until it is deactivated', async () => {
    await using t = await createTestApp()
    const account = (await t.admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
    const [row] = (await t.admin('GET', '/api/v3/webhook/event?filters=internal|eq|contract.create')).body.data
    const webhooks = []
    for (const name of ['one', 'two']) {
      const body = { url: `https://example.com/${name}`, account, events: ['contract.create'] }
      webhooks.push((await t.admin('POST', '/api/v3/webhook/webhook', body)).body.data.document_id)
    }
    const counts = async () => {
      const { data } = (await t.admin('GET', '/api/v3/webhook/catalogue/subscribers')).body
      return Object.fromEntries(data.map((row: Record<string, unknown>) => [row.internal, row.subscribers]))
    }
    expect(await counts()).toMatchObject({ 'contract.create': 2, 'webhook.test': 2, 'contract.update': 0 })
    await t.admin('DELETE', `/api/v3/webhook/webhook/${webhooks[0]}`)
    await t.database.db
      .updateTable('event')
      .set({ internal: 'contract.sign' })
      .where('document_id', '=', row.document_id)
      .execute()
    await t.admin('POST', '/api/v3/webhook/catalogue/sync')
    const stale = { document_id: row.document_id, internal: 'contract.sign', is_actived: true, subscribers: 1 }
    const read = async () => (await t.admin('GET', '/api/v3/webhook/catalogue/status')).body.data
    expect(await read()).toMatchObject({ in_sync: false, stale: [stale] })
    await t.admin('PATCH', `/api/v3/webhook/event/${row.document_id}/active`, { is_actived: false })
    expect(await read()).toMatchObject({ in_sync: true, stale: [{ ...stale, is_actived: false }] })
  })

  test('registers event types of other services once, and not under a reserved name', async () => {
    await using t = await createTestApp()
    const path = '/api/v3/webhook/event'
    const created = await t.admin('POST', path, { internal: 'invoice.paid', description: 'An invoice was paid.' })
    expect(created.status).toBe(201)
    expect(created.body.data).toMatchObject({ internal: 'invoice.paid', source: 'external', account_scope: 'account' })
    expect((await t.admin('POST', path, { internal: 'invoice.paid' })).body.code).toBe('conflict')
    expect((await t.admin('POST', path, { internal: 'contract.create' })).body.code).toBe('conflict')
    expect((await t.admin('POST', path, { internal: 'webhook.forged' })).body.errors[0].code).toBe('reserved')
    for (const internal of ['Invoice.paid', 'invoice', 'a.b.c', 'a-.b', ''])
      expect((await t.admin('POST', path, { internal })).status).toBe(422)
  })

  test('deactivates stale and external event types only', async () => {
    await using t = await createTestApp()
    const external = await t.admin('POST', '/api/v3/webhook/event', { internal: 'invoice.paid' })
    const id = external.body.data.document_id
    const off = await t.admin('PATCH', `/api/v3/webhook/event/${id}/active`, { is_actived: false })
    expect(off.body.data.is_actived).toBe(false)
    const own = await t.admin('GET', '/api/v3/webhook/event?filters=internal|eq|contract.create')
    const ownId = own.body.data[0].document_id
    expect((await t.admin('PATCH', `/api/v3/webhook/event/${ownId}/active`, { is_actived: false })).status).toBe(409)
    expect((await t.admin('PATCH', `/api/v3/webhook/event/${t.adminId}/active`, { is_actived: false })).status).toBe(
      404,
    )
  })
})
