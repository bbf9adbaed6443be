import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'

const PATH = '/api/v3/oauth/client'
const NO_ONE = '00000000-0000-7000-8000-000000000000'

let app: TestApp
beforeAll(async () => {
  // The provider compares expiries with the time of the machine.
  app = await createTestApp({ clock: buildManualClock(Date.now()) })
})
afterAll(() => app[Symbol.asyncDispose]())

const make = async (type: string) => {
  const body = { name: 'Example app', type, redirect_uris: ['https://app.example.com/callback'] }
  return (await app.admin('POST', PATH, body)).body.data
}
const list = async (id: string) => (await app.admin('GET', `${PATH}/${id}/secret`)).body.data
const rotate = async (id: string, overlap_seconds: number) =>
  (await app.admin('POST', `${PATH}/${id}/rotate-secret`, { overlap_seconds })).body.data.client_secret
/** Status of a request for a token with this secret: 400 when the secret is accepted and the code is not, 401 when it is not. */
const present = async (id: string, secret: string) => {
  const authorization = `Basic ${Buffer.from(`${id}:${encodeURIComponent(secret)}`).toString('base64')}`
  const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' }
  const body = 'grant_type=authorization_code&code=none&redirect_uri=https%3A%2F%2Fapp.example.com%2Fcallback'
  return (await app.anonymous('POST', '/api/v3/oauth/token', body, headers)).status
}

test('the valid secrets are listed, the newest first, without a part of them', async () => {
  const { document_id: id } = await make('confidential')
  app.clock.advance(1_000)
  await rotate(id, 60)
  const secrets = await list(id)
  expect(secrets).toEqual([
    { document_id: expect.any(String), created_at: expect.any(String), expires_at: null },
    { document_id: expect.any(String), created_at: expect.any(String), expires_at: expect.any(String) },
  ])
  app.clock.advance(60_000)
  expect(await list(id)).toEqual([secrets[0]])
})

test('maintenance deletes a secret that has expired, and no other', async () => {
  const { document_id: id } = await make('confidential')
  await rotate(id, 60)
  const kept = 'select count(*)::int as kept from oauth_client_secret where client = $1'
  const count = async () => (await app.database.pool.query<{ kept: number }>(kept, [id])).rows[0]?.kept
  app.clock.advance(60_000)
  await app.app.maintenance.sweep()
  expect(await count()).toBe(2)
  app.clock.advance(1)
  await app.app.maintenance.sweep()
  expect(await count()).toBe(1)
  expect(await list(id)).toMatchObject([{ expires_at: null }])
})

test('a public client has no secret', async () => {
  expect(await list((await make('public')).document_id)).toEqual([])
})

test('a revoked secret is refused at once, and the other one serves', async () => {
  const { document_id: id, client_secret: first } = await make('confidential')
  app.clock.advance(1_000)
  const second = await rotate(id, 3_600)
  expect([await present(id, first), await present(id, second)]).toEqual([400, 400])
  const [, old] = await list(id)
  const revoked = await app.admin('DELETE', `${PATH}/${id}/secret/${old.document_id}`)
  expect([revoked.status, revoked.body.data]).toEqual([200, old])
  expect([await present(id, first), await present(id, second)]).toEqual([401, 400])
  expect((await app.admin('DELETE', `${PATH}/${id}/secret/${old.document_id}`)).status).toBe(404)
  const audit = await app.admin('GET', '/api/v3/audit/log?filters=action|eq|oauth-client.revoke-secret')
  expect(audit.body.data[0]).toMatchObject({ target: id, detail: { secret: old.document_id } })
})

test('a client without a secret gets a new one', async () => {
  const { document_id: id } = await make('confidential')
  const [only] = await list(id)
  await app.admin('DELETE', `${PATH}/${id}/secret/${only.document_id}`)
  expect(await list(id)).toEqual([])
  expect(await present(id, await rotate(id, 0))).toBe(400)
})

test('a secret of another client, one that has ended, and an unknown client are not found', async () => {
  const [{ document_id: id }, { document_id: other }] = [await make('confidential'), await make('confidential')]
  const [foreign] = await list(other)
  expect((await app.admin('DELETE', `${PATH}/${id}/secret/${foreign.document_id}`)).status).toBe(404)
  const [ended] = await list(id)
  await rotate(id, 0)
  expect((await app.admin('DELETE', `${PATH}/${id}/secret/${ended.document_id}`)).status).toBe(404)
  expect((await app.admin('GET', `${PATH}/${NO_ONE}/secret`)).status).toBe(404)
  expect((await app.admin('DELETE', `${PATH}/${NO_ONE}/secret/${foreign.document_id}`)).status).toBe(404)
  expect((await app.admin('DELETE', `${PATH}/${id}/secret/first`)).status).toBe(404)
  expect(await list(other)).toEqual([foreign])
})

test.each([
  ['GET', 'oauth-client:find-secrets', `${PATH}/${NO_ONE}/secret`],
  ['DELETE', 'oauth-client:revoke-secret', `${PATH}/${NO_ONE}/secret/${NO_ONE}`],
] as const)('%s needs a token and %s', async (method, permission, path) => {
  expect((await app.anonymous(method, path)).status).toBe(401)
  const refused = await (await app.signInMember([])).call(method, path)
  expect([refused.status, refused.body.detail]).toEqual([403, expect.stringContaining(permission)])
})
