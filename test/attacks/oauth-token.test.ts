import { generateKeyPair, SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { type Begun, openFlow, type Tokens } from '../harness/browser/oauth-flow.ts'
import { openBrowser, startOauthFixture } from '../harness/browser/oauth-service.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/** Attacks on tokens, codes and the authentication of clients (RFC 9700 sections 2 and 4). */

const OFFLINE = { prompt: 'consent' }

const fixture = await openForFile(startOauthFixture({ env: { OAUTH_REFRESH_REPEAT_SECONDS: '0' } }))
const user = await fixture.user()
const client = await fixture.client()
const other = await fixture.client({ name: 'Another app' })
const flow = await openFlow(fixture, client)
const browser = openBrowser()

const basic = (id: string, secret: string | null) => ({
  authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
})

async function post(path: string, form: Record<string, string> | string, headers: Record<string, string> = {}) {
  const answer = await fetch(`${fixture.issuer}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: typeof form === 'string' ? form : new URLSearchParams(form),
    redirect: 'manual',
  })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text, body: text.startsWith('{') ? JSON.parse(text) : {} }
}

const begin = () => flow.begin(browser, { user, parameters: OFFLINE })
const signIn = async (): Promise<Tokens> => (await flow.signIn(browser, { user, parameters: OFFLINE })).tokens
const codeOf = ({ callback }: Begun) => new URL(callback).searchParams.get('code') ?? ''
const redeemForm = (begun: Begun, change: Record<string, string> = {}) => ({
  grant_type: 'authorization_code',
  code: codeOf(begun),
  redirect_uri: begun.redirectUri,
  code_verifier: begun.verifier,
  ...change,
})
const without = (form: Record<string, string>, name: string) =>
  Object.fromEntries(Object.entries(form).filter(([key]) => key !== name))

describe('a code that leaked is refused', () => {
  test('at another client', async () => {
    const answer = await post('/token', redeemForm(await begin()), basic(other.id, other.secret))
    expect(answer.body.error).toBe('invalid_grant')
  })

  test('without the verifier', async () => {
    const answer = await post(
      '/token',
      without(redeemForm(await begin()), 'code_verifier'),
      basic(client.id, client.secret),
    )
    expect(answer.body.error).toBe('invalid_grant')
  })

  test('with the challenge in place of the verifier', async () => {
    const begun = await begin()
    const challenge = Buffer.from(
      await crypto.subtle.digest('SHA-256', new TextEncoder().encode(begun.verifier)),
    ).toString('base64url')
    const answer = await post(
      '/token',
      redeemForm(begun, { code_verifier: challenge }),
      basic(client.id, client.secret),
    )
    expect(answer.body.error).toBe('invalid_grant')
  })

  test('with the verifier of another authorization (code injection)', async () => {
    const [stolen, own] = [await begin(), await begin()]
    const form = redeemForm(stolen, { code_verifier: own.verifier })
    expect((await post('/token', form, basic(client.id, client.secret))).body.error).toBe('invalid_grant')
  })

  test('with another redirect URI', async () => {
    const form = redeemForm(await begin(), { redirect_uri: 'http://127.0.0.1:4711/other' })
    expect((await post('/token', form, basic(client.id, client.secret))).body.error).toBe('invalid_grant')
  })

  test('without the redirect URI', async () => {
    const form = without(redeemForm(await begin()), 'redirect_uri')
    expect((await post('/token', form, basic(client.id, client.secret))).status).toBe(400)
  })

  test('a second time, and the tokens of the first end', async () => {
    const begun = await begin()
    const tokens = await flow.redeem(begun)
    expect((await post('/token', redeemForm(begun), basic(client.id, client.secret))).body.error).toBe('invalid_grant')
    expect(await flow.introspect(tokens.access_token)).toEqual({ active: false })
  })

  test.each<[string, (begun: Begun) => [form: Record<string, string>, headers: Record<string, string>]]>([
    ['at another client', (begun) => [redeemForm(begun), basic(other.id, other.secret)]],
    ['without the verifier', (begun) => [without(redeemForm(begun), 'code_verifier'), basic(client.id, client.secret)]],
    [
      'with another redirect URI',
      (begun) => [redeemForm(begun, { redirect_uri: 'http://127.0.0.1:4711/other' }), basic(client.id, client.secret)],
    ],
    ['without the secret of its client', (begun) => [redeemForm(begun), basic(client.id, 'wrong')]],
  ])('a second time %s, and ends nothing', async (_how, change) => {
    const begun = await begin()
    const tokens = await flow.redeem(begun)
    const [form, headers] = change(begun)
    expect((await post('/token', form, headers)).status).toBeOneOf([400, 401])
    expect(await flow.introspect(tokens.access_token)).toMatchObject({ active: true })
  })

  test('as a refresh token', async () => {
    const form = { grant_type: 'refresh_token', refresh_token: codeOf(await begin()) }
    expect((await post('/token', form, basic(client.id, client.secret))).body.error).toBe('invalid_grant')
  })
})

describe('a refresh token that leaked is refused', () => {
  const refreshForm = (token: string) => ({ grant_type: 'refresh_token', refresh_token: token })

  test('at another client', async () => {
    const { refresh_token: token } = await signIn()
    expect((await post('/token', refreshForm(token), basic(other.id, other.secret))).body.error).toBe('invalid_grant')
  })

  test('without the secret of its client', async () => {
    const { refresh_token: token } = await signIn()
    const answer = await post('/token', { ...refreshForm(token), client_id: client.id })
    expect(answer.body.error).toBe('invalid_client')
  })

  test('after it was spent, and the family ends', async () => {
    const { refresh_token: token } = await signIn()
    const next = await flow.refresh(token)
    expect((await post('/token', refreshForm(token), basic(client.id, client.secret))).body.error).toBe('invalid_grant')
    await expect(flow.refresh(next.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
    expect(await flow.introspect(next.access_token)).toEqual({ active: false })
  })

  test('after it was spent, at another client, and ends nothing', async () => {
    const { refresh_token: token } = await signIn()
    const next = await flow.refresh(token)
    expect((await post('/token', refreshForm(token), basic(other.id, other.secret))).body.error).toBe('invalid_grant')
    expect(await flow.introspect(next.access_token)).toMatchObject({ active: true })
  })

  test('for more scopes than were granted', async () => {
    const { refresh_token: token } = await signIn()
    const form = { ...refreshForm(token), scope: 'openid webhook:write' }
    expect((await post('/token', form, basic(client.id, client.secret))).body.error).toBe('invalid_scope')
  })

  test('for another resource', async () => {
    const { refresh_token: token } = await signIn()
    const form = { ...refreshForm(token), resource: 'https://evil.example/api' }
    expect((await post('/token', form, basic(client.id, client.secret))).body.error).toBe('invalid_target')
  })

  test('after it was revoked', async () => {
    const { refresh_token: token, access_token: access } = await signIn()
    await flow.revoke(token)
    expect((await post('/token', refreshForm(token), basic(client.id, client.secret))).body.error).toBe('invalid_grant')
    expect(await flow.introspect(access)).toEqual({ active: false })
  })

  test('cut short or changed by one character', async () => {
    const { refresh_token: token } = await signIn()
    for (const text of [token.slice(0, -1), `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`])
      expect((await post('/token', refreshForm(text), basic(client.id, client.secret))).body.error).toBe(
        'invalid_grant',
      )
  })
})

describe('a token in the place of another is refused', () => {
  test('an ID token at userinfo', async () => {
    expect((await flow.userinfo((await signIn()).id_token ?? '')).status).toBe(401)
  })

  test('an ID token at introspection', async () => {
    expect(await flow.introspect((await signIn()).id_token ?? '')).toEqual({ active: false })
  })

  test('a refresh token at userinfo', async () => {
    expect((await flow.userinfo((await signIn()).refresh_token)).status).toBe(401)
  })

  test('an access token as a refresh token', async () => {
    await expect(flow.refresh((await signIn()).access_token)).rejects.toMatchObject({ error: 'invalid_grant' })
  })

  test('an access token on a route of the API, where only a session is taken', async () => {
    const { access_token: token } = await signIn()
    expect((await fixture.app.callAs(token)('GET', '/api/v3/auth/session')).status).toBe(401)
  })

  test('a session of the service at userinfo', async () => {
    expect((await flow.userinfo(fixture.app.adminToken)).status).toBe(401)
  })

  test('an access token without a signature, with the claims of a good one', async () => {
    const [, payload] = (await signIn()).access_token.split('.')
    const head = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')
    expect((await flow.userinfo(`${head}.${payload}.`)).status).toBe(401)
    expect(await flow.introspect(`${head}.${payload}.`)).toEqual({ active: false })
  })

  test('an access token under a key of the attacker, with the id of a good one', async () => {
    const [, payload = ''] = (await signIn()).access_token.split('.')
    const { privateKey } = await generateKeyPair('ES256')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const forged = await new SignJWT({ ...claims, scope: 'openid webhook:write' })
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'evil' })
      .sign(privateKey)
    expect((await flow.userinfo(forged)).status).toBe(401)
    expect(await flow.introspect(forged)).toEqual({ active: false })
  })

  test('an access token in the address', async () => {
    const { access_token: token } = await signIn()
    expect((await fetch(`${fixture.issuer}/userinfo?access_token=${token}`)).status).toBeGreaterThanOrEqual(400)
  })
})

describe('a client cannot authenticate', () => {
  const form = { grant_type: 'refresh_token', refresh_token: 'x' }

  test.each([
    ['with a wrong secret', () => basic(client.id, 'sbcs_wrong')],
    ['with the secret of another client', () => basic(client.id, other.secret)],
    ['with an empty secret', () => basic(client.id, '')],
    ['with its id as secret', () => basic(client.id, client.id)],
    ['with a Basic header that is not base64', () => ({ authorization: 'Basic ???' })],
    ['with a bearer token', () => ({ authorization: `Bearer ${client.secret}` })],
    ['without anything', () => ({})],
  ] as const)('%s', async (_name, headers) => {
    const answer = await post('/token', form, headers() as Record<string, string>)
    expect(['invalid_client', 'invalid_request']).toContain(answer.body.error)
  })

  test('with what the database keeps of its secret', async () => {
    const { rows } = await fixture.app.database.pool.query(
      'select secret_hash from oauth_client_secret where client = $1',
      [client.id],
    )
    for (const text of [rows[0].secret_hash.toString('hex'), rows[0].secret_hash.toString('base64url')])
      expect((await post('/token', form, basic(client.id, text))).body.error).toBe('invalid_client')
    const described = `${rows[0].secret_hash.toString('base64url')}.`
    expect((await post('/token', form, basic(client.id, described))).body.error).toBe('invalid_client')
  })

  test('with its secret in the address', async () => {
    const path = `/token?client_id=${client.id}&client_secret=${client.secret}`
    expect(['invalid_client', 'invalid_request']).toContain((await post(path, form)).body.error)
  })

  test('by two mechanisms at once', async () => {
    const both = { ...form, client_id: client.id, client_secret: client.secret ?? '' }
    expect((await post('/token', both, basic(client.id, client.secret))).body.error).toBe('invalid_request')
  })

  test('as one client in the header and another in the form', async () => {
    const answer = await post('/token', { ...form, client_id: other.id }, basic(client.id, client.secret))
    expect(answer.body.error).toBe('invalid_request')
  })

  test('with a secret that a rotation ended', async () => {
    const client = await fixture.client()
    await fixture.app.admin('POST', `/api/v3/oauth/client/${client.id}/rotate-secret`, { overlap_seconds: 0 })
    expect((await post('/token', form, basic(client.id, client.secret))).body.error).toBe('invalid_client')
  })

  test('after it was deleted, and its tokens end', async () => {
    const client = await fixture.client()
    const own = await openFlow(fixture, client)
    const { tokens } = await own.signIn(openBrowser(), { user, parameters: OFFLINE })
    await fixture.app.admin('DELETE', `/api/v3/oauth/client/${client.id}`)
    expect((await post('/token', form, basic(client.id, client.secret))).body.error).toBe('invalid_client')
    expect((await flow.userinfo(tokens.access_token)).status).toBe(401)
  })
})

describe('the token endpoint refuses', () => {
  test.each([
    ['password', { grant_type: 'password', username: 'a', password: 'b' }],
    ['client_credentials', { grant_type: 'client_credentials' }],
    ['implicit', { grant_type: 'implicit' }],
    ['an assertion', { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: 'x' }],
  ])('the grant type %s', async (_name, form) => {
    const answer = await post('/token', form as Record<string, string>, basic(client.id, client.secret))
    expect(answer.status).toBe(400)
    expect(['unsupported_grant_type', 'invalid_request']).toContain(answer.body.error)
  })

  test.each(['grant_type', 'code', 'redirect_uri', 'code_verifier'])('two values of %s', async (name) => {
    const begun = await begin()
    const form = `${new URLSearchParams(redeemForm(begun))}&${name}=x`
    const answer = await post('/token', form, basic(client.id, client.secret))
    expect(answer.status).toBe(400)
    expect(answer.body).not.toHaveProperty('access_token')
  })

  test('a body of JSON', async () => {
    const headers = { ...basic(client.id, client.secret), 'content-type': 'application/json' }
    expect((await post('/token', JSON.stringify(redeemForm(await begin())), headers)).status).toBe(400)
  })

  test('a body of a mebibyte', async () => {
    const answer = await post(
      '/token',
      { grant_type: 'refresh_token', refresh_token: 'x'.repeat(1_048_576) },
      basic(client.id, client.secret),
    )
    expect(answer.status).toBeGreaterThanOrEqual(400)
  })

  test('to be cached', async () => {
    const answer = await post('/token', redeemForm(await begin()), basic(client.id, client.secret))
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  test('to answer the scripts of another origin', async () => {
    const answer = await post('/token', redeemForm(await begin()), {
      ...basic(client.id, client.secret),
      origin: 'https://evil.example',
    })
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  })
})
