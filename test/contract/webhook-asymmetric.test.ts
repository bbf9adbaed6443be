import { createPublicKey, verify, type webcrypto } from 'node:crypto'
import { createLocalJWKSet } from 'jose'
import { expect, test } from 'vitest'
import { verifyTimestamped } from '../../src/outbound/signature.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { dumpDatabase } from '../harness/run/trail.ts'
import { expectProblem, NO_ONE, startContractFixture } from './contract-fixture.ts'

const PATH = '/api/v3/webhook/webhook'
const DAY_MS = 86_400_000

const fixture = await openForFile(startContractFixture())

let paths = 0
/** A global webhook of its own path of the receiver, with these members. */
async function create(members: object = { asymmetric_signature: true }) {
  paths += 1
  const url = `${fixture.receiver.origin}/asymmetric-${paths}`
  const answer = await fixture.app.admin('POST', PATH, { url, is_global: true, ...members })
  return { answer, row: answer.body.data, url, path: `${PATH}/${answer.body.data?.document_id}` }
}

/** The signature tokens of the last delivery to a URL, after a test delivery. */
async function deliver({ url, path }: { url: string; path: string }) {
  await fixture.app.admin('POST', `${path}/test`)
  await fixture.app.settle()
  const request = fixture.receiver.requests.filter((candidate) => url.endsWith(candidate.path)).at(-1)!
  const { headers, body } = request
  const signed = Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`)
  const [v1, v1a] = String(headers['webhook-signature']).split(' ')
  return { headers, body, v1, v1a, isSignedBy: (jwk: webcrypto.JsonWebKey) => isSigned(v1a, signed, jwk) }
}

function isSigned(v1a: string | undefined, signed: Buffer, jwk: webcrypto.JsonWebKey): boolean {
  expect(v1a).toMatch(/^v1a,/)
  return verify(null, signed, createPublicKey({ key: jwk, format: 'jwk' }), Buffer.from(v1a!.slice(4), 'base64'))
}

const readKeys = (path: string, headers = {}) => fixture.app.anonymous('GET', `${path}/jwks`, undefined, headers)
const toX = (publicKey: string) => Buffer.from(publicKey.slice(5), 'base64').toString('base64url')

test('webhooks#asymmetric-signature: deliveries are signed with the listed key too, and a plain webhook is as before', async () => {
  const webhook = await create()
  expect(webhook.row.public_key).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/)
  const { keys } = (await readKeys(webhook.path)).body
  expect(keys).toMatchObject([{ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', x: toX(webhook.row.public_key) }])
  const delivered = await deliver(webhook)
  expect(delivered.isSignedBy(keys[0])).toBe(true)
  const findKey = createLocalJWKSet({ keys })
  expect(await findKey({ alg: 'EdDSA', kid: keys[0].kid })).toMatchObject({ type: 'public' })
  const nowSeconds = fixture.app.clock.now() / 1000
  const header = String(delivered.headers['x-service-signature'])
  expect(verifyTimestamped({ secret: webhook.row.secret, header, body: delivered.body, nowSeconds }).ok).toBe(true)

  const plain = await create({})
  expect(plain.row).toMatchObject({ public_key: null, previous_public_key: null, previous_public_key_until: null })
  expect((await deliver(plain)).v1a).toBeUndefined()
  expectProblem(await readKeys(plain.path), 404, 'not_found')
})

test('webhooks#asymmetric-signature: an update switches it on and off, the present value is no change, and a new key differs', async () => {
  const webhook = await create({})
  const set = async (on: unknown) => (await fixture.app.admin('PATCH', webhook.path, { asymmetric_signature: on })).body
  expect((await set(false)).message).toBe('Webhook unchanged.')
  const first = (await set(true)).data.public_key
  expect(await set(true)).toMatchObject({ message: 'Webhook unchanged.', data: { public_key: first } })
  await fixture.app.admin('POST', `${webhook.path}/rotate-key`)
  expect((await set(false)).data).toMatchObject({
    public_key: null,
    previous_public_key: null,
    previous_public_key_until: null,
  })
  expectProblem(await readKeys(webhook.path), 404, 'not_found')
  expect((await deliver(webhook)).v1a).toBeUndefined()
  expect((await set(true)).data.public_key).not.toBe(first)
  expect((await deliver(webhook)).isSignedBy((await readKeys(webhook.path)).body.keys[0])).toBe(true)
  for (const on of [null, 'true', 1, []])
    expectProblem(
      await fixture.app.admin('PATCH', webhook.path, { asymmetric_signature: on }),
      422,
      'validation_failed',
    )
})

test('webhooks#asymmetric-signature: parallel changes make one key, and one that is switched off meanwhile is not rotated', async () => {
  const webhook = await create({})
  const on = { asymmetric_signature: true }
  const changed = await Promise.all(Array.from({ length: 5 }, () => fixture.app.admin('PATCH', webhook.path, on)))
  expect(new Set(changed.map(({ body }) => body.data.public_key)).size).toBe(1)
  expect(changed.filter(({ body }) => body.message === 'Webhook updated.')).toHaveLength(1)
  const rotations = Array.from({ length: 4 }, () => fixture.app.admin('POST', `${webhook.path}/rotate-key`))
  const off = fixture.app.admin('PATCH', webhook.path, { asymmetric_signature: false })
  const statuses = (await Promise.all(rotations)).map(({ status }) => status)
  expect((await off).status).toBe(200)
  expect(statuses.filter((status) => status !== 409 && status !== 200)).toEqual([])
  expect((await fixture.app.admin('GET', webhook.path)).body.data).toMatchObject({
    public_key: null,
    previous_public_key: null,
  })
})

test('webhooks#asymmetric-signature: a narrowed key and another account change and rotate nothing', async () => {
  const [mine, theirs] = [await fixture.createAccount(), await fixture.createAccount()]
  const owned = await create({ is_global: false, account: mine.document_id, asymmetric_signature: true })
  const { call: stranger } = await fixture.signInWithRoles([theirs.document_id], ['account-admin'])
  const { call: viewer } = await fixture.signInWithRoles([mine.document_id], ['account-viewer'])
  const { call: developer } = await fixture.signInWithRoles([mine.document_id], ['account-developer'])
  const made = await fixture.app.admin('POST', '/api/v3/identity/api-key', {
    name: 'narrow',
    permissions: ['webhook:find-one', 'webhook:rotate-secret'],
  })
  const narrow = fixture.app.callAs(made.body.data.key)
  const rotate = `${owned.path}/rotate-key`
  const off = { asymmetric_signature: false }
  expectProblem(await stranger('POST', rotate), 404, 'not_found')
  expectProblem(await stranger('PATCH', owned.path, off), 404, 'not_found')
  for (const call of [viewer, narrow]) {
    expectProblem(await call('POST', rotate), 403, 'permission_denied')
    expectProblem(await call('PATCH', owned.path, off), 403, 'permission_denied')
  }
  expectProblem(await developer('POST', `${(await create()).path}/rotate-key`), 404, 'not_found')
  expect((await readKeys(owned.path)).body.keys).toMatchObject([{ x: toX(owned.row.public_key) }])
  expect((await developer('POST', rotate)).status).toBe(200)
})

test('webhooks#asymmetric-signature: the private key is in no answer, and in the database only sealed', async () => {
  const webhook = await create()
  const answers = [
    webhook.answer.body,
    (await fixture.app.admin('GET', webhook.path)).body,
    (await fixture.app.admin('POST', `${webhook.path}/rotate-key`)).body,
    (await fixture.app.admin('GET', `${PATH}/export?format=csv`)).body,
    (await fixture.app.admin('GET', '/api/v3/audit/log?filters=action|eq|webhook.rotate-key')).body,
    (await readKeys(webhook.path)).body,
  ]
  for (const text of [JSON.stringify(answers), await dumpDatabase(fixture.app.database.pool)]) {
    expect(text).not.toContain('whsk_')
    expect(text).not.toContain('signing_key_encrypted": "whsk')
  }
  expect(JSON.stringify(answers)).not.toMatch(/"d":|v1\.[0-9a-f]{8}\./)
})

test('webhooks#key-set: it is bare, cached for 300 s, and a request that has it already is a 304', async () => {
  const webhook = await create()
  const first = await readKeys(webhook.path)
  expect(Object.keys(first.body)).toEqual(['keys'])
  expect(first.headers).toMatchObject({
    'cache-control': 'public, max-age=300',
    etag: expect.stringMatching(/^"\S+"$/),
  })
  const { etag } = first.headers as { etag: string }
  const again = await readKeys(webhook.path, { 'if-none-match': `"other", W/${etag}` })
  expect(again).toMatchObject({ status: 304, headers: { etag, 'cache-control': 'public, max-age=300' } })
  expect(again.body).toBeFalsy()
  expect((await readKeys(webhook.path, { 'if-none-match': '"other"' })).status).toBe(200)
  await fixture.app.admin('POST', `${webhook.path}/rotate-key`)
  expect((await readKeys(webhook.path, { 'if-none-match': etag })).status).toBe(200)
})

test('webhooks#key-set: it ends with deactivation, deletion and the account, in the answer of a webhook that never existed', async () => {
  const never = (await readKeys(`${PATH}/${NO_ONE}`)).body
  const isGone = async (path: string) => {
    const { request_id: _, ...body } = (await readKeys(path)).body
    const { request_id: __, ...expected } = never
    expect(body).toEqual(expected)
  }
  const webhook = await create()
  await fixture.app.admin('PATCH', `${webhook.path}/active`, { is_actived: false })
  await isGone(webhook.path)
  await fixture.app.admin('PATCH', `${webhook.path}/active`, { is_actived: true })
  expect((await readKeys(webhook.path)).status).toBe(200)
  await fixture.app.admin('DELETE', webhook.path)
  await isGone(webhook.path)
  await fixture.app.admin('DELETE', `${webhook.path}/purge`)
  await isGone(webhook.path)

  const account = (await fixture.app.admin('POST', '/api/v3/identity/account', { name: 'Ends' })).body.data.document_id
  const owned = await create({ is_global: false, account, asymmetric_signature: true })
  expect((await readKeys(owned.path)).status).toBe(200)
  await fixture.app.admin('DELETE', `/api/v3/identity/account/${account}`)
  await isGone(owned.path)
  expectProblem(await readKeys(`${PATH}/not-an-id`), 404, 'not_found')
})

test('webhooks#key-rotation: both keys are listed for 24 hours, the new one alone signs, and another rotation waits', async () => {
  const webhook = await create()
  const before = webhook.row.public_key
  const rotated = await fixture.app.admin('POST', `${webhook.path}/rotate-key`)
  const { public_key: after, previous_public_key_until: until } = rotated.body.data
  expect(rotated).toMatchObject({ status: 200, body: { data: { previous_public_key: before } } })
  expect(Date.parse(until) - fixture.app.clock.now()).toBe(DAY_MS)
  const list = async () => (await readKeys(webhook.path)).body.keys
  const keys = await list()
  expect(keys.map(({ x }: { x: string }) => x)).toEqual([toX(after), toX(before)])
  expect(new Set(keys.map(({ kid }: { kid: string }) => kid)).size).toBe(2)
  const delivered = await deliver(webhook)
  expect(keys.map(delivered.isSignedBy)).toEqual([true, false])

  const early = expectProblem(await fixture.app.admin('POST', `${webhook.path}/rotate-key`), 409, 'conflict')
  expect(early.detail).toContain(until)
  fixture.app.clock.advance(DAY_MS - 1)
  expect(await list()).toHaveLength(2)
  expectProblem(await fixture.app.admin('POST', `${webhook.path}/rotate-key`), 409, 'conflict')
  fixture.app.clock.advance(1)
  expect(await list()).toMatchObject([{ x: toX(after) }])
  expect((await fixture.app.admin('POST', `${webhook.path}/rotate-key`)).status).toBe(200)
  expectProblem(await fixture.app.admin('POST', `${(await create({})).path}/rotate-key`), 409, 'conflict')
  expectProblem(await fixture.app.admin('POST', `${PATH}/${NO_ONE}/rotate-key`), 404, 'not_found')
  expectProblem(await fixture.app.anonymous('POST', `${webhook.path}/rotate-key`), 401, 'unauthenticated')
})

test('webhooks#key-rotation: the secret stays, and a rotated secret leaves the key', async () => {
  const webhook = await create()
  await fixture.app.admin('POST', `${webhook.path}/rotate-key`)
  const { v1 } = await deliver(webhook)
  const rotated = (await fixture.app.admin('POST', `${webhook.path}/rotate-secret`)).body.data
  expect(rotated.previous_public_key).toBe(webhook.row.public_key)
  const delivered = await deliver(webhook)
  expect(delivered.v1).not.toBe(v1)
  expect(delivered.isSignedBy((await readKeys(webhook.path)).body.keys[0])).toBe(true)
})
