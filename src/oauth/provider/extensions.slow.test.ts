import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { describe, expect, test } from 'vitest'
import { openFlow } from '../../../test/harness/browser/oauth-flow.ts'
import { openBrowser, readForm, startOauthFixture } from '../../../test/harness/browser/oauth-service.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { DEVICE_GRANT } from '../client/client.store.ts'
import { rotateSigningKeys } from '../signing-key/signing-key.ts'

const INSECURE = { [oauth.allowInsecureRequests]: true }

const fixture = await openForFile(startOauthFixture({ env: { OAUTH_REGISTRATION: 'true' } }))
const user = await fixture.user()

describe('the device flow', () => {
  const start = async () => {
    const client = await fixture.client({
      type: 'public',
      application_type: 'native',
      redirect_uris: [],
      grant_types: [DEVICE_GRANT, 'refresh_token'],
      name: 'Command line',
    })
    const config = await openid.discovery(new URL(fixture.issuer), client.id, undefined, openid.None(), {
      execute: [openid.allowInsecureRequests],
    })
    return { config, begun: await openid.initiateDeviceAuthorization(config, { scope: 'openid email offline_access' }) }
  }

  /** Enters the code in a browser, up to the page that asks whether it is the right device. */
  const enterCode = async (begun: openid.DeviceAuthorizationResponse, browser = openBrowser()) => {
    const page = await browser.visit(begun.verification_uri)
    const form = { ...readForm(page.body, begun.verification_uri), user_code: begun.user_code }
    const confirm = await browser.visit(begun.verification_uri, { method: 'POST', form })
    return { browser, confirm }
  }

  test('openid-client gets tokens once the user has confirmed the code and allowed the client', async () => {
    const { config, begun } = await start()
    const { browser, confirm } = await enterCode(begun)
    expect(confirm.body).toContain(begun.user_code)
    expect(confirm.body).toContain('Is this your device?')
    const form = readForm(confirm.body, begun.verification_uri)
    const next = await browser.visit(begun.verification_uri, { method: 'POST', form })
    const end = await fixture.walk(browser, new URL(next.headers.location ?? '', fixture.baseUrl).href, { user })
    expect(end.body).toContain('Device connected')
    const tokens = await openid.pollDeviceAuthorizationGrant(config, { ...begun, interval: 1 })
    expect(decodeJwt(tokens.access_token)).toMatchObject({ sub: user.userId })
    const again = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '')
    expect(again.access_token).not.toBe(tokens.access_token)
  })

  test('begins again with its code for a user who takes another account', async () => {
    const { begun } = await start()
    const { browser, confirm } = await enterCode(begun)
    const form = readForm(confirm.body, begun.verification_uri)
    const next = await browser.visit(begun.verification_uri, { method: 'POST', form })
    const at = new URL(next.headers.location ?? '', fixture.baseUrl).href
    const page = await fixture.walk(browser, at, { user, decision: 'stop' })
    const switched = await browser.visit(`${fixture.baseUrl}/auth/oauth/switch`, {
      method: 'POST',
      form: readForm(page.body, '/auth/oauth/switch'),
    })
    const again = new URL(switched.headers.location ?? '', fixture.baseUrl).href
    expect((await fixture.walk(browser, again, { user })).body).toContain('Enter the code that your device shows')
  })

  test('that the user declines gives access_denied', async () => {
    const { config, begun } = await start()
    const { browser, confirm } = await enterCode(begun)
    const form = { ...readForm(confirm.body, begun.verification_uri), abort: 'yes' }
    await browser.visit(begun.verification_uri, { method: 'POST', form })
    await expect(openid.pollDeviceAuthorizationGrant(config, { ...begun, interval: 1 })).rejects.toMatchObject({
      error: 'access_denied',
    })
  })

  test('says nothing about an unknown code but that it is not known', async () => {
    const { begun } = await start()
    expect((await openBrowser().visit(begun.verification_uri)).body).not.toContain('role="alert"')
    const { confirm } = await enterCode({ ...begun, user_code: 'BBBB-BBBB' })
    expect(confirm.body).toContain('This code is not known')
  })

  test('keeps neither code in readable form', async () => {
    const { begun } = await start()
    const { rows } = await fixture.app.database.pool.query("select * from oauth_state where model = 'DeviceCode'")
    const kept = JSON.stringify(rows)
    expect(kept).not.toContain(begun.device_code)
    expect(kept).not.toContain(begun.user_code.replace('-', ''))
  })
})

describe('DPoP', () => {
  test('binds the tokens of a public client to its key', async () => {
    const client = await fixture.client({ type: 'public', dpop_bound_access_tokens: true })
    const flow = await openFlow(fixture, client)
    const keys = await oauth.generateKeyPair('ES256')
    const DPoP = oauth.DPoP(flow.client, keys)
    const begun = await flow.begin(openBrowser(), { user, parameters: { prompt: 'consent' } })
    await expect(flow.redeem(begun)).rejects.toMatchObject({ error: 'invalid_grant' })
    const next = await flow.begin(openBrowser(), { user, parameters: { prompt: 'consent' } })
    const parameters = oauth.validateAuthResponse(flow.as, flow.client, new URL(next.callback), next.state)
    const answer = await oauth.authorizationCodeGrantRequest(
      flow.as,
      flow.client,
      oauth.None(),
      parameters,
      next.redirectUri,
      next.verifier,
      { ...INSECURE, DPoP },
    )
    const tokens = await oauth.processAuthorizationCodeResponse(flow.as, flow.client, answer)
    expect(tokens.token_type).toBe('dpop')
    expect(decodeJwt(tokens.access_token).cnf).toHaveProperty('jkt')
    const info = await oauth.userInfoRequest(flow.as, flow.client, tokens.access_token, { ...INSECURE, DPoP })
    expect(info.status).toBe(200)
    expect((await flow.userinfo(tokens.access_token)).status).toBe(401)
    await expect(flow.refresh(tokens.refresh_token ?? '')).rejects.toMatchObject({ error: 'invalid_grant' })
  })
})

describe('registration by the client itself', () => {
  const register = (body: object) =>
    fetch(`${fixture.issuer}/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: ['https://app.example.com/callback'], ...body }),
    })

  test('makes a client whose secret works and is kept as a hash', async () => {
    const answer = await register({ client_name: 'Newcomer' })
    expect(answer.status).toBe(201)
    const made = await answer.json()
    const row = await fixture.app.admin('GET', `/api/v3/oauth/client/${made.client_id}`)
    expect(row.body.data).toMatchObject({ name: 'Newcomer', registration: 'dynamic', first_party: false })
    const flow = await openFlow(fixture, {
      id: made.client_id,
      secret: made.client_secret,
      redirectUri: 'https://app.example.com/callback',
    })
    const begun = await flow.begin(openBrowser(), { user, scope: 'openid' })
    expect((await flow.redeem(begun)).access_token).toBeTypeOf('string')
  })

  test('without scope and algorithm gets the four OpenID scopes and RS256, and the answer says so', async () => {
    const made = await (await register({})).json()
    const scope = 'openid profile email offline_access'
    expect(made).toMatchObject({ scope, id_token_signed_response_alg: 'RS256' })
    const row = await fixture.app.admin('GET', `/api/v3/oauth/client/${made.client_id}`)
    expect(row.body.data).toMatchObject({ scopes: scope.split(' '), id_token_signed_response_alg: 'RS256' })
    const redirectUri = 'https://app.example.com/callback'
    const flow = await openFlow(fixture, { id: made.client_id, secret: made.client_secret, redirectUri })
    const { tokens } = await flow.signIn(openBrowser(), { user, scope, parameters: { prompt: 'consent' } })
    expect(decodeProtectedHeader(tokens.id_token ?? '').alg).toBe('RS256')
    expect(await (await flow.userinfo(tokens.access_token)).json()).toMatchObject({ email: user.email })
  })

  test('keeps the scope and the algorithm that it names, and no others', async () => {
    const named = { scope: 'openid', id_token_signed_response_alg: 'ES256' }
    const made = await (await register(named)).json()
    expect(made).toMatchObject(named)
    const redirectUri = 'https://app.example.com/callback'
    const flow = await openFlow(fixture, { id: made.client_id, secret: made.client_secret, redirectUri })
    const { callback } = await flow.begin(openBrowser(), { user, scope: 'openid profile' })
    expect(new URL(callback).searchParams.get('error')).toBe('invalid_scope')
    expect((await register({ scope: '' })).status).toBe(400)
    expect((await register({ scope: 'openid nothing' })).status).toBe(400)
    expect((await register({ id_token_signed_response_alg: 'none' })).status).toBe(400)
  })

  test('is told the settings that hold, and none that has no effect', async () => {
    const more = {
      ...{ default_max_age: 60, default_acr_values: ['aal2'], require_auth_time: true },
      ...{ logo_uri: 'https://app.example.com/logo.png', client_uri: 'https://app.example.com', jwks: { keys: [] } },
      ...{ contacts: ['a@example.com'], userinfo_signed_response_alg: 'HS256' },
    }
    const made = await (await register({ client_name: 'Told', scope: 'openid', ...more })).json()
    const { client_id, client_id_issued_at, client_secret, client_secret_expires_at, ...told } = made
    expect(told).toEqual({
      ...{ client_name: 'Told', application_type: 'web', subject_type: 'public', scope: 'openid' },
      ...{ redirect_uris: ['https://app.example.com/callback'], post_logout_redirect_uris: [] },
      ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
      ...{ id_token_signed_response_alg: 'RS256', dpop_bound_access_tokens: false },
      ...{ require_pushed_authorization_requests: false, token_endpoint_auth_method: 'client_secret_basic' },
      backchannel_logout_session_required: false,
    })
    expect([typeof client_id_issued_at, typeof client_secret, client_secret_expires_at]).toEqual([
      'number',
      'string',
      0,
    ])
    expect((await fixture.app.admin('GET', `/api/v3/oauth/client/${client_id}/secret`)).body.data).toHaveLength(1)
  })

  test('has no secret as a public client, whatever algorithm it names', async () => {
    const named = { token_endpoint_auth_method: 'none', userinfo_signed_response_alg: 'HS256' }
    const made = await (await register(named)).json()
    expect(made).not.toHaveProperty('client_secret')
    const kept = await fixture.app.admin('GET', `/api/v3/oauth/client/${made.client_id}/secret`)
    expect(kept.body.data).toEqual([])
  })

  test.each([
    ['that turns the text behind it round', 'Bank \u202e'],
    ['that isolates', '\u2067Bank'],
    ['without anything visible', '\u00ad\u00ad'],
    ['of zero-width spaces', '\u200b\u200b'],
  ])('has no name %s', async (_, client_name) => {
    const answer = await register({ client_name })
    expect([answer.status, (await answer.json()).error]).toEqual([400, 'invalid_client_metadata'])
  })

  test('cannot name itself first-party, nor take a redirect URI that an administrator could not', async () => {
    expect((await register({ first_party: true })).status).toBe(400)
    expect((await register({ redirect_uris: ['http://app.example.com/callback'] })).status).toBe(400)
    expect((await register({ redirect_uris: ['https://app.example.com/#x'] })).status).toBe(400)
  })

  test('cannot choose its id, which could be that of a user', async () => {
    const made = await (await register({ client_id: user.userId })).json()
    expect(made.client_id).not.toBe(user.userId)
  })

  test('has the limits of a client of an administrator: one line of 100 characters as its name, 50 URIs', async () => {
    const uris = (count: number) => Array.from({ length: count }, (_, index) => `https://app.example.com/${index}`)
    expect((await register({ client_name: 'x'.repeat(100), redirect_uris: uris(50) })).status).toBe(201)
    expect((await register({ client_name: 'x'.repeat(101) })).status).toBe(400)
    expect((await register({ client_name: 'Your bank\nSign in again' })).status).toBe(400)
    expect((await register({ client_name: ' ' })).status).toBe(400)
    expect((await register({ redirect_uris: uris(51) })).status).toBe(400)
    expect((await register({ post_logout_redirect_uris: uris(51) })).status).toBe(400)
    expect((await register({ backchannel_logout_uri: `https://app.example.com/${'x'.repeat(2048)}` })).status).toBe(400)
  })

  test('counts against the strict limit of the address, however its path is written', async () => {
    await using strict = await startOauthFixture({
      env: { OAUTH_REGISTRATION: 'true', RATE_LIMIT_STRICT_PER_MINUTE: '3' },
    })
    const post = (path: string) => fetch(`${strict.issuer}/${path}`, { method: 'POST', body: '{}' })
    const statuses = []
    for (const path of ['register', 'Register', 'register/', 'register?x=1']) statuses.push((await post(path)).status)
    expect(statuses.slice(0, 3)).not.toContain(429)
    expect(statuses[3]).toBe(429)
    expect((await fetch(`${strict.issuer}/jwks`)).status).toBe(200)
  })

  test('does not exist unless it is configured', async () => {
    await using closed = await startOauthFixture()
    const answer = await fetch(`${closed.issuer}/register`, { method: 'POST', body: '{}' })
    expect(answer.status).toBe(404)
  })
})

describe('sign-out', () => {
  /** A user who is signed in at a client, which receives logout tokens. */
  async function signInListening(stack: AsyncDisposableStack) {
    const received: string[] = []
    const server = createServer(async (request, response) => {
      received.push(Buffer.concat(await request.toArray()).toString())
      response.writeHead(200).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    stack.defer(() => void server.close())
    const { port } = server.address() as AddressInfo
    const listening = stack.use(
      await startOauthFixture({
        env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${port}` },
        lookup: async () => ['127.0.0.1'],
      }),
    )
    const client = await listening.client({ backchannel_logout_uri: `http://127.0.0.1:${port}/out` })
    const flow = await openFlow(listening, client)
    const [browser, who] = [openBrowser(), await listening.user()]
    const { tokens } = await flow.signIn(browser, { user: who })
    const expectToken = async () => {
      const [body] = await waitFor('the logout token', () => received.length > 0 && received)
      const logoutToken = new URLSearchParams(body).get('logout_token') ?? ''
      const keys = createRemoteJWKSet(new URL(`${listening.issuer}/jwks`))
      const { payload } = await jwtVerify(logoutToken, keys, { issuer: listening.issuer, audience: client.id })
      expect(payload).toMatchObject({ sub: who.userId, sid: decodeJwt(tokens.id_token ?? '').sid })
    }
    return { listening, flow, browser, tokens, expectToken }
  }

  test('by a client is told to the other clients of the browser, with a signed logout token', async () => {
    await using stack = new AsyncDisposableStack()
    const { listening, flow, browser, tokens, expectToken } = await signInListening(stack)
    const page = await browser.visit(`${listening.issuer}/end-session?id_token_hint=${tokens.id_token}`)
    const action = `${listening.issuer}/end-session/confirm`
    await flow.submit(browser, { page, action, fields: { logout: 'yes' } })
    await expectToken()
  })

  test('at a page of the service is told to the clients of the browser', async () => {
    await using stack = new AsyncDisposableStack()
    const { listening, flow, browser, expectToken } = await signInListening(stack)
    const page = await browser.visit(`${listening.baseUrl}/auth/sign-out`)
    await flow.submit(browser, { page, action: '/auth/sign-out' })
    await expectToken()
  })
})

describe('a rotation of the signing keys', () => {
  test('fails no request that is under way', async () => {
    const client = await fixture.client()
    const flow = await openFlow(fixture, client)
    const { tokens } = await flow.signIn(openBrowser(), { user, parameters: { prompt: 'consent' } })
    const keys = createRemoteJWKSet(new URL(`${fixture.issuer}/jwks`), { cooldownDuration: 0 })
    const refreshMany = async () => {
      let token = tokens.refresh_token
      for (let count = 0; count < 20; count += 1) {
        const next = await flow.refresh(token)
        await jwtVerify(next.access_token, keys, { issuer: fixture.issuer })
        token = next.refresh_token
      }
    }
    const { db } = fixture.app.database
    const rotate = () => rotateSigningKeys(fixture.app.app.keyring, db, { isUrgent: false, now: new Date() })
    await Promise.all([refreshMany(), rotate()])
  })
})
