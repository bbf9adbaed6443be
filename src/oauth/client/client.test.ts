import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { systemRandom } from '../../base/random.ts'
import { DEVICE_GRANT } from './client.store.ts'
import { checkSettings, DEFAULT_SETTINGS } from './client.ts'
import { createClientSecret, describeSecrets, findPresentedSecret } from './client-secret.ts'

const PATH = '/api/v3/oauth/client'
const BODY = { name: 'Example app', type: 'confidential', redirect_uris: ['https://app.example.com/callback'] }

const app = await openForFile(createTestApp())

const make = async (body: object = {}) => (await app.admin('POST', PATH, { ...BODY, ...body })).body.data

describe('a client', () => {
  test('is created with a secret that is shown once and kept as a hash', async () => {
    const made = await make()
    expect(made.client_secret).toMatch(/^sbcs_[\w-]{43}$/)
    const read = await app.admin('GET', `${PATH}/${made.document_id}`)
    expect(read.body.data).not.toHaveProperty('client_secret')
    expect(read.body.data).toMatchObject({
      client_id: made.document_id,
      application_type: 'web',
      registration: 'administrator',
    })
    const { rows } = await app.database.pool.query('select * from oauth_client_secret where client = $1', [
      made.document_id,
    ])
    expect(JSON.stringify(rows)).not.toContain(made.client_secret)
  })

  test('that is public has no secret, and cannot rotate one', async () => {
    const made = await make({ type: 'public' })
    expect(made.client_secret).toBeNull()
    expect((await app.admin('POST', `${PATH}/${made.document_id}/rotate-secret`, {})).status).toBe(409)
  })

  test('changes what an update names, and nothing else', async () => {
    const made = await make({ publisher: 'Example Ltd' })
    const changed = await app.admin('PATCH', `${PATH}/${made.document_id}`, { name: 'Renamed' })
    expect(changed.body.data).toMatchObject({
      name: 'Renamed',
      publisher: 'Example Ltd',
      redirect_uris: BODY.redirect_uris,
    })
    const again = await app.admin('PATCH', `${PATH}/${made.document_id}`, { name: 'Renamed' })
    expect(again.body.message).toBe('Client unchanged.')
  })

  test.each([
    [{ redirect_uris: ['http://app.example.com/callback'] }, 'redirect_uris.0'],
    [{ redirect_uris: [] }, 'redirect_uris'],
    [{ post_logout_redirect_uris: ['https://app.example.com/#x'] }, 'post_logout_redirect_uris.0'],
    [{ grant_types: ['refresh_token'] }, 'grant_types'],
    [{ grant_types: ['password'] }, 'grant_types.0'],
    [{ scopes: ['everything'] }, 'scopes.0'],
    [{ backchannel_logout_uri: 'http://app.example.com/out' }, 'backchannel_logout_uri'],
    [{ backchannel_logout_uri: 'ftp://localhost/out' }, 'backchannel_logout_uri'],
    [{ backchannel_logout_uri: 'https://app.example.com/out#' }, 'backchannel_logout_uri'],
  ])('is refused with %j', async (body, path) => {
    const answer = await app.admin('POST', PATH, { ...BODY, ...body })
    expect(answer.status).toBe(422)
    expect(answer.body.errors[0].path).toBe(path)
  })

  test('is listed until it is deleted', async () => {
    const made = await make({ name: 'To be deleted' })
    const list = () => app.admin('GET', `${PATH}?filters=document_id|eq|${made.document_id}`)
    expect((await list()).body.data).toHaveLength(1)
    expect((await app.admin('DELETE', `${PATH}/${made.document_id}`)).status).toBe(200)
    expect((await list()).body.data).toHaveLength(0)
    expect((await app.admin('DELETE', `${PATH}/${made.document_id}`)).status).toBe(404)
  })

  test('of the device flow alone needs no redirect URI', () => {
    const settings = { ...DEFAULT_SETTINGS, name: 'Tool', type: 'public' as const, redirectUris: [] }
    expect(() => checkSettings({ ...settings, grantTypes: [DEVICE_GRANT] })).not.toThrow()
  })

  test('cannot be managed without the permission', async () => {
    const { call } = await app.signInMember()
    expect((await call('POST', PATH, BODY)).status).toBe(403)
  })
})

/** A program with these permissions. */
async function programWith(permissions: string[]) {
  const reply = await app.admin('POST', '/api/v3/identity/api-key', { name: 'program', permissions })
  return app.callAs(reply.body.data.key)
}

describe('a first-party client', () => {
  const OPENS = ['contract:find-all', 'contract:find-one']
  const FIRST_PARTY = { ...BODY, first_party: true, scopes: ['openid', 'contract:read'] }

  test('opens no more than the caller holds for all accounts', async () => {
    const narrow = await programWith(['oauth-client:*'])
    expect(await narrow('POST', PATH, FIRST_PARTY)).toMatchObject({
      status: 403,
      body: { missing: { permission: 'contract:find-all' } },
    })
    expect((await narrow('POST', PATH, { ...FIRST_PARTY, first_party: false })).status).toBe(201)
    expect((await narrow('POST', PATH, { ...FIRST_PARTY, scopes: ['openid', 'profile'] })).status).toBe(201)
    const wide = await programWith(['oauth-client:*', ...OPENS])
    expect((await wide('POST', PATH, FIRST_PARTY)).status).toBe(201)
  })

  test('is not taken over by a caller that holds less: not by a redirect URI, a new secret or its scopes', async () => {
    const narrow = await programWith(['oauth-client:*'])
    const trusted = (await app.admin('POST', PATH, FIRST_PARTY)).body.data.document_id
    const path = `${PATH}/${trusted}`
    const patch = (body: object) => narrow('PATCH', path, body)
    expect((await patch({ redirect_uris: ['https://elsewhere.example.com/callback'] })).status).toBe(403)
    expect((await patch({ first_party: false, scopes: ['openid'] })).status).toBe(403)
    expect((await narrow('POST', `${path}/rotate-secret`, {})).status).toBe(403)
    const plain = await make({ scopes: ['openid', 'contract:read'] })
    expect((await narrow('PATCH', `${PATH}/${plain.document_id}`, { first_party: true })).status).toBe(403)
    expect((await app.admin('GET', path)).body.data).toMatchObject({ redirect_uris: BODY.redirect_uris })
  })

  test('may be deleted by who may delete clients, because that gives nothing', async () => {
    const narrow = await programWith(['oauth-client:delete'])
    const trusted = (await app.admin('POST', PATH, FIRST_PARTY)).body.data.document_id
    expect((await narrow('DELETE', `${PATH}/${trusted}`)).status).toBe(200)
  })
})

describe('a client whose scopes reach the API', () => {
  const REACHING = { ...BODY, scopes: ['openid', 'webhook:read'] }
  const ELSEWHERE = { redirect_uris: ['https://elsewhere.example.com/callback'] }

  test('is not taken over by a caller that holds less than its scopes open, whatever the way', async () => {
    const narrow = await programWith(['oauth-client:*', 'webhook:*'])
    const path = `${PATH}/${(await make(REACHING)).document_id}`
    const refused = { status: 403, body: { missing: { permission: 'webhook-dispatch:find-all' } } }
    expect(await narrow('PATCH', path, ELSEWHERE)).toMatchObject(refused)
    expect(await narrow('POST', `${path}/rotate-secret`, {})).toMatchObject(refused)
    const keys = { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'https://elsewhere.example.com/keys' }
    expect(await narrow('PATCH', path, keys)).toMatchObject(refused)
    const pushing = { ...REACHING, require_pushed_authorization_requests: true }
    const pushed = `${PATH}/${(await make(pushing)).document_id}`
    expect(await narrow('PATCH', pushed, { require_pushed_authorization_requests: false })).toMatchObject(refused)
    // Without its scopes the rest could be changed, and the scopes be given back.
    expect(await narrow('PATCH', path, { scopes: ['openid'] })).toMatchObject(refused)
    expect(await narrow('PATCH', path, { ...ELSEWHERE, scopes: ['openid'] })).toMatchObject(refused)
    expect((await app.admin('GET', path)).body.data).toMatchObject(REACHING)
  })

  test('is changed by it where that gives nothing, and wholly by a caller that holds all of it', async () => {
    const narrow = await programWith(['oauth-client:*'])
    const path = `${PATH}/${(await make(REACHING)).document_id}`
    expect((await narrow('PATCH', path, { name: 'Renamed', publisher: 'Example Ltd' })).status).toBe(200)
    const opened = ['webhook', 'webhook-event', 'webhook-dispatch', 'replay-job'].map((text) => `${text}:*`)
    const wide = await programWith(['oauth-client:*', ...opened])
    expect((await wide('PATCH', path, ELSEWHERE)).status).toBe(200)
    expect((await wide('POST', `${path}/rotate-secret`, {})).status).toBe(200)
  })

  test('of identity scopes alone is any manager of clients to change', async () => {
    const narrow = await programWith(['oauth-client:*'])
    const path = `${PATH}/${(await make({ scopes: ['openid', 'email'] })).document_id}`
    expect((await narrow('PATCH', path, ELSEWHERE)).status).toBe(200)
    expect((await narrow('POST', `${path}/rotate-secret`, {})).status).toBe(200)
  })
})

describe('the secrets of a client', () => {
  test('are all accepted until they expire, and nothing else is', () => {
    const [first, second] = [createClientSecret(systemRandom), createClientSecret(systemRandom)]
    const described = describeSecrets([
      { hash: first.hash, expiresAt: new Date(1000) },
      { hash: second.hash, expiresAt: null },
    ])
    expect(findPresentedSecret(described, first.secret, 999)).toEqual(first.hash)
    expect(findPresentedSecret(described, first.secret, 1000)).toBeUndefined()
    expect(findPresentedSecret(described, second.secret, 1000)).toEqual(second.hash)
    expect(findPresentedSecret(described, described, 0)).toBeUndefined()
    expect(findPresentedSecret(describeSecrets([]), 'none', 0)).toBeUndefined()
  })

  test('are at most five at once', async () => {
    const made = await make()
    const rotate = (body?: object) => app.admin('POST', `${PATH}/${made.document_id}/rotate-secret`, body)
    // Without a body as with an empty one.
    for (const body of [undefined, {}, {}, {}]) expect((await rotate(body)).status).toBe(200)
    expect((await rotate({})).body.code).toBe('limit_reached')
    expect((await rotate({ overlap_seconds: 0 })).status).toBe(200)
  })
})
