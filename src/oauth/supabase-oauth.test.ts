import { createHash, randomBytes } from 'node:crypto'
import { AuthClient } from '@supabase/auth-js'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../test/harness/app.ts'
import { buildManualClock } from '../../test/harness/manual-clock.ts'
import { buildTestBrowser, localOf, pathOf, WEB_APP } from '../../test/harness/social-app.ts'
import { readPayload } from '../../test/harness/sso-app.ts'
import type { SimulatedClient } from '../../test/harness/supabase-simulator/oauth-server.ts'
import { type SupabaseSimulator, startSupabaseSimulator } from '../../test/harness/supabase-simulator/simulator.ts'
import { hookSecrets } from '../app/config-parsers.ts'
import { buildSupabaseClient } from '../engine/supabase/supabase-client.ts'
import type { UserId } from '../id.ts'
import { buildKeyring } from '../keyring.ts'
import { parseAllowedTargets } from '../outbound/callback-url.ts'
import { buildGuardedFetch } from '../outbound/guarded-fetch.ts'
import { systemRandom } from '../random.ts'
import { buildEngineConsent, type EngineConsent } from './engine-consent.ts'

const SECRET = `v1,whsec_${Buffer.alloc(32, 7).toString('base64')}`
const REDIRECT = 'https://app.example.com/back'
const CONTRACT = '/api/v3/contract/contract'

let simulator: SupabaseSimulator
let app: TestApp
let consent: EngineConsent
let registered: SimulatedClient
let people = 0

beforeAll(async () => {
  const clock = buildManualClock()
  // The official client compares the expiry of tokens with the clock of the machine.
  clock.set(Date.now())
  simulator = await startSupabaseSimulator(() => clock.now())
  app = await createTestApp({
    clock,
    oauthHook: hookSecrets(SECRET),
    env: {
      AUTH_REDIRECT_ALLOW_LIST: 'https://app.example.com',
      RATE_LIMIT_STRICT_PER_MINUTE: '100000',
      IDENTITY_ENGINE: 'supabase',
      SUPABASE_URL: simulator.url,
      SOCIAL_GOOGLE_CLIENT_ID: 'on',
    },
  })
  await app.app.start()
  simulator.oauth.hook = { url: `${app.app.baseUrl()}/api/v3/oauth/hook/access-token`, secret: SECRET }
  const allowed = parseAllowedTargets(new URL(simulator.url).host)
  const rules = { allowHttp: true, allowedPrivateTargets: allowed }
  const guarded = buildGuardedFetch({ lookup: () => Promise.reject(new Error('no name')), rules })
  consent = buildEngineConsent({
    client: buildSupabaseClient({ url: simulator.url, anonKey: undefined, fetch: guarded }),
    keyring: buildKeyring(['the secret that seals in tests, 32 bytes'], systemRandom),
  })
  registered = simulator.oauth.register(REDIRECT, 'Ledger Lens')
})
afterAll(async () => {
  await app.app.stop()
  await app[Symbol.asyncDispose]()
  await simulator[Symbol.asyncDispose]()
})
beforeEach(() => {
  people += 1
  simulator.fault = undefined
  simulator.person = { sub: `p-${people}`, email: `p-${people}@example.com`, isEmailVerified: true, name: 'Ada' }
})

const now = () => new Date(app.clock.now())

/** A person who signed in here through the engine, with its own client of the engine. */
async function signUp() {
  const browser = buildTestBrowser(app)
  const started = await browser.get(`${pathOf('google')}?redirect_url=${encodeURIComponent(WEB_APP)}`)
  const callback = await simulator.browse(String(started.headers.location))
  await browser.get(localOf(callback).replace('/callback', '/callback-redirect'), 'application/json')
  const { rows } = await app.database.pool.query<{ user: UserId; engine_subject: string }>(
    'select "user", engine_subject from identity where subject = $1',
    [simulator.person.sub],
  )
  const kept = new Map<string, string>()
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  }
  const options = { autoRefreshToken: false, detectSessionInUrl: false, flowType: 'pkce' as const }
  const official = new AuthClient({ url: simulator.url, storage, ...options })
  const { data } = await official.signInWithOAuth({
    provider: 'google',
    options: { redirectTo: REDIRECT, skipBrowserRedirect: true },
  })
  const code = new URL(await simulator.browse(data.url ?? '')).searchParams.get('code') ?? ''
  const session = (await official.exchangeCodeForSession(code)).data.session
  if (!session || !rows[0]) throw new Error('nobody signed in')
  const person = { userId: rows[0].user, token: session.access_token }
  return { person, official, subject: rows[0].engine_subject, session }
}

/** An app begins: the browser arrives at the consent page with this authorization. */
async function beginAuthorization(scope = 'openid email') {
  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams({
    client_id: registered.client_id,
    redirect_uri: REDIRECT,
    response_type: 'code',
    scope,
    state: 'kept',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  const answer = await fetch(`${simulator.url}/oauth/authorize?${query}`, { redirect: 'manual' })
  const id = new URL(answer.headers.get('location') ?? '').searchParams.get('authorization_id') ?? ''
  return { id, verifier }
}

async function askToken(fields: Record<string, string>) {
  const { client_id, client_secret } = registered
  const answer = await fetch(`${simulator.url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ client_id, client_secret, ...fields }),
  })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

async function decide(signedUp: Awaited<ReturnType<typeof signUp>>, id: string, scopes: string[] = ['contract:read']) {
  const input = { person: signedUp.person, authorizationId: id, decision: 'approve' as const, scopes, now: now() }
  return consent.decide(app.database.db, input)
}

/** The whole way of an app to its access token. */
async function obtainToken(signedUp: Awaited<ReturnType<typeof signUp>>, scopes?: string[]) {
  const { id, verifier } = await beginAuthorization()
  const { authorizeUrl } = await decide(signedUp, id, scopes)
  const code = new URL(authorizeUrl).searchParams.get('code') ?? ''
  return askToken({ grant_type: 'authorization_code', code, code_verifier: verifier })
}

const exchange = (token: string) => app.anonymous('POST', '/api/v3/oauth/exchange', { token })

describe('the OAuth server of Supabase Auth', () => {
  test('is known to the official client: details, consent, grants and their end', async () => {
    const { official } = await signUp()
    const { id } = await beginAuthorization()
    const details = await official.oauth.getAuthorizationDetails(id)
    expect(details.data).toMatchObject({ authorization_id: id, client: { name: 'Ledger Lens' }, scope: 'openid email' })
    const approved = await official.oauth.approveAuthorization(id, { skipBrowserRedirect: true })
    expect(approved.data?.redirect_url).toMatch(/^https:\/\/app\.example\.com\/back\?code=.+&state=kept$/)
    const grants = await official.oauth.listGrants()
    expect(grants.data).toMatchObject([{ client: { id: registered.client_id }, scopes: ['openid', 'email'] }])
    expect((await official.oauth.revokeGrant({ clientId: registered.client_id })).error).toBeNull()
    expect((await official.oauth.listGrants()).data).toEqual([])
  })

  test('is known to the official client: denial, and its errors', async () => {
    const { official } = await signUp()
    const { id } = await beginAuthorization()
    expect((await official.oauth.approveAuthorization(id, { skipBrowserRedirect: true })).error?.code).toBe(
      'oauth_authorization_not_found',
    )
    await official.oauth.getAuthorizationDetails(id)
    const denied = await official.oauth.denyAuthorization(id, { skipBrowserRedirect: true })
    expect(denied.data?.redirect_url).toContain('error=access_denied')
    expect((await official.oauth.getAuthorizationDetails(id)).error?.code).toBe('validation_failed')
  })

  test('keeps the subject of a person at its sign-in', async () => {
    const { subject, session } = await signUp()
    expect(subject).toBe(session.user.id)
  })
})

describe('consent at a managed engine', () => {
  test('describes the app and its scopes', async () => {
    const { person } = await signUp()
    const { id } = await beginAuthorization('openid email')
    expect(await consent.describe(person, id)).toEqual({
      kind: 'pending',
      clientId: registered.client_id,
      clientName: 'Ledger Lens',
      redirectUri: REDIRECT,
      scopes: ['openid', 'email'],
    })
  })

  test('asks the engine once for ten calls at once, and answers a repeat with the same address', async () => {
    const signedUp = await signUp()
    const { id } = await beginAuthorization()
    const before = simulator.oauth.decisions
    const settled = await Promise.allSettled(Array.from({ length: 10 }, () => decide(signedUp, id)))
    const urls = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value.authorizeUrl] : []))
    expect(simulator.oauth.decisions - before).toBe(1)
    expect(new Set(urls).size).toBe(1)
    for (const one of settled) if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'conflict' })
    expect((await decide(signedUp, id)).authorizeUrl).toBe(urls[0])
    expect(simulator.oauth.decisions - before).toBe(1)
  })

  test('keeps no code in the database that can be read there', async () => {
    const signedUp = await signUp()
    const { id } = await beginAuthorization()
    const { authorizeUrl } = await decide(signedUp, id)
    const text = 'select authorize_url from oauth_engine_decision where authorization_id = $1'
    const { rows } = await app.database.pool.query(text, [id])
    expect(rows[0].authorize_url).not.toContain(new URL(authorizeUrl).searchParams.get('code'))
  })

  test('refuses another decision, and another person', async () => {
    const one = await signUp()
    simulator.person = { sub: `q-${people}`, email: `q-${people}@example.com`, isEmailVerified: true, name: 'Grace' }
    const other = await signUp()
    const { id } = await beginAuthorization()
    await decide(one, id)
    const input = { person: one.person, authorizationId: id, scopes: [], now: now() }
    await expect(consent.decide(app.database.db, { ...input, decision: 'deny' })).rejects.toMatchObject({
      code: 'conflict',
    })
    await expect(decide(other, id)).rejects.toMatchObject({ code: 'not_found' })
    await expect(consent.describe(other.person, id)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('may be tried again after the engine was down', async () => {
    const signedUp = await signUp()
    const { id } = await beginAuthorization()
    simulator.fault = 'down'
    await expect(decide(signedUp, id)).rejects.toMatchObject({ code: 'dependency_unavailable' })
    simulator.fault = undefined
    expect((await decide(signedUp, id)).authorizeUrl).toContain('code=')
  })

  test('continues at once where an earlier consent covers the scopes', async () => {
    const signedUp = await signUp()
    await decide(signedUp, (await beginAuthorization()).id)
    const { id } = await beginAuthorization('email')
    expect(await consent.describe(signedUp.person, id)).toMatchObject({ kind: 'covered' })
  })

  test('sends a denial back to the app', async () => {
    const { person } = await signUp()
    const { id } = await beginAuthorization()
    const input = { person, authorizationId: id, decision: 'deny' as const, scopes: ['contract:read'], now: now() }
    const { authorizeUrl } = await consent.decide(app.database.db, input)
    expect(authorizeUrl).toContain('error=access_denied')
  })
})

describe('an app at a managed engine', () => {
  test('gets a token with the audience and scopes of the API, and reads it with the permissions of the person', async () => {
    const signedUp = await signUp()
    const { status, body } = await obtainToken(signedUp, ['contract:read', 'openid', 'unknown'])
    expect(status).toBe(200)
    expect(readPayload(body.access_token ?? '')).toMatchObject({
      aud: `${app.app.baseUrl()}/api/v3`,
      scope: 'openid email',
      api_scope: 'contract:read',
    })
    const exchanged = await exchange(body.access_token ?? '')
    expect(exchanged.status).toBe(200)
    const call = app.callAs(exchanged.body.jwt)
    expect((await call('GET', CONTRACT)).status).toBe(200)
    expect((await call('POST', CONTRACT, { account: signedUp.person.userId, name: 'x' })).status).toBe(403)
  })

  test('loses access at once when the person removes it', async () => {
    const signedUp = await signUp()
    const { body } = await obtainToken(signedUp)
    const { jwt } = (await exchange(body.access_token ?? '')).body
    const input = { person: signedUp.person, clientId: registered.client_id, now: now() }
    await consent.revoke(app.database.db, input)
    expect((await app.callAs(jwt)('GET', CONTRACT)).status).toBe(401)
    const refused = await exchange(body.access_token ?? '')
    expect(refused).toMatchObject({ status: 401, body: { code: 'oauth_exchange_failed' } })
    const refresh = { grant_type: 'refresh_token', refresh_token: body.refresh_token ?? '' }
    expect((await askToken(refresh)).status).toBe(400)
  })

  test('gets nothing at issue and nothing at refresh for a disabled person, and again when it is enabled', async () => {
    const signedUp = await signUp()
    const { body } = await obtainToken(signedUp)
    const refresh = { grant_type: 'refresh_token', refresh_token: body.refresh_token ?? '' }
    await app.admin('POST', `/api/v3/identity/user/${signedUp.person.userId}/disable`)
    expect(await askToken(refresh)).toMatchObject({ status: 403, body: { msg: 'user_disabled' } })
    expect((await obtainToken(signedUp)).status).toBe(403)
    expect((await exchange(body.access_token ?? '')).status).toBe(401)
    await app.admin('POST', `/api/v3/identity/user/${signedUp.person.userId}/enable`)
    expect((await askToken(refresh)).status).toBe(200)
  })

  test('cannot exchange the token of a person, and a person is nobody with the token of an app', async () => {
    const { session } = await signUp()
    const answer = await exchange(session.access_token)
    expect(answer).toMatchObject({ status: 401, body: { code: 'oauth_exchange_failed' } })
  })

  test('is told to come back when the engine is down', async () => {
    const { body } = await obtainToken(await signUp())
    expect((await exchange(body.access_token ?? '')).status).toBe(200)
    simulator.fault = 'down'
    const answer = await exchange(body.access_token ?? '')
    expect(answer).toMatchObject({ status: 503, body: { code: 'dependency_unavailable' } })
    expect(answer.headers['retry-after']).toBe('5')
  })
})
