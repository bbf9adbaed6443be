import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openProvisioning, type ProvisioningFixture } from '../../test/harness/provisioning/provisioning-service.ts'
import { ROUTE_TREE } from '../app/feature/route-tree.ts'
import type { AccountId } from '../base/id.ts'

const TARGETS = '/api/v3/provisioning/target'
const ROUTES = ROUTE_TREE.filter(({ path }) => path.startsWith('/api/v3/provisioning/'))
const UNKNOWN = '01a0903b-0000-7000-8000-000000000000'

let fixture: ProvisioningFixture
let ids: Record<string, string>
beforeAll(async () => {
  fixture = await openProvisioning()
  const target = await fixture.makeTarget()
  await fixture.makeUser()
  await fixture.t.settle()
  const [delivery] = await fixture.listDeliveries(target.id)
  const job = await fixture.call('POST', `${TARGETS}/${target.id}/sync`)
  ids = { target: target.id, delivery: delivery.document_id, job: job.document_id }
})
afterAll(() => fixture[Symbol.asyncDispose]())

const pathOf = (path: string, id = ids[path.split('/')[4] ?? ''] ?? UNKNOWN) => path.replace('{id}', id)

describe.each(ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))('%s', (_name, route) => {
  test('is closed to an administrator of an account, whatever ids it knows', async () => {
    const account = await fixture.call('POST', '/api/v3/identity/account', { name: 'Acme' })
    const { call, userId } = await fixture.t.signInMember([account.document_id as AccountId])
    const path = `/api/v3/identity/account/${account.document_id}/member`
    const [role] = await fixture.call('GET', '/api/v3/identity/role?filters=name|eq|account-admin')
    await fixture.call('PATCH', path, { user: userId, roles: [role.document_id] })
    const answer = await call(route.method, pathOf(route.path), route.body ? {} : undefined)
    expect([answer.status, answer.body.code]).toEqual([403, 'permission_denied'])
  })

  test('is closed without a token', async () => {
    expect((await fixture.t.anonymous(route.method, pathOf(route.path))).status).toBe(401)
  })

  test('answers 404 to an id of another kind of row', async () => {
    if (!route.path.includes('{id}')) return expect(route.path).not.toContain('{')
    const other = ids[route.path.split('/')[4] === 'target' ? 'delivery' : 'target']
    const body =
      route.action === 'active' ? { is_actived: true } : route.action === 'update' ? { name: 'x' } : undefined
    for (const id of [other, UNKNOWN])
      expect((await fixture.tryCall(route.method, pathOf(route.path, id), body)).status).toBe(404)
  })
})

test.each([
  ['url', `https://example.com/${'a'.repeat(1_048_576)}`],
  ['name', 'a'.repeat(1_048_576)],
  ['token', 'a'.repeat(1_048_576)],
])('a %s of 1 MiB is refused and nothing is made', async (member, value) => {
  const before = (await fixture.call('GET', TARGETS)).length
  const body = { url: 'https://example.com/', protocol: 'scim', token: 't', [member]: value }
  const answer = await fixture.tryCall('POST', TARGETS, body)
  expect(answer.status).toBe(413)
  expect(await fixture.call('GET', TARGETS)).toHaveLength(before)
})

test.each([
  'http://169.254.169.254/latest/meta-data',
  'https://127.0.0.1/',
  'https://[::ffff:10.0.0.1]/',
  'https://localhost/',
  'https://metadata.google.internal/',
  'https://user:password@example.com/',
  'https://example.com:22/',
])('a target at %s is refused on create and on update', async (url) => {
  const made = await fixture.tryCall('POST', TARGETS, { url })
  expect([made.status, made.body.errors?.[0].path]).toEqual([422, 'url'])
  const changed = await fixture.tryCall('PATCH', `${TARGETS}/${ids.target}`, { url })
  expect([changed.status, changed.body.errors?.[0].path]).toEqual([422, 'url'])
})

test('an answer without an end is read to 16 KiB, and kept to 1 KiB', async () => {
  const target = await fixture.makeTarget()
  fixture.receiver.behave({ kind: 'endless', status: 200 })
  await fixture.makeUser()
  await fixture.t.settle()
  fixture.receiver.behave({ kind: 'status', status: 200 })
  const [row] = await fixture.listDeliveries(target.id)
  const read = await fixture.call('GET', `/api/v3/provisioning/delivery/${row.document_id}`)
  expect(read.attempts_log[0].response_excerpt.length).toBeLessThanOrEqual(1024)
  expect(row.status).toBe('delivered')
})

test('no row, list, event, audit entry or log of an answer has the secret or the token of a target', async () => {
  const { id, secret } = await fixture.makeTarget()
  const token = 'token-of-a-service-that-nobody-may-read'
  const scim = { url: `${fixture.receiver.origin}/scim`, protocol: 'scim', token }
  const made = await fixture.tryCall('POST', TARGETS, scim, { 'idempotency-key': 'scim-target' })
  const again = await fixture.tryCall('POST', TARGETS, scim, { 'idempotency-key': 'scim-target' })
  await fixture.call('PATCH', `${TARGETS}/${made.body.data.document_id}`, { token: `${token}-2` })
  for (const answer of [made, again]) expect(JSON.stringify(answer.body)).not.toContain(token)
  const { rows } = await fixture.t.database.pool.query(
    `select (select json_agg(t) from provisioning_target t)::text as targets,
      (select json_agg(a) from audit_log a)::text as audit, (select json_agg(e) from event_occurrence e)::text as events,
      (select json_agg(k) from idempotency_key k)::text as answers`,
  )
  expect(JSON.stringify(rows)).not.toContain(secret)
  expect(JSON.stringify(rows)).not.toContain(token)
  expect(JSON.stringify(await fixture.call('GET', `${TARGETS}/${id}`))).not.toContain('whsec_')
  expect(JSON.stringify(await fixture.call('GET', TARGETS))).not.toMatch(/whsec_|nobody-may-read/)
})

test('the token of a SCIM service is not sent to another host: a URL there needs a token of its own', async () => {
  const body = { url: 'https://example.com/scim/v2', protocol: 'scim', token: 'stored' }
  const { document_id: id } = await fixture.call('POST', TARGETS, body)
  const patch = (change: object) => fixture.tryCall('PATCH', `${TARGETS}/${id}`, change)
  for (const url of ['https://elsewhere.example.org/scim/v2', 'https://example.com:8443/scim/v2']) {
    const answer = await patch({ url })
    expect([answer.status, answer.body.errors?.[0].path]).toEqual([422, 'token'])
  }
  expect((await patch({ url: 'https://example.com/scim/v2/tenant' })).status).toBe(200)
  expect((await patch({ url: 'https://elsewhere.example.org/scim/v2', token: 'theirs' })).status).toBe(200)
  expect((await fixture.call('GET', `${TARGETS}/${id}`)).url).toBe('https://elsewhere.example.org/scim/v2')
})
