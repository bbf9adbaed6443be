import { generateKeyPairSync } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import * as oauth from 'oauth4webapi'
import { beforeEach, describe, expect, test } from 'vitest'
import { openFlow } from '../../../test/harness/browser/oauth-flow.ts'
import { openBrowser, startOauthFixture } from '../../../test/harness/browser/oauth-service.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

/** Clients that prove themselves by a key, push their requests and bind their tokens (docs/contract/oauth.md#keys-of-a-client). */

const INSECURE = { [oauth.allowInsecureRequests]: true }
const KEYS_AT = 'https://app.example.com/keys'

let keys: { privateKey: CryptoKey; jwk: JWK }
/** Answer of the address of keys, and the count of its requests. */
let served: { status: number; body: unknown; asked: number }

async function makeKeys() {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), kid: crypto.randomUUID() } }
}

const fixture = await openForFile(
  startOauthFixture({
    env: { OAUTH_REGISTRATION: 'true' },
    fetchProvider: async (url) => {
      served.asked += 1
      if (url !== KEYS_AT) throw new Error('no such address')
      return new Response(JSON.stringify(served.body), {
        status: served.status,
        headers: { 'cache-control': 'max-age=31536000' },
      })
    },
  }),
)
const user = await fixture.user()
beforeEach(async () => {
  keys = await makeKeys()
  served = { status: 200, body: { keys: [keys.jwk] }, asked: 0 }
})

const keyed = (body: object = {}) =>
  fixture.client({ token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [keys.jwk] }, ...body })

const authOf = (signer = keys) => oauth.PrivateKeyJwt({ key: signer.privateKey, kid: signer.jwk.kid ?? '' })

/** Pushes an authorization request; the answer of the provider. */
async function push(id: string, auth: oauth.ClientAuth, parameters: Record<string, string> = {}) {
  const flow = await openFlow(fixture, { id, secret: null, redirectUri: 'http://127.0.0.1:4711/callback' })
  const { url, ...kept } = await flow.prepare({ parameters })
  const answer = await oauth.pushedAuthorizationRequest(flow.as, flow.client, auth, new URL(url).searchParams, INSECURE)
  return { flow, kept, answer }
}

/** Posts a JWT of the client to the token endpoint with a code that there is not: who it is comes first. */
async function postAssertion(id: string, claims: object, { keyPair = keys, alg = 'ES256' } = {}) {
  const issued = Math.floor(Date.now() / 1000)
  const payload = {
    iss: id,
    sub: id,
    aud: fixture.issuer,
    jti: crypto.randomUUID(),
    iat: issued,
    exp: issued + 60,
    ...claims,
  }
  const jwt = await new SignJWT(payload)
    .setProtectedHeader({ alg, kid: keyPair.jwk.kid ?? '' })
    .sign(keyPair.privateKey)
  const answer = await fetch(`${fixture.issuer}/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: 'none',
      redirect_uri: 'http://127.0.0.1:4711/callback',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: jwt,
    }),
  })
  return { jwt, error: ((await answer.json()) as { error: string }).error }
}

describe('a client with keys of its own', () => {
  test('pushes its request, binds its tokens, and keeps its refresh token, which nobody else can use', async () => {
    const client = await keyed({ require_pushed_authorization_requests: true, dpop_bound_access_tokens: true })
    expect(client.secret).toBeNull()
    const { flow, kept, answer } = await push(client.id, authOf())
    const pushed = await oauth.processPushedAuthorizationResponse(flow.as, flow.client, answer)
    const query = new URLSearchParams({ client_id: client.id, request_uri: pushed.request_uri })
    const end = await fixture.walk(openBrowser(), `${flow.as.authorization_endpoint}?${query}`, { user })
    const parameters = oauth.validateAuthResponse(flow.as, flow.client, new URL(end.location ?? ''), kept.state)
    const DPoP = oauth.DPoP(flow.client, await oauth.generateKeyPair('ES256'))
    const redeemed = await oauth.authorizationCodeGrantRequest(
      flow.as,
      flow.client,
      authOf(),
      parameters,
      kept.redirectUri,
      kept.verifier,
      { ...INSECURE, DPoP },
    )
    const tokens = await oauth.processAuthorizationCodeResponse(flow.as, flow.client, redeemed)
    expect(tokens.token_type).toBe('dpop')
    const token = tokens.refresh_token ?? ''
    const refresh = async (auth: oauth.ClientAuth, options: object) =>
      oauth.refreshTokenGrantRequest(flow.as, flow.client, auth, token, { ...INSECURE, ...options })
    for (const _use of [1, 2]) {
      const next = await oauth.processRefreshTokenResponse(flow.as, flow.client, await refresh(authOf(), { DPoP }))
      expect(next.refresh_token ?? token).toBe(token)
    }
    expect((await refresh(authOf(), {})).status).toBe(400)
    expect((await refresh(authOf(await makeKeys()), { DPoP })).status).toBe(401)
  })

  test('that pushes its requests cannot begin without, and one that need not can', async () => {
    for (const [isRequired, error] of [
      [true, 'invalid_request'],
      [false, null],
    ] as const) {
      const client = await keyed({ require_pushed_authorization_requests: isRequired })
      const flow = await openFlow(fixture, client)
      const { url } = await flow.prepare()
      const end = await fixture.walk(openBrowser(), url, { user })
      expect(new URL(end.location ?? '').searchParams.get('error')).toBe(error)
    }
  })

  test('proves itself by one JWT of its own, for this service, for ten minutes at most, once', async () => {
    const { id } = await keyed()
    const now = Math.floor(Date.now() / 1000)
    expect((await postAssertion(id, {})).error).toBe('invalid_grant')
    expect((await postAssertion(id, { exp: now + 590 })).error).toBe('invalid_grant')
    for (const claims of [
      { exp: now + 700 },
      { exp: now - 60 },
      { aud: 'https://other.example' },
      { iss: user.userId },
      { jti: undefined },
    ])
      expect((await postAssertion(id, claims)).error).toBe('invalid_client')
    expect((await postAssertion(id, {}, { keyPair: await makeKeys() })).error).toBe('invalid_client')
    const jti = crypto.randomUUID()
    expect((await postAssertion(id, { jti })).error).toBe('invalid_grant')
    expect((await postAssertion(id, { jti })).error).toMatch(/invalid_client|invalid_request/)
  })

  test('has no secret: none is taken, and none is made', async () => {
    const { id } = await keyed()
    const { answer } = await push(id, oauth.ClientSecretPost('sbcs_guess'))
    expect(answer.status).toBe(401)
    expect((await fixture.app.admin('POST', `/api/v3/oauth/client/${id}/rotate-secret`, {})).status).toBe(409)
  })

  test('registers itself with keys, and not with an address of keys', async () => {
    const register = (body: object) =>
      fetch(`${fixture.issuer}/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          redirect_uris: ['http://127.0.0.1:4711/callback'],
          token_endpoint_auth_method: 'private_key_jwt',
          ...body,
        }),
      })
    const made = await register({ jwks: { keys: [keys.jwk] } })
    expect(made.status).toBe(201)
    const { client_id: id, ...rest } = await made.json()
    expect(rest).not.toHaveProperty('client_secret')
    expect((await postAssertion(id, {})).error).toBe('invalid_grant')
    expect((await register({ jwks_uri: KEYS_AT })).status).toBe(400)
    expect((await register({})).status).toBe(400)
    // Keys that prove nothing may be there for another provider.
    const bySecret = { token_endpoint_auth_method: 'client_secret_basic', jwks: { keys: [keys.jwk] } }
    expect((await register(bySecret)).status).toBe(201)
  })
})

describe('an address of keys', () => {
  test('is read by the guarded client, once a minute, however old its answer may become', async () => {
    const { id } = await keyed({ jwks: null, jwks_uri: KEYS_AT })
    for (const _time of [1, 2, 3]) expect((await postAssertion(id, {})).error).toBe('invalid_grant')
    expect(served.asked).toBe(1)
  })

  test('that is down refuses the client, and is not asked for each of its requests', async () => {
    served.status = 503
    const other = await keyed({ jwks: null, jwks_uri: 'https://app.example.com/nowhere' })
    for (const _time of [1, 2, 3]) expect((await postAssertion(other.id, {})).error).toMatch(/^invalid_client/)
    expect(served.asked).toBe(1)
  })
})

describe('the settings', () => {
  const create = (body: object) =>
    fixture.app.admin('POST', '/api/v3/oauth/client', {
      name: 'App',
      type: 'confidential',
      redirect_uris: ['http://127.0.0.1:4711/callback'],
      ...body,
    })
  const method = { token_endpoint_auth_method: 'private_key_jwt' }

  test('contradict nothing, and hold public keys that prove something', async () => {
    const { privateKey } = await makeKeys()
    const weak = { kty: 'EC', crv: 'P-384', x: 'AA', y: 'AA' }
    for (const [body, path] of [
      [method, 'jwks'],
      [{ ...method, jwks: { keys: [keys.jwk] }, jwks_uri: KEYS_AT }, 'jwks_uri'],
      [{ ...method, jwks_uri: 'http://app.example.com/keys' }, 'jwks_uri'],
      [{ jwks: { keys: [keys.jwk] } }, 'jwks'],
      [{ ...method, type: 'public', jwks: { keys: [keys.jwk] } }, 'token_endpoint_auth_method'],
      [{ ...method, jwks: { keys: [await exportJWK(privateKey)] } }, 'jwks.keys.0'],
      [{ ...method, jwks: { keys: [keys.jwk, weak] } }, 'jwks.keys.1'],
      [{ ...method, jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } }, 'jwks.keys.0'],
    ] as const) {
      const answer = await create(body)
      expect([answer.status, answer.body.errors?.[0]?.path]).toEqual([422, path])
    }
  })

  test.each([
    [1_024, 422],
    [2_048, 201],
  ])('of RSA have at least 2048 bits: %i is a %i', async (modulusLength, status) => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength })
    const answer = await create({ ...method, jwks: { keys: [publicKey.export({ format: 'jwk' })] } })
    expect(answer.status).toBe(status)
  })

  test('are shown, unchanged by a change of something else, and the same keys change nothing', async () => {
    const made = (await create({ ...method, jwks: { keys: [keys.jwk] } })).body.data
    const path = `/api/v3/oauth/client/${made.document_id}`
    expect((await fixture.app.admin('PATCH', path, { name: 'Other' })).body.data).toMatchObject({
      ...method,
      jwks: { keys: [keys.jwk] },
      jwks_uri: null,
      require_pushed_authorization_requests: false,
    })
    const same = await fixture.app.admin('PATCH', path, { jwks: { keys: [keys.jwk] } })
    expect(same.body.message).toBe('Client unchanged.')
    const moved = await fixture.app.admin('PATCH', path, { jwks: null, jwks_uri: KEYS_AT })
    expect(moved.body.data).toMatchObject({ jwks: null, jwks_uri: KEYS_AT })
  })
})
