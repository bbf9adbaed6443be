import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import type { RouteDeclaration } from '../../src/http/route/route.ts'
import type { TestCall } from '../harness/app/app.ts'
import { type DeliveryApp, openDelivery } from '../harness/app/delivery-app.ts'

let d: DeliveryApp
let call: TestCall

beforeAll(async () => {
  d = await openDelivery()
  call = d.t.admin
})
afterAll(() => d?.[Symbol.asyncDispose]())

const make = async (path: string, body: object): Promise<string> =>
  `${path}/${(await call('POST', path, body)).body.data.document_id}`

const unique = () => crypto.randomUUID()

/** Each row that has a tag: how it is made, and two changes of it. */
const ROWS: Readonly<Record<string, readonly [make: () => Promise<string>, first: object, second: object]>> = {
  '/api/v3/webhook/webhook/{id}': [
    async () => `/api/v3/webhook/webhook/${(await d.makeWebhook()).id}`,
    { name: 'Billing' },
    { name: 'Till', description: 'of the shop' },
  ],
  '/api/v3/webhook/webhook/{id}/events': [
    async () => `/api/v3/webhook/webhook/${(await d.makeWebhook()).id}/events`,
    { events: ['contract.update', 'user.update'] },
    { events: ['user.update'] },
  ],
  '/api/v3/webhook/event/{id}': [
    () => make('/api/v3/webhook/event', { internal: `till.e${unique().slice(0, 8)}`, account_scope: 'none' }),
    { description: 'A till opened.' },
    { description: 'A till closed.' },
  ],
  '/api/v3/identity/user/{id}': [
    () => make('/api/v3/identity/user', { email: `${unique()}@example.test` }),
    { name: 'Ada' },
    { name: 'Ada Lovelace' },
  ],
  '/api/v3/auth/user': [async () => '/api/v3/auth/user', { name: 'Ada' }, { name: 'Ada Lovelace' }],
  '/api/v3/identity/account/{id}': [
    () => make('/api/v3/identity/account', { name: 'Acme' }),
    { name: 'Acme Ltd' },
    { name: 'Acme plc' },
  ],
  '/api/v3/identity/account/{id}/limit': [
    async () => `${await make('/api/v3/identity/account', { name: 'Acme' })}/limit`,
    { webhooks: 5 },
    { webhooks: 6 },
  ],
  '/api/v3/identity/account/{id}/connection/{connection}': [
    async () =>
      make(`${await make('/api/v3/identity/account', { name: 'Acme' })}/connection`, {
        kind: 'oidc',
        name: 'Acme login',
        oidc: { issuer: 'https://login.acme.example', client_id: 'signalbox', client_secret: 'secret' },
      }),
    { name: 'Acme staff' },
    { oidc: { groups_claim: 'groups' } },
  ],
  '/api/v3/identity/role/{id}': [
    () => make('/api/v3/identity/role', { name: unique(), permissions: [] }),
    { permissions: ['contract:*', 'webhook:find-all'] },
    { permissions: ['contract:*'] },
  ],
  '/api/v3/oauth/client/{id}': [
    () =>
      make('/api/v3/oauth/client', {
        name: 'Till',
        type: 'public',
        redirect_uris: ['https://app.example.com/callback'],
      }),
    { publisher: 'Acme' },
    { publisher: 'Other' },
  ],
  '/api/v3/provisioning/target/{id}': [
    () => make('/api/v3/provisioning/target', { url: `${d.receiver.origin}/users` }),
    { name: 'Shop' },
    { name: 'Depot' },
  ],
}

const CONDITIONAL = (ROUTE_TREE as readonly RouteDeclaration[]).filter(({ rowTag }) => rowTag)

/** An event set is replaced as a whole; of a row members are changed. */
const methodOf = (path: string): 'PUT' | 'PATCH' => (path.endsWith('/events') ? 'PUT' : 'PATCH')

/** What an answer shows of a change. */
const shownOf = (change: object) => {
  if ('webhooks' in change) return { own: change }
  if ('events' in change)
    return { events: ['webhook.test', ...(change.events as string[])].map((internal) => ({ internal })) }
  return change
}

const changeOf = (path: string): TestCall => {
  if (path.startsWith('/api/v3/auth')) return own
  return call
}
let own: TestCall
beforeAll(async () => {
  own = (await d.t.signInMember([])).call
})

test('api#lost-updates: every row with a tag is a case here, and its read and its change name the same members of it', () => {
  const paths = new Map(CONDITIONAL.map(({ path }) => [path, CONDITIONAL.filter((route) => route.path === path)]))
  expect([...paths.keys()].sort()).toEqual(Object.keys(ROWS).sort())
  for (const [path, routes] of paths) {
    expect(routes.map(({ method }) => method).sort(), path).toEqual(['GET', methodOf(path)])
    expect(routes[0]?.rowTag, path).toEqual(routes[1]?.rowTag)
    for (const { data, rowTag } of routes)
      expect(Object.keys((data as { properties: object }).properties), path).toEqual(
        expect.arrayContaining([...rowTag!]),
      )
  }
})

describe.each(Object.entries(ROWS))('%s', (_path, [open, first, second]) => {
  test('api#lost-updates: of two changes that read the same row the first is made, and the second one is told', async () => {
    const path = await open()
    const [caller, method] = [changeOf(path), methodOf(path)]
    const read = await caller('GET', path)
    const tag = { 'if-match': read.headers.etag as string }
    expect(tag['if-match']).toMatch(/^"[\w-]{16}\.[\w-]{16}"$/)
    const changed = await caller(method, path, first, tag)
    expect(changed.status).toBe(200)
    const refused = await caller(method, path, second, tag)
    expect(refused.body).toMatchObject({ status: 412, code: 'precondition_failed' })
    const now = await caller('GET', path)
    expect(now.body.data).toMatchObject(shownOf(first))
    const again = await caller(method, path, second, { 'if-match': changed.headers.etag as string })
    expect(again.status).toBe(200)
    expect((await caller(method, path, first)).status).toBe(200)
  })
})

const open = () => ROWS['/api/v3/webhook/webhook/{id}']![0]()
const tagOf = async (path: string) => (await call('GET', path)).headers.etag as string

test('api#lost-updates: of many changes at once with one tag exactly one is made', async () => {
  for (const path of [await open(), await ROWS['/api/v3/identity/account/{id}']![0]()]) {
    const tag = { 'if-match': await tagOf(path) }
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    const answers = await Promise.all(names.map((name) => call('PATCH', path, { name }, tag)))
    const made = answers.filter(({ status }) => status === 200)
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412, 412, 412])
    expect((await call('GET', path)).body.data.name).toBe(made[0]?.body.data.name)
  }
})

test('api#lost-updates: of many event sets at once with one tag exactly one is made, and a single subscription counts as a change', async () => {
  const path = await ROWS['/api/v3/webhook/webhook/{id}/events']![0]()
  const sets = ['user.create', 'user.update', 'user.delete', 'contract.update'].map((name) => [name])
  const tag = { 'if-match': await tagOf(path) }
  const answers = await Promise.all(sets.map((events) => call('PUT', path, { events }, tag)))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412])
  const read = await call('GET', path)
  const made = answers.find(({ status }) => status === 200)
  expect(read.body.data.events).toEqual(made?.body.data.events)
  expect(read.headers.etag).toBe(made?.headers.etag)
  const types = await call('GET', '/api/v3/webhook/event?filters=internal|eq|account.create')
  const link = { webhook: path.split('/').at(-2), event: types.body.data[0].document_id }
  expect((await call('POST', '/api/v3/webhook/webhook-event', link)).status).toBe(201)
  const refused = await call('PUT', path, { events: ['user.create'] }, { 'if-match': read.headers.etag as string })
  expect(refused.status).toBe(412)
})

test('api#lost-updates: a counter of the row does not fail the condition, and a whole row that differs is no 304', async () => {
  const path = await open()
  const tag = await tagOf(path)
  expect((await call('GET', path, undefined, { 'if-none-match': tag })).status).toBe(304)
  await d.t.database.pool.query('update webhook set consecutive_failures = 3 where document_id = $1', [
    path.split('/').at(-1),
  ])
  expect((await call('GET', path, undefined, { 'if-none-match': tag })).body.data.consecutive_failures).toBe(3)
  const change = await call('PATCH', path, { name: 'Till' }, { 'if-match': tag, 'if-none-match': tag })
  expect(change.status).toBe(200)
})

test('api#lost-updates: `*` and a weakened tag are true, and a list is true when it names the row', async () => {
  const path = await open()
  for (const form of ['*', 'W/TAG', '"none", TAG', '"none.none" ,TAG']) {
    const header = form.replace('TAG', await tagOf(path))
    expect((await call('PATCH', path, { name: form }, { 'if-match': header })).status, form).toBe(200)
  }
  for (const header of ['', '"', '""', 'none', `"${'a'.repeat(8_000)}"`, '".'.repeat(3_000), ','.repeat(6_000)]) {
    const answer = await call('PATCH', path, { name: 'Not made' }, { 'if-match': header })
    expect(answer.status, header.slice(0, 20)).toBe(412)
  }
  expect((await call('GET', path)).body.data.name).not.toBe('Not made')
})

test('api#lost-updates: a repeat under its key gets the first answer, although the row has changed since', async () => {
  const path = await open()
  const headers = { 'if-match': await tagOf(path), 'idempotency-key': unique() }
  expect((await call('PATCH', path, { name: 'Once' }, headers)).status).toBe(200)
  const again = await call('PATCH', path, { name: 'Once' }, headers)
  expect([again.status, again.headers['idempotency-replayed']]).toEqual([200, 'true'])
})

test('api#lost-updates: a refused change records no event and no audit entry, and a missing row is a 404', async () => {
  const path = await open()
  const id = path.split('/').at(-1)
  const stale = { 'if-match': '"none"' }
  expect((await call('PATCH', path, { name: 'Not made' }, stale)).status).toBe(412)
  const events = await call('GET', `/api/v3/webhook/event-occurrence?filters=resource_id|eq|${id}`)
  const names = events.body.data.map(({ event }: { event: string }) => event).sort()
  expect(names).toEqual(['webhook-event.set', 'webhook.create'])
  const audit = await call('GET', `/api/v3/audit/log?filters=target|eq|${id}&filters=action|eq|webhook.update`)
  expect(audit.body.data).toEqual([])
  await call('DELETE', path)
  expect((await call('PATCH', path, { name: 'Gone' }, stale)).status).toBe(404)
})

test('api#lost-updates: a route without it refuses If-Match, so that nobody takes its change for protected', async () => {
  const path = await open()
  const tag = { 'if-match': await tagOf(path) }
  for (const [method, at, body] of [
    ['DELETE', path, undefined],
    ['PATCH', `${path}/active`, { is_actived: false }],
    ['POST', `${path}/rotate-secret`, undefined],
  ] as const)
    expect((await call(method, at, body, tag)).body).toMatchObject({ status: 400, code: 'malformed_request' })
  expect((await call('GET', path)).body.data.is_actived).toBe(true)
})

test('api#lost-updates: a caller who does not reach the row is told nothing about its tag', async () => {
  const account = (await call('POST', '/api/v3/identity/account', { name: 'Own' })).body.data.document_id
  const { call: stranger } = await d.t.signInMember([account])
  const path = await open()
  const answer = await stranger('PATCH', path, { name: 'x' }, { 'if-match': await tagOf(path) })
  expect([403, 404]).toContain(answer.status)
})
