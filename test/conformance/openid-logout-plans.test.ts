import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Flow, openFlow } from '../harness/browser/oauth-flow.ts'
import { type OauthFixture, type OauthUser, openBrowser, startOauthFixture } from '../harness/browser/oauth-service.ts'
import type { Visited, Visitor } from '../harness/browser/visitor.ts'

/**
 * Requirements of the plans "RP-initiated logout" and "back-channel logout" of the OpenID Foundation's suite. The
 * comment above a test names the modules that it stands for.
 */

const RETURN_TO = 'http://127.0.0.1:4711/bye'

let fixture: OauthFixture
let user: OauthUser
let flow: Flow
/** The bodies of the logout tokens that the client received, with their content types. */
const received: { body: string; type: string | undefined }[] = []
const receiver = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString()
  received.push({ body, type: request.headers['content-type'] })
  response.writeHead(200).end()
})

beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const { port } = receiver.address() as AddressInfo
  fixture = await startOauthFixture({
    env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${port}` },
    lookup: async () => ['127.0.0.1'],
  })
  user = await fixture.user()
  const client = await fixture.client({
    post_logout_redirect_uris: [RETURN_TO],
    backchannel_logout_uri: `http://127.0.0.1:${port}/out`,
  })
  flow = await openFlow(fixture, client)
})
afterAll(async () => {
  await fixture[Symbol.asyncDispose]()
  receiver.close()
})

/** A browser that is signed in at the client, with the ID token as a hint. */
async function signIn(): Promise<{ browser: Visitor; hint: string }> {
  const browser = openBrowser()
  const { tokens } = await flow.signIn(browser, { user })
  return { browser, hint: tokens.id_token ?? '' }
}

const ask = (browser: Visitor, query: Record<string, string> = {}) =>
  browser.visit(`${fixture.issuer}/end-session?${new URLSearchParams(query)}`)

const confirm = (browser: Visitor, page: Visited) =>
  flow.submit(browser, { page, action: `${fixture.issuer}/end-session/confirm`, fields: { logout: 'yes' } })

/** Whether the user of the browser would still be signed in at a client. */
async function isSignedIn(browser: Visitor): Promise<boolean> {
  const { callback } = await flow.begin(browser, { parameters: { prompt: 'none' } })
  return new URL(callback).searchParams.has('code')
}

describe('a sign-out by a client', () => {
  // oidcc-rp-initiated-logout
  test('with hint, address and state ends the session and returns there with the state', async () => {
    const { browser, hint } = await signIn()
    const page = await ask(browser, { id_token_hint: hint, post_logout_redirect_uri: RETURN_TO, state: 'kept' })
    expect((await confirm(browser, page)).headers.location).toBe(`${RETURN_TO}?state=kept`)
    expect(await isSignedIn(browser)).toBe(false)
  })

  // oidcc-rp-initiated-logout-no-state
  test('without a state returns without one', async () => {
    const { browser, hint } = await signIn()
    const page = await ask(browser, { id_token_hint: hint, post_logout_redirect_uri: RETURN_TO })
    expect((await confirm(browser, page)).headers.location).toBe(RETURN_TO)
  })

  // oidcc-rp-initiated-logout-no-post-logout-redirect-uri, oidcc-rp-initiated-logout-only-state,
  // oidcc-rp-initiated-logout-no-params
  test.each<[string, (hint: string) => Record<string, string>]>([
    ['a hint and a state', (hint) => ({ id_token_hint: hint, state: 's' })],
    ['a state alone', () => ({ state: 's' })],
    ['nothing', () => ({})],
  ])('with %s asks, ends the session and stays at the service', async (_name, build) => {
    const { browser, hint } = await signIn()
    const page = await ask(browser, build(hint))
    expect(page.body).toContain('Sign out?')
    expect((await confirm(browser, page)).headers.location).toBe(`${fixture.issuer}/end-session/success`)
    expect(await isSignedIn(browser)).toBe(false)
  })

  // oidcc-rp-initiated-logout-no-id-token-hint
  test('without a hint and a client returns to no address, not even a registered one', async () => {
    const { browser } = await signIn()
    const page = await ask(browser, { post_logout_redirect_uri: RETURN_TO })
    expect((await confirm(browser, page)).headers.location).toBe(`${fixture.issuer}/end-session/success`)
  })

  // oidcc-rp-initiated-logout-bad-post-logout-redirect-uri,
  // oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri
  test.each([
    ['that is not registered', 'https://evil.example/'],
    ['with a query that is not registered', `${RETURN_TO}?foo=bar`],
    ['below a registered one', `${RETURN_TO}/more`],
  ])('to an address %s is an error page, and the session lives', async (_name, uri) => {
    const { browser, hint } = await signIn()
    const page = await ask(browser, { id_token_hint: hint, post_logout_redirect_uri: uri })
    expect(page.status).toBe(400)
    expect(page.headers.location).toBeUndefined()
    expect(await isSignedIn(browser)).toBe(true)
  })

  // oidcc-rp-initiated-logout-bad-id-token-hint, oidcc-rp-initiated-logout-modified-id-token-hint
  test.each<[string, (hint: string) => string]>([
    ['that is no token', () => 'not-a-token'],
    ['whose signature is changed', (hint) => `${hint.slice(0, -10)}${'A'.repeat(10)}`],
    [
      'whose user is changed',
      (hint) => {
        const [head, , signature] = hint.split('.')
        const claims = { ...decodeJwt(hint), sub: '00000000-0000-7000-8000-000000000000' }
        return `${head}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`
      },
    ],
  ])('with a hint %s is an error page, and the session lives', async (_name, change) => {
    const { browser, hint } = await signIn()
    const page = await ask(browser, { id_token_hint: change(hint), post_logout_redirect_uri: RETURN_TO })
    expect(page.status).toBe(400)
    expect(await isSignedIn(browser)).toBe(true)
  })
})

describe('the client of a browser that signs out', () => {
  // oidcc-backchannel-rp-initiated-logout
  test('receives a logout token that says everything its standard asks for, and nothing that it forbids', async () => {
    const { browser, hint } = await signIn()
    received.length = 0
    await confirm(browser, await ask(browser, { id_token_hint: hint }))
    expect(received).toHaveLength(1)
    expect(received[0]?.type).toContain('application/x-www-form-urlencoded')
    const token = new URLSearchParams(received[0]?.body).get('logout_token') ?? ''
    const keys = createRemoteJWKSet(new URL(`${fixture.issuer}/jwks`))
    const verified = await jwtVerify(token, keys, { issuer: fixture.issuer, audience: flow.client.client_id })
    expect(verified.protectedHeader).toMatchObject({ alg: 'ES256', typ: 'logout+jwt' })
    expect(verified.payload).toMatchObject({
      sub: user.userId,
      sid: decodeJwt(hint).sid,
      iat: expect.any(Number),
      exp: expect.any(Number),
      jti: expect.any(String),
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    })
    expect(verified.payload).not.toHaveProperty('nonce')
  })

  // OpenID Connect Back-Channel Logout section 2.7
  test('keeps a refresh token with offline_access, and loses one without it', async () => {
    const [stays, ends] = [openBrowser(), openBrowser()]
    const kept = await flow.signIn(stays, { user, parameters: { prompt: 'consent' } })
    const lost = await flow.signIn(ends, { user, scope: 'openid' })
    for (const [browser, { tokens }] of [
      [stays, kept],
      [ends, lost],
    ] as const)
      await confirm(browser, await ask(browser, { id_token_hint: tokens.id_token ?? '' }))
    expect(await flow.refresh(kept.tokens.refresh_token)).toHaveProperty('access_token')
    await expect(flow.refresh(lost.tokens.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
  })
})
