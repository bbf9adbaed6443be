import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import { describe, expect, test } from 'vitest'
import { createTestApp } from '../harness/app/app.ts'
import { type Begun, openFlow, type Tokens } from '../harness/browser/oauth-flow.ts'
import { openBrowser, startOauthFixture } from '../harness/browser/oauth-service.ts'
import type { Visitor } from '../harness/browser/visitor.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/**
 * Requirements of the plans "basic", "config" and "form post basic" of the OpenID Foundation's suite, as far as no
 * other test covers it. The comment above a test names the modules that it stands for.
 */
const fixture = await openForFile(startOauthFixture())
const user = await fixture.user()
const client = await fixture.client({ id_token_signed_response_alg: 'RS256' })
const flow = await openFlow(fixture, client)
/** A browser in which the user is signed in, and has allowed the client. */
const known = openBrowser()
const hint = (await flow.signIn(known, { user })).tokens.id_token ?? ''

const claimsOf = async (parameters: Record<string, string>, browser = known, options = {}) => {
  const { tokens } = await flow.signIn(browser, { user, parameters, ...options })
  return decodeJwt(tokens.id_token ?? '')
}

const readUserinfo = async (tokens: { access_token: string }) =>
  (await (await flow.userinfo(tokens.access_token)).json()) as Record<string, unknown>

/** The parameters of the answer to a request that no page interrupts. */
async function readAnswer(parameters: Record<string, string>, browser = known): Promise<URLSearchParams> {
  const { callback } = await flow.begin(browser, { parameters })
  return new URL(callback).searchParams
}

/** Sets the clock of sign-ins ahead of the machine's, which the provider reads, and of every sign-in before. */
function setClockAhead(): void {
  const { clock } = fixture.app
  clock.set(Math.max(clock.now(), Date.now()) + 5_000)
}

/** Moves the sign-ins of the user an hour back. */
async function ageSignIns(): Promise<void> {
  const { pool } = fixture.app.database
  const text = `update session set auth_time = auth_time - interval '1 hour' where "user" = $1 and client_id is null`
  await pool.query(text, [user.userId])
  await pool.query("delete from oauth_state where model = 'Session'")
}

/** Redeems a code with the secret of the client in the form. */
const redeem = ({ callback, verifier, redirectUri }: Begun) =>
  fetch(`${fixture.issuer}/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: new URL(callback).searchParams.get('code') ?? '',
      redirect_uri: redirectUri,
      code_verifier: verifier,
      client_id: client.id,
      client_secret: client.secret ?? '',
    }),
  })

/** The claims of an ID token for which the user has to prove again who it is. */
async function signInAgain(browser: Visitor, parameters: Record<string, string>) {
  const { url, ...kept } = await flow.prepare({ parameters })
  const page = await fixture.walk(browser, url, { user })
  expect(page.body).toContain('Sign in again')
  const [, href = ''] = /<a class="button" href="([^"]+)">Sign in again/.exec(page.body) ?? []
  setClockAhead()
  const end = await fixture.walk(browser, new URL(href.replaceAll('&amp;', '&'), page.url).href, { user })
  return decodeJwt((await flow.redeem({ ...kept, callback: end.location ?? '' })).id_token ?? '')
}

describe('the metadata', () => {
  // oidcc-discovery-endpoint-verification
  test('hold every member that discovery requires, under the issuer that was asked', async () => {
    const answer = await fetch(`${fixture.issuer}/.well-known/openid-configuration`)
    const metadata = (await answer.json()) as Record<string, unknown>
    expect(answer.headers.get('content-type')).toContain('application/json')
    expect(metadata).toMatchObject({
      issuer: fixture.issuer,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      claims_parameter_supported: true,
      acr_values_supported: ['aal1', 'aal2'],
      request_uri_parameter_supported: false,
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: true,
    })
    expect(metadata.scopes_supported).toContain('openid')
    expect(metadata.claims_supported).toEqual(expect.arrayContaining(['sub', 'iss', 'auth_time', 'name', 'email']))
    for (const name of ['authorization', 'token', 'userinfo', 'end_session', 'introspection', 'revocation'])
      expect(metadata[`${name}_endpoint`]).toMatch(new RegExp(`^${fixture.issuer}/`))
  })

  // oidcc-discovery-endpoint-verification, oidcc-server (keys)
  test('lead to keys without their private parts, each with an id of its own', async () => {
    const { keys } = (await (await fetch(`${fixture.issuer}/jwks`)).json()) as { keys: Record<string, string>[] }
    expect(keys.map(({ alg }) => alg).sort()).toEqual(['ES256', 'RS256'])
    expect(new Set(keys.map(({ kid }) => kid)).size).toBe(keys.length)
    for (const key of keys)
      for (const name of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k']) expect(key).not.toHaveProperty(name)
  })
})

describe('an ID token', () => {
  // oidcc-server
  test('is signed with the algorithm that the client registered, and names issuer, client, user and sign-in', async () => {
    const nonce = 'n-0S6_WzA2Mj'
    const answer = await redeem(await flow.begin(known, { parameters: { nonce } }))
    const tokens = (await answer.json()) as Tokens
    const keys = createRemoteJWKSet(new URL(`${fixture.issuer}/jwks`))
    const { payload, protectedHeader } = await jwtVerify(tokens.id_token ?? '', keys, {
      issuer: fixture.issuer,
      audience: client.id,
    })
    expect(protectedHeader.alg).toBe('RS256')
    expect(payload).toMatchObject({ sub: user.userId, nonce, aud: client.id })
    expect(payload.exp).toBeGreaterThan(payload.iat ?? 0)
  })

  // oidcc-ensure-request-without-nonce-succeeds-for-code-flow
  test('of a request without a nonce has none', async () => {
    expect(await claimsOf({})).not.toHaveProperty('nonce')
  })

  // oidcc-refresh-token
  test('of a refresh is of the same sign-in, for the same user and client', async () => {
    const { tokens } = await flow.signIn(known, { parameters: { max_age: '10000' } })
    const [first, next] = [tokens, await flow.refresh(tokens.refresh_token)].map((item) =>
      decodeJwt(item.id_token ?? ''),
    )
    expect(next).toMatchObject({ iss: first?.iss, sub: first?.sub, aud: first?.aud, auth_time: first?.auth_time })
  })
})

describe('userinfo', () => {
  // oidcc-userinfo-get, oidcc-userinfo-post-header, oidcc-userinfo-post-body
  test('answers GET, POST with a header and POST with a form, each with the subject of the ID token', async () => {
    const { tokens } = await flow.signIn(known)
    const { access_token: token } = tokens
    const url = `${fixture.issuer}/userinfo`
    const authorization = `Bearer ${token}`
    const answers = await Promise.all([
      fetch(url, { headers: { authorization } }),
      fetch(url, { method: 'POST', headers: { authorization } }),
      fetch(url, { method: 'POST', body: new URLSearchParams({ access_token: token }) }),
    ])
    for (const answer of answers) {
      expect(answer.status).toBe(200)
      expect(await answer.json()).toMatchObject({ sub: decodeJwt(tokens.id_token ?? '').sub })
    }
  })

  // oidcc-scope-profile, oidcc-scope-email, oidcc-ensure-other-scope-order-succeeds
  test('holds the claims of the granted scopes and no others, in whichever order they were asked for', async () => {
    const read = async (scope: string) => readUserinfo((await flow.signIn(known, { scope })).tokens)
    expect(Object.keys(await read('openid')).sort()).toEqual(['sub'])
    expect(await read('openid profile')).toMatchObject({ name: expect.any(String), updated_at: expect.any(Number) })
    expect(await read('openid profile')).not.toHaveProperty('email')
    expect(await read('email openid')).toMatchObject({ email: user.email, email_verified: expect.any(Boolean) })
  })

  // oidcc-scope-address, oidcc-scope-phone, oidcc-scope-all
  test('is answered also when the request asks for scopes that the provider does not have', async () => {
    const { tokens } = await flow.signIn(known, { scope: 'openid profile email address phone' })
    expect(await readUserinfo(tokens)).toMatchObject({ sub: user.userId, email: user.email })
  })
})

describe('an authorization request', () => {
  // oidcc-response-type-missing
  test('without a response type is refused at the redirect URI', async () => {
    const { url } = await flow.prepare()
    const asked = new URL(url)
    asked.searchParams.delete('response_type')
    const { headers } = await known.visit(asked.href)
    const answer = new URL(headers.location ?? '').searchParams
    expect(answer.get('error')).toBe('invalid_request')
    expect(answer.get('state')).not.toBeNull()
  })

  // oidcc-display-page, oidcc-display-popup, oidcc-login-hint, oidcc-ui-locales, oidcc-claims-locales,
  // oidcc-ensure-request-with-acr-values-succeeds, oidcc-ensure-request-with-unknown-parameter-succeeds
  test.each([
    ['display', 'page'],
    ['display', 'popup'],
    ['login_hint', 'somebody@example.com'],
    ['ui_locales', 'se fr'],
    ['claims_locales', 'se'],
    ['acr_values', '1 2'],
    ['extra', 'foobar'],
  ])('with %s=%s is answered with a code', async (name, value) => {
    expect((await readAnswer({ [name]: value })).get('code')).not.toBeNull()
  })

  // oidcc-prompt-login
  test('with prompt=login gives a later time of the sign-in', async () => {
    const browser = openBrowser()
    setClockAhead()
    const first = await claimsOf({ max_age: '10000' }, browser)
    await ageSignIns()
    const next = await signInAgain(browser, { prompt: 'login', max_age: '10000' })
    expect(Number(next.auth_time)).toBeGreaterThan(Number(first.auth_time))
    expect(next.sub).toBe(first.sub)
  })

  // oidcc-prompt-none-logged-in, oidcc-id-token-hint
  test('with prompt=none, and with the ID token of the user as a hint, is of the same sign-in', async () => {
    const first = await claimsOf({ max_age: '10000' })
    const silent = await claimsOf({ prompt: 'none', max_age: '10000', id_token_hint: hint })
    expect(silent).toMatchObject({ sub: first.sub, auth_time: first.auth_time })
  })

  // oidcc-id-token-hint
  test('with prompt=none and the ID token of somebody else as a hint is refused as login_required', async () => {
    const other = await flow.signIn(openBrowser(), { user: await fixture.user() })
    const answer = await readAnswer({ prompt: 'none', id_token_hint: other.tokens.id_token ?? '' })
    expect(answer.get('error')).toBe('login_required')
  })

  // oidcc-max-age-1, oidcc-max-age-10000
  test('with max_age asks again only when the sign-in is older, and tells its time', async () => {
    const browser = openBrowser()
    setClockAhead()
    const first = await claimsOf({ max_age: '10000' }, browser)
    expect(await claimsOf({ max_age: '10000' }, browser)).toMatchObject({ auth_time: first.auth_time })
    await ageSignIns()
    const stopped = await flow.begin(browser, { parameters: { max_age: '10', prompt: 'none' } })
    expect(new URL(stopped.callback).searchParams.get('error')).toBe('login_required')
    const next = await signInAgain(browser, { max_age: '10' })
    expect(Number(next.auth_time)).toBeGreaterThanOrEqual(Number(first.auth_time))
  })

  // oidcc-ensure-post-request-succeeds
  test('by POST is answered like one by GET', async () => {
    const { url, ...kept } = await flow.prepare()
    const { origin, pathname, searchParams } = new URL(url)
    const posted = await known.visit(`${origin}${pathname}`, { method: 'POST', form: Object.fromEntries(searchParams) })
    expect(posted.status).toBe(303)
    const end = await fixture.walk(known, posted.headers.location ?? '')
    expect(await flow.redeem({ ...kept, callback: end.location ?? '' })).toHaveProperty('id_token')
  })

  // oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported,
  // oidcc-ensure-request-object-with-redirect-uri
  test.each([
    ['request', 'request_not_supported'],
    ['request_uri', 'request_uri_not_supported'],
  ])('with a request object in %s is refused as %s, and nothing of the object counts', async (name, error) => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const object = `${part({ alg: 'none' })}.${part({ redirect_uri: 'https://evil.example/', scope: 'openid' })}.`
    const { url, redirectUri } = await flow.prepare()
    const asked = new URL(url)
    asked.searchParams.set(name, name === 'request' ? object : 'https://client.example/request.jwt')
    const { headers } = await known.visit(asked.href)
    expect(headers.location).toMatch(new RegExp(`^${redirectUri}\\?`))
    expect(new URL(headers.location ?? '').searchParams.get('error')).toBe(error)
  })

  // oidcc-server in the plan "form post basic"
  test('with response_mode=form_post is answered by a form to the client, with a button where scripts are off', async () => {
    const { url, state, redirectUri } = await flow.prepare({ parameters: { response_mode: 'form_post' } })
    const page = await known.visit(url)
    expect(page.status).toBe(200)
    expect(page.headers['content-type']).toContain('text/html')
    expect(page.body).toContain(`action="${redirectUri}"`)
    expect(page.body).toMatch(/<input type="hidden" name="code" value="[\w-]{20,}"\/>/)
    expect(page.body).toContain(`name="state" value="${state}"`)
    expect(page.body).toContain(`name="iss" value="${fixture.issuer}"`)
    expect(page.body).toContain('<button autofocus type="submit">')
    expect(page.headers['cache-control']).toContain('no-store')
  })
})

describe('a code', () => {
  // oidcc-codereuse, oidcc-codereuse-30seconds
  test('that is used again ends the access token of the first use', async () => {
    const { begun, tokens } = await flow.signIn(known)
    await expect(flow.redeem(begun)).rejects.toMatchObject({ error: 'invalid_grant' })
    expect((await flow.userinfo(tokens.access_token)).status).toBe(401)
  })

  // oidcc-server-client-secret-post
  test('is redeemed by a client that sends its secret in the form', async () => {
    const answer = await redeem(await flow.begin(known))
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })
})

describe('in certification, where the basic plan sends no PKCE', () => {
  // Every module of the plan but oidcc-ensure-request-with-valid-pkce-succeeds
  test.each([
    ['confidential', 303, '/auth/oauth?id='],
    ['public', 303, 'error=invalid_request'],
  ])('a %s client that leaves it out gets %i to %s', async (type, status, part) => {
    await using app = await createTestApp({ env: { APP_ENV: 'certification', BASE_URL: 'https://service.test' } })
    const redirectUri = 'https://client.example/callback'
    const made = await app.admin('POST', '/api/v3/oauth/client', {
      name: 'Suite',
      type,
      redirect_uris: [redirectUri],
      scopes: ['openid'],
    })
    const query = new URLSearchParams({
      client_id: made.body.data.client_id,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'openid',
      state: 's',
    })
    const answer = await app.anonymous('GET', `/api/v3/oauth/authorize?${query}`)
    expect(answer.status).toBe(status)
    expect(String(answer.headers.location)).toContain(part)
  })
})
