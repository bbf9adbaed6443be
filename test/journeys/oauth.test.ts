import * as openid from 'openid-client'
import { describe, expect, test } from 'vitest'
import type { TestAnswer } from '../harness/app/app.ts'
import { readPayload } from '../harness/app/sso-app.ts'
import { type OauthClient, type OauthUser, openBrowser, startOauthFixture } from '../harness/browser/oauth-service.ts'
import type { Visitor } from '../harness/browser/visitor.ts'
import { openRequestDatabase } from '../harness/plan/request-plans.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { judgeWholeReads } from './known-whole-reads.ts'

const CONTRACT = '/api/v3/contract/contract'
const EXCHANGE = '/api/v3/oauth/exchange'
const OFFLINE = { prompt: 'consent' }

const requests = await openForFile(openRequestDatabase())
const fixture = await openForFile(startOauthFixture({ database: requests, workerDatabase: requests.workerDatabase }))
const { database, clock } = fixture.app
/** Another process on the same database, behind the same address. */
const other = await openForFile(startOauthFixture({ env: { BASE_URL: fixture.baseUrl }, database, clock }))
const made = await fixture.app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })
const account: string = made.body.data.document_id
const user = await member()

/** A user in the account, who may do there what every member may. */
async function member(): Promise<OauthUser> {
  const user = await fixture.user()
  const added = await fixture.app.admin('POST', `/api/v3/identity/account/${account}/member`, { user: user.userId })
  expect(added.status).toBe(201)
  return user
}

interface AppSignIn {
  config: openid.Configuration
  client: OauthClient
  tokens: openid.TokenEndpointResponse
  user: OauthUser
  browser: Visitor
}

/** An app of somebody else: `openid-client` begins, a user signs in and consents, and the code is redeemed. */
async function signIn(
  options: {
    by?: OauthUser
    client?: OauthClient
    browser?: Visitor
    without?: string[]
    scope?: string
    parameters?: Record<string, string>
  } = {},
): Promise<AppSignIn> {
  const { by = user, browser = openBrowser(), without = [], parameters = OFFLINE } = options
  const { scope = 'openid email offline_access contract:read' } = options
  const client = options.client ?? (await fixture.client())
  const execute = [openid.allowInsecureRequests]
  const config = await openid.discovery(new URL(fixture.issuer), client.id, client.secret ?? '', undefined, { execute })
  const [pkceCodeVerifier, expectedState] = [openid.randomPKCECodeVerifier(), openid.randomState()]
  const url = openid.buildAuthorizationUrl(config, {
    redirect_uri: client.redirectUri,
    scope,
    code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    state: expectedState,
    ...parameters,
  })
  const end = await fixture.walk(browser, url.href, { user: by, without })
  const checks = { pkceCodeVerifier, expectedState, idTokenExpected: true }
  const tokens = await openid.authorizationCodeGrant(config, new URL(end.location ?? ''), checks)
  return { config, client, tokens, user: by, browser }
}

/** Exchanges an access token at a process, whose clock is that of the machine, like the provider's. */
function exchange(token: string, at = fixture): Promise<TestAnswer> {
  at.app.clock.set(Date.now())
  return at.app.anonymous('POST', EXCHANGE, { token })
}

async function openSession({ tokens }: AppSignIn, at = fixture): Promise<string> {
  const answer = await exchange(tokens.access_token, at)
  expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 200 })
  return answer.body.jwt
}

const readAt = async (jwt: string, at = fixture) => (await at.app.callAs(jwt)('GET', CONTRACT)).status
const readEverywhere = async (jwt: string) => [await readAt(jwt), await readAt(jwt, other)]

/** The refused exchanges that the audit log counts, by their reason. */
async function countRefusals(): Promise<Map<string, number>> {
  for (const { app } of [fixture, other]) await app.app.equalEntries.flush()
  const { rows } = await requests.workerDatabase.pool.query<{ reason: string; count: number }>(
    `select detail->>'reason' as reason, sum(count)::int as count from audit_log
     where outcome = 'failure' and detail->>'reason' is not null group by 1`,
  )
  return new Map(rows.map(({ reason, count }) => [reason, count]))
}

/** Has an exchange refused, and returns the reason that it is audited with, which its answer does not show. */
async function reasonAt(token: string, at = fixture): Promise<string[]> {
  const before = await countRefusals()
  expect(await exchange(token, at)).toMatchObject({ status: 401, body: { code: 'oauth_exchange_failed' } })
  return [...(await countRefusals())]
    .filter(([reason, count]) => count !== before.get(reason))
    .map(([reason]) => reason)
}

async function grantOf({ client, user: { userId } }: AppSignIn): Promise<string> {
  const text = 'select document_id from oauth_grant where client = $1 and "user" = $2 and revoked_at is null'
  return (await requests.workerDatabase.pool.query(text, [client.id, userId])).rows[0].document_id
}

/** The API as the user itself calls it. */
async function callAsUser({ email, password }: OauthUser) {
  const answer = await fixture.app.anonymous('POST', '/api/v3/auth/login/local', { email, password })
  return fixture.app.callAs(answer.body.data.jwt)
}

/** Sessions of the app in both processes, and a refresh token that works. */
async function openEverywhere(signedIn: AppSignIn): Promise<string[]> {
  const jwts = [await openSession(signedIn), await openSession(signedIn, other)]
  for (const jwt of jwts) expect(await readEverywhere(jwt)).toEqual([200, 200])
  return jwts
}

/** Nothing of the app works any more, in any process. */
async function expectNoAccess({ config, tokens }: AppSignIn, jwts: readonly string[], reason: string): Promise<void> {
  for (const jwt of jwts) expect(await readEverywhere(jwt)).toEqual([401, 401])
  for (const at of [fixture, other]) expect(await reasonAt(tokens.access_token, at)).toEqual([reason])
  await expect(openid.refreshTokenGrant(config, tokens.refresh_token ?? '')).rejects.toThrow()
}

describe('an app of somebody else', () => {
  test('reads the API as the user within its scopes, and nothing outside of them, in every process', async () => {
    const signedIn = await signIn()
    const [jwt = ''] = await openEverywhere(signedIn)
    for (const { app } of [fixture, other]) {
      const call = app.callAs(jwt)
      expect((await call('POST', CONTRACT, { account, name: 'Lease' })).status).toBe(403)
      expect((await call('GET', '/api/v3/identity/account')).status).toBe(403)
      expect((await call('GET', '/api/v3/oauth/grant')).status).toBe(403)
    }
    const own = await callAsUser(user)
    expect((await own('GET', '/api/v3/oauth/grant')).status).toBe(200)
  })

  test('may do no more than the user, whatever its scopes open', async () => {
    const stranger = await fixture.user()
    const client = await fixture.client({ scopes: ['openid', 'offline_access', 'contract:read', 'contract:write'] })
    const scope = 'openid offline_access contract:read contract:write'
    const jwt = await openSession(await signIn({ by: stranger, client, scope }))
    const call = fixture.app.callAs(jwt)
    expect((await call('POST', CONTRACT, { account, name: 'Lease' })).status).toBe(403)
  })

  test('goes on with a refreshed token, which opens another session', async () => {
    const signedIn = await signIn()
    const next = await openid.refreshTokenGrant(signedIn.config, signedIn.tokens.refresh_token ?? '')
    const jwt = await openSession({ ...signedIn, tokens: next }, other)
    expect(await readEverywhere(jwt)).toEqual([200, 200])
  })

  test('with the scope account:read is told the account of the user in its token', async () => {
    const client = await fixture.client({ scopes: ['openid', 'account:read'] })
    const { tokens } = await signIn({ client, scope: 'openid account:read', parameters: {} })
    expect(readPayload(tokens.access_token)).toMatchObject({ account })
    expect(readPayload((await signIn()).tokens.access_token)).not.toHaveProperty('account')
  })
})

describe('an app loses its access at once in every process', () => {
  test('when the user removes it', async () => {
    const signedIn = await signIn()
    const jwts = await openEverywhere(signedIn)
    const own = await callAsUser(signedIn.user)
    expect((await own('DELETE', `/api/v3/oauth/grant/${await grantOf(signedIn)}`)).status).toBe(200)
    await expectNoAccess(signedIn, jwts, 'grant_ended')
  })

  test('when its client is deleted, and other apps of the user keep theirs', async () => {
    const [signedIn, kept] = [await signIn(), await signIn()]
    const jwts = await openEverywhere(signedIn)
    const [keptJwt = ''] = await openEverywhere(kept)
    expect((await fixture.app.admin('DELETE', `/api/v3/oauth/client/${signedIn.client.id}`)).status).toBe(200)
    await expectNoAccess(signedIn, jwts, 'client_unknown')
    expect(await readEverywhere(keptJwt)).toEqual([200, 200])
  })

  test('when the user is disabled', async () => {
    const signedIn = await signIn({ by: await member() })
    const jwts = await openEverywhere(signedIn)
    const path = `/api/v3/identity/user/${signedIn.user.userId}/disable`
    expect((await fixture.app.admin('POST', path)).status).toBe(200)
    await expectNoAccess(signedIn, jwts, 'user_inactive')
  })

  test('when it revokes its tokens itself, and may be signed in to again without a question', async () => {
    const signedIn = await signIn()
    const jwts = await openEverywhere(signedIn)
    await openid.tokenRevocation(signedIn.config, signedIn.tokens.refresh_token ?? '')
    await expectNoAccess(signedIn, jwts, 'token_unknown')
    const again = await signIn({ client: signedIn.client, browser: signedIn.browser, parameters: {} })
    expect(await readAt(await openSession(again))).toBe(200)
  })

  test('when one of its refresh tokens comes back after its time', async () => {
    const signedIn = await signIn()
    const { refresh_token: spent = '' } = signedIn.tokens
    await openid.refreshTokenGrant(signedIn.config, spent)
    const jwts = await openEverywhere(signedIn)
    const text = "update oauth_state set consumed_at = consumed_at - interval '1 minute' where consumed_at is not null"
    await requests.workerDatabase.pool.query(text)
    await expect(openid.refreshTokenGrant(signedIn.config, spent)).rejects.toMatchObject({ error: 'invalid_grant' })
    await expectNoAccess(signedIn, jwts, 'token_unknown')
  })

  test('of a client deleted beside exchanges under way no session is left', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { client, tokens } = await signIn()
      const exchanges = [fixture, other, fixture, other].map((at) => exchange(tokens.access_token, at))
      await Promise.all([...exchanges, fixture.app.admin('DELETE', `/api/v3/oauth/client/${client.id}`)])
      const text = 'select from session where client_id = $1 and revoked_at is null'
      expect((await requests.workerDatabase.pool.query(text, [client.id])).rows).toHaveLength(0)
    }
  })
})

describe('a scope that the user takes back', () => {
  test('ends the sessions that had it, and no token of any browser opens it again', async () => {
    const [client, elsewhere] = [await fixture.client(), openBrowser()]
    const phone = await signIn({ client, browser: elsewhere })
    const jwt = await openSession(phone)
    expect(await readEverywhere(jwt)).toEqual([200, 200])
    await signIn({ client, without: ['contract:read'] })
    expect(await readEverywhere(jwt)).toEqual([401, 401])
    const narrowed = await openSession(phone, other)
    expect(readPayload(narrowed).scope).toBe('openid email offline_access')
    expect(await readEverywhere(narrowed)).toEqual([403, 403])
    const next = await openid.refreshTokenGrant(phone.config, phone.tokens.refresh_token ?? '')
    expect(readPayload(next.access_token).scope).not.toContain('contract:read')
  })
})

describe('an exchange of a token that the provider keeps is refused', () => {
  const change = (text: string, values: unknown[]) => requests.workerDatabase.pool.query(text, values)

  test('as client_unknown when its client is gone', async () => {
    const { client, tokens } = await signIn()
    await change('update oauth_client set deleted_at = now() where document_id = $1', [client.id])
    expect(await reasonAt(tokens.access_token)).toEqual(['client_unknown'])
  })

  test('as grant_unknown when its grant is gone', async () => {
    const { client, tokens } = await signIn()
    await change('update oauth_grant set revoked_at = now() where client = $1', [client.id])
    expect(await reasonAt(tokens.access_token)).toEqual(['grant_unknown'])
  })

  test('as token_unknown when the token was revoked', async () => {
    const { config, tokens } = await signIn()
    await openid.tokenRevocation(config, tokens.access_token)
    expect(await reasonAt(tokens.access_token)).toEqual(['token_unknown'])
  })

  test('as session_ended when the user has signed out and the token is without offline_access', async () => {
    const browser = openBrowser()
    const [bound, free] = [
      await signIn({ browser, scope: 'openid contract:read', parameters: {} }),
      await signIn({ browser }),
    ]
    await openSession(bound)
    await change('update session set revoked_at = now() where "user" = $1 and client_id is null', [user.userId])
    expect(await reasonAt(bound.tokens.access_token)).toEqual(['session_ended'])
    await openSession(free)
  })
})

test('no statement of the provider and of exchanges reads through what others have stored', async () => {
  const { config, client, tokens, browser } = await signIn()
  await openSession({ config, client, tokens, user, browser })
  const { sub } = readPayload(tokens.id_token ?? '')
  await openid.fetchUserInfo(config, tokens.access_token, String(sub))
  await openid.tokenIntrospection(config, tokens.refresh_token ?? '')
  await openid.buildAuthorizationUrlWithPAR(config, {
    redirect_uri: client.redirectUri,
    scope: 'openid',
    code_challenge: await openid.calculatePKCECodeChallenge(openid.randomPKCECodeVerifier()),
    code_challenge_method: 'S256',
  })
  await openid.refreshTokenGrant(config, tokens.refresh_token ?? '')
  await openid.tokenRevocation(config, tokens.refresh_token ?? '')
  expect(judgeWholeReads(await requests.listWholeReads()).unknown).toEqual([])
})
