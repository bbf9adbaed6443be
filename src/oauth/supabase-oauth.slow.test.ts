import { beforeEach, describe, expect, test } from 'vitest'
import { COMPANY_OIDC } from '../../test/harness/app/connection-app.ts'
import { buildTestBrowser, localOf, pathOf, type TestBrowser, WEB_APP } from '../../test/harness/app/social-app.ts'
import { readPayload } from '../../test/harness/app/sso-app.ts'
import { readForm } from '../../test/harness/browser/oauth-service.ts'
import { ENGINE_REDIRECT, startSupabaseApp } from '../../test/harness/fakes/supabase-simulator/supabase-app.ts'
import { openForFile } from '../../test/harness/run/open-for-file.ts'
import type { UserId } from '../base/id.ts'
import { buildKeyring } from '../base/keyring.ts'
import { systemRandom } from '../base/random.ts'
import { buildSupabaseClient } from '../identity/engine/supabase/supabase-client.ts'
import { parseAllowedTargets } from '../outbound/guard/callback-url.ts'
import { buildGuardedFetch } from '../outbound/guarded-fetch.ts'
import { buildEngineConsent, type EngineUser } from './engine-consent/engine-consent.ts'

const CONTRACT = '/api/v3/contract/contract'

const fixture = await openForFile(startSupabaseApp())
const { app, simulator } = fixture
const allowed = parseAllowedTargets(new URL(simulator.url).host)
const rules = { allowHttp: true, allowedPrivateTargets: allowed }
const guarded = buildGuardedFetch({ lookup: () => Promise.reject(new Error('no name')), rules })
const consent = buildEngineConsent({
  client: buildSupabaseClient({ url: simulator.url, anonKey: undefined, fetch: guarded }),
  keyring: buildKeyring(['the secret that seals in tests, 32 bytes'], systemRandom),
  ids: app.app.ids,
})
const registered = fixture.register('Ledger Lens')
beforeEach(() => fixture.nextUser())

const now = () => new Date(app.clock.now())

const describeAsked = (user: EngineUser, authorizationId: string) =>
  consent.describe(app.database.db, user, { authorizationId, now: now() })

/** A user who signed in here through the engine, with its own client of the engine. */
async function signUp() {
  const signedUp = await fixture.signUp()
  const { userId, session } = signedUp
  return { ...signedUp, user: { userId: userId as UserId, token: session.access_token } }
}

const beginAuthorization = (scope?: string) => fixture.beginAuthorization(registered, scope)
const askToken = (fields: Record<string, string>) => fixture.askToken(registered, fields)

async function decide(signedUp: Awaited<ReturnType<typeof signUp>>, id: string, scopes: string[] = ['contract:read']) {
  const input = { user: signedUp.user, authorizationId: id, decision: 'approve' as const, scopes, now: now() }
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

  test('keeps the subject of a user at its sign-in', async () => {
    const { subject, session } = await signUp()
    expect(subject).toBe(session.user.id)
  })
})

describe('consent at a managed engine', () => {
  test('describes the app and its scopes', async () => {
    const { user } = await signUp()
    const { id } = await beginAuthorization('openid email')
    expect(await describeAsked(user, id)).toEqual({
      kind: 'pending',
      clientId: registered.client_id,
      clientName: 'Ledger Lens',
      redirectUri: ENGINE_REDIRECT,
      scopes: ['openid', 'email'],
    })
  })

  test('asks the engine once for ten calls at once, and answers a repeat with the same address', async () => {
    const signedUp = await signUp()
    const { id } = await beginAuthorization()
    const before = simulator.oauth.decisions
    const settled = await Promise.allSettled(Array.from({ length: 10 }, () => decide(signedUp, id)))
    const urls = settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value.authorizeUrl] : []))
    expect(simulator.oauth.decisions - before).toBe(1)
    expect(new Set(urls).size).toBe(1)
    for (const outcome of settled)
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'conflict' })
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

  test('refuses another decision, and another user', async () => {
    const user = await signUp()
    fixture.nextUser()
    const other = await signUp()
    const { id } = await beginAuthorization()
    await decide(user, id)
    const input = { user: user.user, authorizationId: id, scopes: [], now: now() }
    await expect(consent.decide(app.database.db, { ...input, decision: 'deny' })).rejects.toMatchObject({
      code: 'conflict',
    })
    await expect(decide(other, id)).rejects.toMatchObject({ code: 'not_found' })
    await expect(describeAsked(other.user, id)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('may be tried again after the engine was down', async () => {
    const signedUp = await signUp()
    const { id } = await beginAuthorization()
    simulator.fault = 'down'
    await expect(decide(signedUp, id)).rejects.toMatchObject({ code: 'dependency_unavailable' })
    simulator.fault = undefined
    expect((await decide(signedUp, id)).authorizeUrl).toContain('code=')
  })

  test('sends a denial back to the app', async () => {
    const { user } = await signUp()
    const { id } = await beginAuthorization()
    const input = { user, authorizationId: id, decision: 'deny' as const, scopes: ['contract:read'], now: now() }
    const { authorizeUrl } = await consent.decide(app.database.db, input)
    expect(authorizeUrl).toContain('error=access_denied')
  })
})

describe('an app at a managed engine', () => {
  test('gets a token with the audience and scopes of the API, and reads it with the permissions of the user', async () => {
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
    expect((await call('POST', CONTRACT, { account: signedUp.user.userId, name: 'x' })).status).toBe(403)
  })

  test('loses access at once when the user removes it', async () => {
    const signedUp = await signUp()
    const { body } = await obtainToken(signedUp)
    const { jwt } = (await exchange(body.access_token ?? '')).body
    const list = `/api/v3/oauth/grant?filters=user|eq|${signedUp.user.userId}`
    const [grant, ...more] = (await app.admin('GET', list)).body.data
    expect(more).toEqual([])
    expect(grant).toMatchObject({ client_name: 'Ledger Lens', scopes: ['openid', 'email', 'contract:read'] })
    expect((await app.admin('DELETE', `/api/v3/oauth/grant/${grant.document_id}`)).status).toBe(200)
    expect((await app.callAs(jwt)('GET', CONTRACT)).status).toBe(401)
    const refused = await exchange(body.access_token ?? '')
    expect(refused).toMatchObject({ status: 401, body: { code: 'oauth_exchange_failed' } })
    const refresh = { grant_type: 'refresh_token', refresh_token: body.refresh_token ?? '' }
    expect(await askToken(refresh)).toMatchObject({ status: 403, body: { msg: 'grant_revoked' } })
    expect((await app.admin('GET', list)).body.data).toEqual([])
  })

  test('whose access was removed is asked for again, and has it again when the user allows it', async () => {
    const signedUp = await signUp()
    await obtainToken(signedUp)
    const list = `/api/v3/oauth/grant?filters=user|eq|${signedUp.user.userId}`
    const [grant] = (await app.admin('GET', list)).body.data
    await app.admin('DELETE', `/api/v3/oauth/grant/${grant.document_id}`)
    const { id } = await beginAuthorization()
    // The engine still has the earlier consent, and would approve by itself.
    expect(await describeAsked(signedUp.user, id)).toMatchObject({ kind: 'pending' })
    const { body } = await obtainToken(signedUp)
    expect((await exchange(body.access_token ?? '')).status).toBe(200)
    const [again] = (await app.admin('GET', list)).body.data
    expect(again.document_id).not.toBe(grant.document_id)
  })

  test('is not reached by another user through the id of its grant', async () => {
    const signedUp = await signUp()
    await obtainToken(signedUp)
    const list = `/api/v3/oauth/grant?filters=user|eq|${signedUp.user.userId}`
    const [grant] = (await app.admin('GET', list)).body.data
    fixture.nextUser()
    const browser = buildTestBrowser(app)
    const started = await browser.get(`${pathOf('google')}?redirect_url=${encodeURIComponent(WEB_APP)}`)
    const callback = await simulator.browse(String(started.headers.location))
    await browser.get(localOf(callback).replace('/callback', '/callback-redirect'), 'application/json')
    const call = app.callAs(browser.cookies.get('signalbox_session') ?? '')
    expect((await call('GET', '/api/v3/oauth/grant')).body.data).toEqual([])
    expect((await call('DELETE', `/api/v3/oauth/grant/${grant.document_id}`)).status).toBe(404)
  })

  test('gets nothing at issue and nothing at refresh for a disabled user, and enabling revives nothing', async () => {
    const signedUp = await signUp()
    const { body } = await obtainToken(signedUp)
    const refresh = { grant_type: 'refresh_token', refresh_token: body.refresh_token ?? '' }
    await app.admin('POST', `/api/v3/identity/user/${signedUp.user.userId}/disable`)
    expect(await askToken(refresh)).toMatchObject({ status: 403, body: { msg: 'user_disabled' } })
    expect((await obtainToken(signedUp)).status).toBe(403)
    expect((await exchange(body.access_token ?? '')).status).toBe(401)
    await app.admin('POST', `/api/v3/identity/user/${signedUp.user.userId}/enable`)
    expect(await askToken(refresh)).toMatchObject({ status: 403, body: { msg: 'access_ended' } })
    expect((await exchange(body.access_token ?? '')).status).toBe(401)
    // The engine writes whole seconds.
    app.clock.advance(1_000)
    expect((await obtainToken(signedUp)).status).toBe(200)
  })

  test('opens nothing for a member whose account signs its members in by a connection alone', async () => {
    const signedUp = await signUp()
    const { account } = (
      await app.callAs(signedUp.browser.cookies.get('signalbox_session') ?? '')('GET', '/api/v3/auth/session')
    ).body.data
    const path = `/api/v3/identity/account/${account.document_id}/connection`
    const body = { kind: 'oidc', name: 'Corp', oidc: COMPANY_OIDC }
    const { document_id: connection } = (await app.admin('POST', path, body)).body.data
    const domains = `${path}/${connection}/domain`
    const claimed = (await app.admin('POST', domains, { domain: 'example.com' })).body.data
    expect((await app.admin('POST', `${domains}/${claimed.document_id}/approve`)).status).toBe(200)
    const before = (await obtainToken(signedUp)).body
    expect((await exchange(before.access_token ?? '')).status).toBe(200)
    // Judged by the exchange itself, though nothing of before was ended.
    const set = (isEnforced: boolean) =>
      app.database.pool.query('update connection set is_enforced = $2 where document_id = $1', [connection, isEnforced])
    await set(true)
    expect((await exchange(before.access_token ?? '')).status).toBe(401)
    const refresh = { grant_type: 'refresh_token', refresh_token: before.refresh_token ?? '' }
    expect(await askToken(refresh)).toMatchObject({ status: 403, body: { msg: 'connection_required' } })
    expect(await obtainToken(signedUp)).toMatchObject({ status: 403, body: { msg: 'connection_required' } })
    await set(false)
    // By the API it ends what was opened before, too.
    expect((await app.admin('PATCH', `${path}/${connection}`, { is_enforced: true })).status).toBe(200)
    app.clock.advance(1_000)
    expect(await obtainToken(signedUp)).toMatchObject({ status: 403, body: { msg: 'connection_required' } })
    expect((await app.admin('DELETE', `${path}/${connection}`)).status).toBe(200)
    expect((await exchange(before.access_token ?? '')).status).toBe(401)
    const later = (await obtainToken(signedUp)).body
    expect((await exchange(later.access_token ?? '')).status).toBe(200)
  })

  test('cannot exchange the token of a user, and a user is nobody with the token of an app', async () => {
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

describe('the consent page of a managed engine', () => {
  const PAGE = '/auth/oauth/engine'
  const cookiesOf = (browser: TestBrowser) => [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const open = (browser: TestBrowser, id: string) => browser.get(`${PAGE}?authorization_id=${id}`)

  /** Opens the page, and signs in there with the provider that it offers, which leads back to it. */
  async function signInAtPage(browser: TestBrowser, id: string) {
    const page = await open(browser, id)
    const [, href = ''] = /href="(\/api\/v3\/auth\/login\/oauth\/google[^"]*)"/.exec(String(page.body)) ?? []
    const started = await browser.get(href.replaceAll('&amp;', '&'))
    const callback = await simulator.browse(String(started.headers.location))
    const done = await browser.get(localOf(callback).replace('/callback', '/callback-redirect'))
    expect(done.headers.location).toBe(`${app.app.baseUrl()}${PAGE}?authorization_id=${id}`)
    return { page, consent: await open(browser, id) }
  }

  const post = (browser: TestBrowser, page: { body: unknown }, fields: Record<string, string>) => {
    const form = { ...readForm(String(page.body), PAGE), ...fields }
    return app.app.server.inject({
      method: 'POST',
      url: PAGE,
      headers: {
        cookie: cookiesOf(browser),
        origin: app.app.baseUrl(),
        'content-type': 'application/x-www-form-urlencoded',
      },
      payload: new URLSearchParams(form).toString(),
    })
  }

  const keptTokens = async () => (await app.database.pool.query('select * from engine_session')).rows

  test('asks for a sign-in with a provider of the engine, then shows what the app asks for', async () => {
    const browser = buildTestBrowser(app)
    const { id } = await beginAuthorization()
    const { page, consent: shown } = await signInAtPage(browser, id)
    expect(page.body).toContain('Sign in to decide')
    for (const text of ['Allow Ledger Lens?', 'app.example.com', simulator.user.email ?? '', 'sign you in'])
      expect(shown.body).toContain(text)
    expect(shown.body).toMatch(/name="allow:contract:read" value="1" aria-describedby/)
    expect(shown.headers['content-security-policy']).toContain('https://app.example.com')
  })

  test('sends the code of an approval to the app, whose token has the scopes that the user added', async () => {
    const browser = buildTestBrowser(app)
    const { id, verifier } = await beginAuthorization()
    const { consent: shown } = await signInAtPage(browser, id)
    const answer = await post(browser, shown, { decision: 'approve', 'allow:contract:read': '1' })
    expect(answer.statusCode).toBe(303)
    const back = new URL(String(answer.headers.location))
    expect(`${back.origin}${back.pathname} ${back.searchParams.get('state')}`).toBe(`${ENGINE_REDIRECT} kept`)
    const code = back.searchParams.get('code') ?? ''
    const { body } = await askToken({ grant_type: 'authorization_code', code, code_verifier: verifier })
    expect(readPayload(body.access_token ?? '')).toMatchObject({ scope: 'openid email', api_scope: 'contract:read' })
    expect((await app.callAs((await exchange(body.access_token ?? '')).body.jwt)('GET', CONTRACT)).status).toBe(200)
  })

  test('keeps the token of the user encrypted, for this decision alone, and ends its session there', async () => {
    await app.database.pool.query('delete from engine_session')
    const browser = buildTestBrowser(app)
    const { id } = await beginAuthorization()
    const before = new Set(simulator.sessions)
    const { consent: shown } = await signInAtPage(browser, id)
    const [kept, ...more] = await keptTokens()
    expect(more).toEqual([])
    expect(kept.token).toMatch(/^v1\./)
    expect([...simulator.sessions].filter((session) => !before.has(session))).toHaveLength(1)
    await post(browser, shown, { decision: 'approve' })
    expect(await keptTokens()).toEqual([])
    expect([...simulator.sessions].filter((session) => !before.has(session))).toEqual([])
  })

  test('keeps no token of a sign-in that leads elsewhere', async () => {
    await app.database.pool.query('delete from engine_session')
    await signUp()
    expect(await keptTokens()).toEqual([])
  })

  test('asks to sign in again when the token is older than an authorization lives, and the sweep deletes it', async () => {
    const browser = buildTestBrowser(app)
    const { id } = await beginAuthorization()
    await signInAtPage(browser, id)
    app.clock.advance(600_001)
    expect((await open(browser, id)).body).toContain('Sign in to decide')
    await app.app.maintenance.sweep()
    expect(await keptTokens()).toEqual([])
  })

  test('sends a denial to the app, also where the engine has approved by itself', async () => {
    const browser = buildTestBrowser(app)
    const first = await beginAuthorization()
    const { consent: shown } = await signInAtPage(browser, first.id)
    const denied = await post(browser, shown, { decision: 'deny' })
    expect(String(denied.headers.location)).toContain('error=access_denied')
    const signedUp = await signUp()
    await decide(signedUp, (await beginAuthorization()).id)
    const { id } = await beginAuthorization('email')
    const input = { user: signedUp.user, authorizationId: id, decision: 'deny' as const, scopes: [], now: now() }
    const { authorizeUrl } = await consent.decide(app.database.db, input)
    expect(authorizeUrl).toBe(`${ENGINE_REDIRECT}?state=kept&error=access_denied`)
  })

  test('leads on at once where an earlier consent covers what the app asks for', async () => {
    const browser = buildTestBrowser(app)
    const first = await beginAuthorization()
    await post(browser, (await signInAtPage(browser, first.id)).consent, { decision: 'approve' })
    const { id } = await beginAuthorization('email')
    const { consent: shown } = await signInAtPage(browser, id)
    expect(String(shown.headers.refresh)).toMatch(/^0;url=https:\/\/app\.example\.com\/back\?code=/)
  })

  test('refuses a form of another browser, and an authorization of another user', async () => {
    const [browser, other] = [buildTestBrowser(app), buildTestBrowser(app)]
    const { id } = await beginAuthorization()
    const { consent: shown } = await signInAtPage(browser, id)
    expect((await post(other, shown, { decision: 'approve' })).statusCode).toBe(403)
    fixture.nextUser()
    expect((await signInAtPage(other, id)).consent.status).toBe(404)
  })

  test('is decided through the API in the session of its sign-in, and in no other', async () => {
    const browser = buildTestBrowser(app)
    const { id } = await beginAuthorization()
    await signInAtPage(browser, id)
    const body = { authorization_id: id, decision: 'approve', scopes: ['contract:read'] }
    const decided = await app.callAs(browser.cookies.get('signalbox_session') ?? '')(
      'POST',
      '/api/v3/oauth/decision',
      body,
    )
    expect(decided).toMatchObject({ status: 200, body: { data: { decision: 'approve' } } })
    expect(decided.body.data.document_id).toMatch(/^[0-9a-f-]{36}$/)
    expect(decided.body.data.authorize_url).toContain('code=')
    const elsewhere = await app.admin('POST', '/api/v3/oauth/decision', body)
    expect(elsewhere).toMatchObject({ status: 409, body: { code: 'conflict' } })
  })

  test('says that a link is not valid without an authorization, and with the embedded engine', async () => {
    const answer = await buildTestBrowser(app).get(`${PAGE}?authorization_id=%2e%2e%2f`)
    expect(answer.body).toContain('This link no longer works')
  })
})

test('decisions are swept, but for the last approval of each user and app', async () => {
  const signedUp = await signUp()
  await decide(signedUp, (await beginAuthorization()).id, ['contract:read'])
  app.clock.advance(1_000)
  const { id } = await beginAuthorization('openid profile')
  await decide(signedUp, id, ['contract:read', 'account:read'])
  const input = { user: signedUp.user, decision: 'deny' as const, scopes: [], now: now() }
  await consent.decide(app.database.db, { ...input, authorizationId: (await beginAuthorization('openid phone')).id })
  app.clock.advance(3_600_001)
  await app.app.maintenance.sweep()
  const text = 'select authorization_id, api_scope from oauth_engine_decision where "user" = $1'
  const { rows } = await app.database.pool.query(text, [signedUp.user.userId])
  expect(rows).toEqual([{ authorization_id: id, api_scope: 'contract:read account:read' }])
})
