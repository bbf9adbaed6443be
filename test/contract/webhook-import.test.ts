import { createHmac, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { TestCall } from '../harness/app/app.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { dumpDatabase } from '../harness/run/trail.ts'
import { expectProblem, startContractFixture } from './contract-fixture.ts'

const PATH = '/api/v3/webhook/webhook'
const KEYS = '/api/v3/identity/api-key'

const fixture = await openForFile(startContractFixture())
const account: string = (await fixture.createAccount()).document_id

let paths = 0
const makeSecret = (length = 24) => `whsec_${randomBytes(length).toString('base64')}`
function buildBody(secret: unknown) {
  paths += 1
  return { url: `${fixture.receiver.origin}/import-${paths}`, is_global: true, secret }
}
const importAs = (call: TestCall, secret: unknown = makeSecret(), members: object = {}) =>
  call('POST', PATH, { ...buildBody(secret), ...members })

/** A caller by a new API key with these permissions, of an administrator. */
async function keyWith(permissions: string[], members: object = {}): Promise<TestCall> {
  const made = await fixture.app.admin('POST', KEYS, { name: 'import', permissions, ...members })
  expect(made.status).toBe(201)
  return fixture.app.callAs(made.body.data.key)
}

test('webhooks#secret-of-a-known-value: deliveries are signed with it in both families, and a rotation replaces it', async () => {
  for (const length of [24, 64]) {
    const secret = makeSecret(length)
    const body = buildBody(secret)
    const made = await fixture.app.admin('POST', PATH, body)
    expect(made).toMatchObject({ status: 201, body: { data: { secret: null, is_actived: true } } })
    const path = `${PATH}/${made.body.data.document_id}`
    await fixture.app.admin('POST', `${path}/test`)
    await fixture.app.settle()
    const { headers, body: text } = fixture.receiver.requests.find((candidate) => body.url.endsWith(candidate.path))!
    const t = headers['webhook-timestamp']
    const key = Buffer.from(secret.slice(6), 'base64')
    const standard = createHmac('sha256', key).update(`${headers['webhook-id']}.${t}.${text}`).digest('base64')
    expect(headers['webhook-signature']).toBe(`v1,${standard}`)
    const hex = createHmac('sha256', secret).update(`${t}.${text}`).digest('hex')
    expect(headers['x-service-signature']).toBe(`t=${t},v1=${hex}`)
    const rotated = await fixture.app.admin('POST', `${path}/rotate-secret`)
    expect(rotated.body.data.secret).toMatch(/^whsec_/)
    expect(rotated.body.data.secret).not.toBe(secret)
  }
})

test('webhooks#secret-of-a-known-value: no answer, audit entry, event, idempotency record or table has its value', async () => {
  const secret = makeSecret(32)
  const body = buildBody(secret)
  const key = { 'idempotency-key': 'import-once' }
  const first = await fixture.app.admin('POST', PATH, body, key)
  const again = await fixture.app.admin('POST', PATH, body, key)
  expect(again.headers['idempotency-replayed']).toBe('true')
  expect(again.body).toEqual(first.body)
  expect(first.body).toMatchObject({ message: 'Webhook created with the given secret.', data: { secret: null } })
  const other = { ...body, secret: makeSecret(32) }
  expectProblem(await fixture.app.admin('POST', PATH, other, key), 422, 'idempotency_key_reused')
  const id = first.body.data.document_id
  const audit = await fixture.app.admin('GET', `/api/v3/audit/log?filters=target|eq|${id}`)
  expect(JSON.stringify(audit.body.data)).toContain('"secret_imported":true')
  const answers = [first.body, again.body, audit.body, (await fixture.app.admin('GET', `${PATH}/${id}`)).body]
  const bytes = Buffer.from(secret.slice(6), 'base64')
  const dump = await dumpDatabase(fixture.app.database.pool)
  for (const form of [secret, secret.slice(6), bytes.toString('hex'), bytes.toString('base64url')])
    for (const text of [JSON.stringify(answers), dump]) expect(text).not.toContain(form)
})

test('webhooks#secret-of-a-known-value: it needs webhook:import for all accounts, whatever else the caller may', async () => {
  const listed = await fixture.app.admin('GET', '/api/v3/identity/permission?filters=name|eq|webhook:import')
  expect(listed.body.data).toMatchObject([{ name: 'webhook:import' }])
  expect((await importAs(await keyWith(['webhook:create', 'webhook:import']))).status).toBe(201)
  expect((await importAs(await keyWith(['webhook:*']))).status).toBe(201)

  const narrowed = await keyWith(['webhook:create', 'webhook:update'])
  const refused = expectProblem(await importAs(narrowed), 403, 'permission_denied')
  expect(refused.missing).toEqual({ what: 'permission', permission: 'webhook:import' })
  // 403 comes before the rules of the value and of the URL, which the caller learns nothing of.
  expectProblem(await importAs(narrowed, makeSecret(8), { url: 'https://10.0.0.1/' }), 403, 'permission_denied')
  expect((await narrowed('POST', PATH, buildBody(undefined))).status).toBe(201)

  const own = { is_global: false, account }
  const members = [
    await fixture.signInWithRoles([account], ['account-admin']),
    await fixture.signInWithRoles([account], ['account-developer']),
  ]
  for (const { call } of members) {
    const problem = expectProblem(await importAs(call, makeSecret(), own), 403, 'permission_denied')
    expect(problem.missing).toEqual({ what: 'scope', permission: 'webhook:import' })
  }
  const bound = await keyWith(['webhook:create'], { account })
  expectProblem(await importAs(bound, makeSecret(), own), 403, 'permission_denied')
  expectProblem(await importAs(fixture.app.anonymous), 401, 'unauthenticated')

  const role = { name: 'importer', is_account_scoped: true, permissions: ['webhook:import'] }
  const problem = expectProblem(
    await fixture.app.admin('POST', '/api/v3/identity/role', role),
    422,
    'validation_failed',
  )
  expect(problem.errors).toMatchObject([{ path: 'permissions.0', code: 'no_effect_in_scope' }])
})

test('webhooks#secret-of-a-known-value: a malformed or weak one is a 422 on secret, without its value, and nothing is made', async () => {
  const count = async () => (await fixture.app.admin('GET', `${PATH}?count=true&page_size=1`)).body.pagination.total
  const before = await count()
  const secrets: [unknown, string | undefined][] = [
    [makeSecret(23), 'pattern'],
    [makeSecret(65), 'pattern'],
    [makeSecret().slice(6), 'pattern'],
    ['whsec_', 'pattern'],
    [`${makeSecret()}\n`, 'pattern'],
    [`whsec_${Buffer.alloc(32, 1).toString('base64')}`, 'weak'],
    ['', undefined],
    [null, undefined],
    [7, undefined],
    [[makeSecret()], undefined],
    [`whsec_${'A'.repeat(60_000)}`, undefined],
  ]
  for (const [secret, code] of secrets) {
    const problem = expectProblem(await importAs(fixture.app.admin, secret), 422, 'validation_failed')
    expect(problem.errors).toMatchObject([{ path: 'secret', ...(code && { code }) }])
    if (typeof secret === 'string' && secret.length > 12)
      expect(JSON.stringify(problem)).not.toContain(secret.slice(8, 20))
  }
  for (const text of ['\\u0000', '\\ud800']) {
    const raw = JSON.stringify(buildBody('SECRET')).replace('SECRET', `whsec_${text}`)
    const { status } = await fixture.app.admin('POST', PATH, raw)
    expect([400, 422]).toContain(status)
  }
  expect((await importAs(fixture.app.admin, `whsec_${'A'.repeat(1_048_576)}`)).status).toBe(413)
  const made = await fixture.app.admin('POST', PATH, buildBody(undefined))
  const path = `${PATH}/${made.body.data.document_id}`
  expectProblem(await fixture.app.admin('PATCH', path, { secret: makeSecret() }), 422, 'validation_failed')
  expect(await count()).toBe(before + 1)
})
