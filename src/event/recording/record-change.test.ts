import { describe, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { followCall } from '../../../test/harness/run/trail.ts'
import { ROUTE_TREE } from '../../app/feature/route-tree.ts'
import type { Changed, RouteDeclaration } from '../../http/route/route.ts'
import { buildReadPathFinder, draftEvents } from './record-change.ts'

const ID = '01990000-0000-7000-8000-000000000001'

const route = (action: string, more: Partial<RouteDeclaration> = {}) =>
  ({
    method: 'POST',
    path: `/api/v3/x/lease/{id}/${action}`,
    resource: 'lease',
    action,
    accountScope: 'account',
    summary: 'x',
    data: {},
    ...more,
  }) as RouteDeclaration

const READ = route('find-one', { method: 'GET', path: '/api/v3/x/lease/{id}' })
const changed = (id: string | null, url?: string | null): Changed => ({
  id,
  account: null,
  ...(url !== undefined && { url }),
})

describe('the path of the second call', () => {
  const find = buildReadPathFinder([READ, route('update')])

  test('is that of the find-one route of the same resource', () => {
    expect(find(route('update'), changed(ID))).toBe(`/api/v3/x/lease/${ID}`)
    expect(find(READ, changed(ID))).toBe(`/api/v3/x/lease/${ID}`)
  })

  test('is none when the resource can no longer be read, has no id, or has no such route', () => {
    for (const action of ['delete', 'purge']) expect(find(route(action), changed(ID))).toBeNull()
    expect(find(route('find-all'), changed(null))).toBeNull()
    expect(find(route('update', { resource: 'other' }), changed(ID))).toBeNull()
  })

  test('is what the operation says where it says one, null too', () => {
    expect(find(route('update'), changed(ID, '/api/v3/elsewhere'))).toBe('/api/v3/elsewhere')
    expect(find(route('update'), changed(ID, null))).toBeNull()
    expect(find(route('delete'), changed(ID, '/api/v3/elsewhere'))).toBe('/api/v3/elsewhere')
  })

  test('exists in the tree for every resource that a route creates, but for members, invitations, domains and portal sessions, which are read in their lists, and factors, which only their owner reads', () => {
    const findInTree = buildReadPathFinder(ROUTE_TREE)
    const creating = ROUTE_TREE.filter(({ action, status }) => action === 'create' && status === 201)
    const unreadable = creating.filter((item) => findInTree(item, changed(ID)) === null)
    expect(creating.length).toBeGreaterThan(5)
    expect(unreadable.map((item) => item.resource)).toEqual([
      'totp-factor',
      'passkey',
      'account-member',
      'account-invitation',
      'connection-domain',
      'portal-session',
    ])
  })
})

describe('the events of a success', () => {
  const find = buildReadPathFinder([READ])

  test('are one for each changed resource, each with its own owner, all of one trace', () => {
    const owner = ID as Changed['account']
    const drafts = draftEvents(find, {
      route: route('update'),
      changed: [
        { id: 'a', account: owner },
        { id: 'b', account: null },
      ],
      trace: 'the-trace',
    })
    const common = {
      type: 'lease.update',
      accountScope: 'account',
      resource: 'lease',
      action: 'update',
      trace: 'the-trace',
    }
    expect(drafts).toEqual([
      { ...common, account: owner, resourceId: 'a', url: '/api/v3/x/lease/a' },
      { ...common, account: null, resourceId: 'b', url: '/api/v3/x/lease/b' },
    ])
  })

  test('are none when nothing changed, or the route emits none of its own', () => {
    const some = [changed(ID)]
    expect(draftEvents(find, { route: route('update'), changed: undefined, trace: null })).toEqual([])
    expect(draftEvents(find, { route: route('update'), changed: [], trace: null })).toEqual([])
    for (const event of ['none', 'operation'] as const)
      expect(draftEvents(find, { route: route('update', { event }), changed: some, trace: null })).toEqual([])
  })
})

/** A webhook that subscribes to these event types. */
async function subscribe(app: TestApp, ...names: string[]): Promise<string> {
  const made = await app.admin('POST', '/api/v3/webhook/webhook', {
    url: 'https://hooks.example.com/',
    is_global: true,
  })
  const { rows } = await app.database.pool.query('select document_id as id from event where internal = any($1)', [
    names,
  ])
  const id = made.body.data.document_id
  await app.admin('PUT', `/api/v3/webhook/webhook/${id}/events`, { events: rows.map((row) => row.id) })
  return id
}

const createAccount = async (app: TestApp): Promise<string> =>
  (await app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id

describe('a read', () => {
  test('is recorded only while an active webhook subscribes to its event, and is never audited', async () => {
    await using app = await createTestApp()
    const account = await createAccount(app)
    const path = `/api/v3/identity/account/${account}`
    const read = () => followCall(app, () => app.admin('GET', path))
    expect(await read()).toMatchObject({ events: [], audit: [] })
    const webhook = await subscribe(app, 'account.find-one')
    expect(await read()).toMatchObject({
      events: [{ event: 'account.find-one', account, resource_id: account, url: path }],
      audit: [],
    })
    const activate = (isActived: boolean) =>
      app.admin('PATCH', `/api/v3/webhook/webhook/${webhook}/active`, { is_actived: isActived })
    await activate(false)
    expect((await read()).events).toEqual([])
    await activate(true)
    expect((await read()).events).toHaveLength(1)
    await app.admin('DELETE', `/api/v3/webhook/webhook/${webhook}`)
    expect((await read()).events).toEqual([])
  })

  test('whose answer the client has already is a 304, and no success: it is not recorded', async () => {
    await using app = await createTestApp()
    const path = `/api/v3/identity/account/${await createAccount(app)}`
    await subscribe(app, 'account.find-one')
    const tag = String((await app.admin('GET', path)).headers.etag)
    const read = async (named: string) => {
      const call = () => app.admin('GET', path, undefined, { 'if-none-match': named })
      const { answer, events } = await followCall(app, call)
      return [answer.status, events.length]
    }
    expect(await read(tag)).toEqual([304, 0])
    expect(await read('*')).toEqual([304, 0])
    expect(await read('"another"')).toEqual([200, 1])
  })

  test('of a list is one event without an id and without an owner', async () => {
    await using app = await createTestApp()
    await subscribe(app, 'contract.find-all')
    const { events } = await followCall(app, () => app.admin('GET', '/api/v3/contract/contract'))
    expect(events).toEqual([
      { event: 'contract.find-all', account: null, resource_id: null, url: null, is_purge: false },
    ])
  })

  test('that is refused emits nothing, although somebody subscribes', async () => {
    await using app = await createTestApp()
    await subscribe(app, 'contract.find-one', 'contract.find-all')
    for (const path of [`/api/v3/contract/contract/${ID}`, '/api/v3/contract/contract?filters=nonsense']) {
      const { answer, events } = await followCall(app, () => app.admin('GET', path))
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(events).toEqual([])
    }
  })
})

describe('a change', () => {
  test('and its event and its audit entry stand or fall together', async () => {
    await using app = await createTestApp()
    const account = await createAccount(app)
    const create = () => app.admin('POST', '/api/v3/contract/contract', { account, name: 'Lease' })
    const { pool } = app.database
    for (const table of ['event_occurrence', 'audit_log']) {
      await pool.query(
        `create function refuse_${table}() returns trigger language plpgsql as $$ begin raise 'no'; end $$`,
      )
      await pool.query(
        `create trigger refuse before insert on ${table} for each row execute function refuse_${table}()`,
      )
      const { answer, events, audit } = await followCall(app, create)
      await pool.query(`drop trigger refuse on ${table}`)
      expect(answer.status).toBe(500)
      expect(events).toEqual([])
      expect(audit).toEqual([])
      expect((await pool.query('select from contract')).rowCount).toBe(0)
    }
    expect((await followCall(app, create)).events).toHaveLength(1)
    expect((await pool.query('select from contract')).rowCount).toBe(1)
  })

  test('by an API key names its owner and the key; by a session, the session', async () => {
    await using app = await createTestApp()
    const key = (await app.admin('POST', '/api/v3/identity/api-key', { name: 'k', permissions: ['*:*'] })).body.data
    await app.callAs(key.key)('POST', '/api/v3/identity/account', { name: 'By a key' })
    await createAccount(app)
    const { rows } = await app.database.pool.query(
      `select "user", session is null as no_session, api_key from audit_log where action = 'account.create' order by document_id`,
    )
    expect(rows).toEqual([
      { user: app.adminId, no_session: true, api_key: key.document_id },
      { user: app.adminId, no_session: false, api_key: null },
    ])
  })

  test('while ENABLE_API_EVENT_QUEUE is false is made and audited, and recorded as no event', async () => {
    await using app = await createTestApp({ env: { ENABLE_API_EVENT_QUEUE: 'false' } })
    await subscribe(app, 'account.create', 'account.find-all')
    const { answer, events, audit } = await followCall(app, () =>
      app.admin('POST', '/api/v3/identity/account', { name: 'Quiet' }),
    )
    expect(answer.status).toBe(201)
    expect(events).toEqual([])
    expect(audit).toMatchObject([{ action: 'account.create' }])
    expect((await followCall(app, () => app.admin('GET', '/api/v3/identity/account'))).events).toEqual([])
  })
})
