import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { watchInvalidations } from '../../../test/harness/database/watched-invalidations.ts'
import { countTraffic } from '../../../test/harness/plan/round-trips.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { hashClientSecret } from './client-secret.ts'
import { buildSecretUses } from './secret-list.ts'

const PATH = '/api/v3/oauth/client'
const NO_ONE = '00000000-0000-7000-8000-000000000000'

// The provider compares expiries with the time of the machine.
const app = await openForFile(createTestApp({ clock: buildManualClock(Date.now()) }))

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

const unused = { document_id: expect.any(String), created_at: expect.any(String), last_used_at: null }

test('the valid secrets are listed, the newest first, without a part of them', async () => {
  const { document_id: id } = await make('confidential')
  app.clock.advance(1_000)
  await rotate(id, 60)
  const secrets = await list(id)
  expect(secrets).toEqual([
    { ...unused, expires_at: null },
    { ...unused, expires_at: expect.any(String) },
  ])
  app.clock.advance(60_000)
  expect(await list(id)).toEqual([secrets[0]])
})

test('a secret has the minute of its last use, and neither a refused one nor another secret', async () => {
  const { document_id: id, client_secret: first } = await make('confidential')
  app.clock.advance(1_000)
  await rotate(id, 3_600)
  const usesOf = async () => (await list(id)).map((row: { last_used_at: string | null }) => row.last_used_at)
  expect(await present(id, `${first}x`)).toBe(401)
  expect(await usesOf()).toEqual([null, null])
  const before = Date.now()
  expect(await present(id, first)).toBe(400)
  const [ofNew, ofOld] = await usesOf()
  expect(ofNew).toBeNull()
  expect(Date.parse(ofOld)).toBeGreaterThanOrEqual(before - 1)
  expect(await present(id, first)).toBe(400)
  expect(await usesOf()).toEqual([null, ofOld])
})

test('a use is written once a minute by each process, and never before a later one', async () => {
  const { document_id: id, client_secret: secret } = await make('confidential')
  const hash = hashClientSecret(secret)
  const nowMs = Date.now()
  const [one, other] = [buildSecretUses(app.database.db), buildSecretUses(app.database.db)]
  const use = async (note: typeof one, atMs: number) => {
    await note({ client: id, hash, nowMs: atMs })
    return Date.parse((await list(id))[0].last_used_at)
  }
  expect(await use(one, nowMs)).toBe(nowMs)
  expect(await use(other, nowMs + 59_999)).toBe(nowMs)
  expect(await use(one, nowMs + 60_000)).toBe(nowMs + 60_000)
  expect(await use(other, nowMs - 1)).toBe(nowMs + 60_000)
  // Neither of a client that has another id, nor of a secret that has ended.
  await one({ client: NO_ONE, hash, nowMs: nowMs + 200_000 })
  await rotate(id, 0)
  await other({ client: id, hash, nowMs: nowMs + 300_000 })
  expect(await list(id)).toMatchObject([{ last_used_at: null }])
})

test('a process asks the database about a use once a minute, for each secret', async () => {
  const { document_id: id, client_secret: secret } = await make('confidential')
  const [hash, other] = [hashClientSecret(secret), hashClientSecret(`${secret}x`)]
  const [note, nowMs] = [buildSecretUses(app.database.db), Date.now()]
  const isAsked = async (noted: Buffer, atMs: number) => {
    const counting = countTraffic(app.database.pool)
    await note({ client: id, hash: noted, nowMs: atMs })
    return counting.stop().roundTrips > 0
  }
  expect([await isAsked(hash, nowMs), await isAsked(other, nowMs), await isAsked(hash, nowMs + 59_999)]).toEqual([
    ...[true, true, false],
  ])
  expect([await isAsked(hash, nowMs + 60_000), await isAsked(hash, nowMs + 60_001)]).toEqual([true, false])
})

test('a use is no change that drops the client from the caches of the processes', async () => {
  const { document_id: id, client_secret: secret } = await make('confidential')
  await using changes = await watchInvalidations(app.database)
  await changes.begin()
  await buildSecretUses(app.database.db)({ client: id, hash: hashClientSecret(secret), nowMs: Date.now() })
  expect((await list(id))[0].last_used_at).not.toBeNull()
  expect((await changes.read()).sent).toEqual([])
  await rotate(id, 0)
  expect((await changes.read()).sent).toEqual([`c:${id}`])
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
