import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Flow, openFlow } from '../../../test/harness/browser/oauth-flow.ts'
import {
  type OauthClient,
  type OauthFixture,
  type OauthUser,
  openBrowser,
  startOauthFixture,
} from '../../../test/harness/browser/oauth-service.ts'
import { isUuid } from '../../base/id.ts'
import { decideScopes } from './consent.ts'

const OFFLINE = { prompt: 'consent' }

describe('the scopes of a decision', () => {
  test('are those that were asked for and chosen, and every one that is not optional', () => {
    expect(decideScopes(['openid', 'email', 'profile'], ['email'], undefined)).toEqual({
      scopes: ['openid', 'email'],
      refusedScopes: ['profile'],
    })
  })

  test('keep what was given before, and take back what is refused now', () => {
    const before = { scopes: ['openid', 'email', 'contract:read'], refusedScopes: ['profile'] }
    expect(decideScopes(['openid', 'email', 'profile'], ['profile'], before)).toEqual({
      scopes: ['openid', 'contract:read', 'profile'],
      refusedScopes: ['email'],
    })
  })

  test('remember what was refused before, until it is given', () => {
    const before = { scopes: ['openid'], refusedScopes: ['email', 'profile'] }
    expect(decideScopes(['openid', 'email'], undefined, before)).toEqual({
      scopes: ['openid', 'email'],
      refusedScopes: ['profile'],
    })
  })

  test('cannot hold one that was not asked for', () => {
    expect(() => decideScopes(['openid'], ['contract:write'], undefined)).toThrow(
      'must be a scope that the app asks for',
    )
  })
})

describe('consent', () => {
  let fixture: OauthFixture
  let visitor: OauthUser
  let client: OauthClient
  let flow: Flow
  beforeAll(async () => {
    fixture = await startOauthFixture()
    visitor = await fixture.user()
    client = await fixture.client({ publisher: 'Example Ltd' })
    flow = await openFlow(fixture, client)
  })
  afterAll(() => fixture[Symbol.asyncDispose]())

  const stopAtConsent = async (scope: string, browser = openBrowser(), who = visitor) => {
    const { url } = await flow.prepare({ scope })
    return { browser, page: await fixture.walk(browser, url, { user: who, decision: 'stop' }) }
  }

  test('names the client, its publisher, the host, the user, and each scope in plain words', async () => {
    const { page } = await stopAtConsent('openid email contract:read')
    for (const text of ['Allow Example app?', 'Example Ltd', '127.0.0.1:4711', visitor.email, 'see your contracts'])
      expect(page.body).toContain(text)
    expect(page.body).not.toContain('<script')
    expect(page.headers['content-security-policy']).toContain("form-action 'self' http://127.0.0.1:4711")
    expect(page.headers['content-security-policy']).toContain("frame-ancestors 'none'")
  })

  test('is asked once, and again with what is new when the client asks for more', async () => {
    const who = await fixture.user()
    const browser = openBrowser()
    await flow.signIn(browser, { user: who, scope: 'openid email' })
    const again = await flow.begin(browser, { scope: 'openid email', decision: 'stop' })
    expect(again.callback).toContain('code=')
    const { page } = await stopAtConsent('openid email contract:read', browser, who)
    expect(page.body).toContain('Example app asks for more')
    expect(page.body.match(/class="badge">New/g)).toHaveLength(1)
  })

  test('on one device holds on another', async () => {
    const who = await fixture.user()
    await flow.signIn(openBrowser(), { user: who })
    const begun = await flow.begin(openBrowser(), { user: who, decision: 'stop', scope: 'openid email' })
    expect(begun.callback).toContain('code=')
  })

  test('without an optional scope gives a token without it, and the scope is not asked for again', async () => {
    const who = await fixture.user()
    const browser = openBrowser()
    const { tokens } = await flow.signIn(browser, {
      user: who,
      scope: 'openid email contract:read',
      without: ['email'],
    })
    expect(tokens.scope).toBe('openid contract:read')
    const again = await flow.begin(browser, { scope: 'openid email contract:read', decision: 'stop' })
    expect(again.callback).toContain('code=')
  })

  test('that is denied goes back to the client as access_denied', async () => {
    const begun = await flow.begin(openBrowser(), { user: await fixture.user(), decision: 'deny' })
    await expect(flow.redeem(begun)).rejects.toMatchObject({ error: 'access_denied' })
  })

  test('is not asked of a first-party client on the web, and its grant is listed', async () => {
    const own = await fixture.client({ first_party: true, name: 'Our app' })
    const who = await fixture.user()
    const begun = await (await openFlow(fixture, own)).begin(openBrowser(), { user: who, decision: 'stop' })
    expect(begun.callback).toContain('code=')
    const grants = await fixture.app.admin('GET', `/api/v3/oauth/grant?filters=client|eq|${own.id}`)
    expect(grants.body.data).toMatchObject([{ user: who.userId, client_name: 'Our app' }])
    const { rows } = await fixture.app.database.pool.query(
      `select a.action, a."user", a.detail from audit_log a join event_occurrence e on e.resource_id = a.target::text
       where a.target = $1 and e.event = 'oauth-decision.create'`,
      [grants.body.data[0].document_id],
    )
    const detail = { decision: 'approve', client: own.id, is_first_party: true }
    expect(rows).toMatchObject([{ action: 'oauth-decision.create', user: who.userId, detail }])
  })

  test.each([
    ['an app that asks', {}],
    ['a first-party client', { first_party: true }],
  ])('of %s leaves out scopes that there are not, so that none is given before it exists', async (_name, more) => {
    const asking = await fixture.client(more)
    const own = await openFlow(fixture, asking)
    const who = await fixture.user()
    const many = Array.from({ length: 500 }, (_, index) => `future:${index}`).join(' ')
    const { tokens } = await own.signIn(openBrowser(), { user: who, scope: `openid email openid ${many}` })
    expect(tokens.scope).toBe('openid email')
    const { body } = await fixture.app.admin('GET', `/api/v3/oauth/grant?filters=client|eq|${asking.id}`)
    expect(body.data).toMatchObject([{ user: who.userId, scopes: ['openid', 'email'] }])
    const { rows } = await fixture.app.database.pool.query('select refused_scopes from oauth_grant where client = $1', [
      asking.id,
    ])
    expect(rows).toEqual([{ refused_scopes: [] }])
  })

  test('is asked of a native client each time', async () => {
    const uris = ['http://127.0.0.1/callback']
    const own = await fixture.client({
      type: 'public',
      application_type: 'native',
      redirect_uris: uris,
      first_party: true,
    })
    const native = await openFlow(fixture, own)
    const who = await fixture.user()
    const browser = openBrowser()
    const redirectUri = 'http://127.0.0.1:50123/callback'
    await native.signIn(browser, { user: who, redirectUri })
    const { url } = await native.prepare({ redirectUri })
    expect((await fixture.walk(browser, url, { decision: 'stop' })).body).toContain('action="/auth/oauth/consent"')
  })

  test('belongs to the browser that began the authorization', async () => {
    const { page } = await stopAtConsent('openid email')
    const other = openBrowser()
    await fixture.walk(other, `${fixture.baseUrl}/auth/sign-in`, { user: visitor })
    const stolen = await other.visit(page.url.href)
    expect(stolen.status).toBe(410)
    const posted = await flow.submit(other, { page, action: '/auth/oauth/consent', fields: { decision: 'approve' } })
    expect([403, 410]).toContain(posted.status)
  })

  test('can be given through the API by the user alone, once, and the browser continues with it', async () => {
    const who = await fixture.user()
    const { browser, page } = await stopAtConsent('openid email', openBrowser(), who)
    const id = page.url.searchParams.get('id')
    const body = { authorization_id: id, decision: 'approve', scopes: ['openid'] }
    expect((await fixture.app.admin('POST', '/api/v3/oauth/decision', body)).status).toBe(404)
    const login = await fixture.app.anonymous('POST', '/api/v3/auth/login/local', who)
    expect(login.status).toBe(422)
    const session = await fixture.app.anonymous('POST', '/api/v3/auth/login/local', {
      email: who.email,
      password: who.password,
    })
    const call = fixture.app.callAs(session.body.data.jwt)
    const decided = await call('POST', '/api/v3/oauth/decision', body)
    expect(decided.body.data).toMatchObject({ decision: 'approve' })
    expect((await call('POST', '/api/v3/oauth/decision', body)).status).toBe(404)
    expect((await openBrowser().visit(decided.body.data.authorize_url)).status).toBe(400)
    const done = await browser.visit(decided.body.data.authorize_url)
    expect(done.headers.location).toContain('code=')
    const ofDecision = `filters=action|eq|oauth-decision.create&filters=target|eq|${decided.body.data.document_id}`
    const audit = await fixture.app.admin('GET', `/api/v3/audit/log?${ofDecision}`)
    expect(audit.body.data[0]).toMatchObject({ user: who.userId, detail: { decision: 'approve', client: client.id } })
  })

  test('can be refused through the API: the answer has the id of the refusal, and the app gets access_denied', async () => {
    const who = await fixture.user()
    const { browser, page } = await stopAtConsent('openid email', openBrowser(), who)
    const { email, password } = who
    const session = await fixture.app.anonymous('POST', '/api/v3/auth/login/local', { email, password })
    const body = { authorization_id: page.url.searchParams.get('id'), decision: 'deny' }
    const refused = await fixture.app.callAs(session.body.data.jwt)('POST', '/api/v3/oauth/decision', body)
    const { document_id: id, decision, authorize_url: url } = refused.body.data
    expect([refused.status, decision, isUuid(id)]).toEqual([200, 'deny', true])
    expect((await browser.visit(url)).headers.location).toContain('error=access_denied')
    const audit = await fixture.app.admin('GET', `/api/v3/audit/log?filters=target|eq|${id}`)
    expect(audit.body.data).toMatchObject([{ user: who.userId, action: 'oauth-decision.create' }])
    const log = await fixture.app.admin('GET', `/api/v3/oauth/client/${client.id}/decision`)
    expect(log.body.data[0]).toMatchObject({ user: who.userId, decision: 'deny', grant: null })
  })

  test('can be given as another account: the authorization begins again with it', async () => {
    const [first, second] = [await fixture.user(), await fixture.user()]
    const { browser, page } = await stopAtConsent('openid email', openBrowser(), first)
    const switched = await flow.submit(browser, { page, action: '/auth/oauth/switch' })
    const end = await fixture.walk(browser, new URL(switched.headers.location ?? '', page.url).href, { user: second })
    expect(end.location).toContain('code=')
    const grants = await fixture.app.admin('GET', `/api/v3/oauth/grant?filters=client|eq|${client.id}`)
    const users = grants.body.data.map(({ user }: { user: string }) => user)
    expect(users).toContain(second.userId)
    expect(users).not.toContain(first.userId)
  })

  test('can be given as the same account after a sign-out on the way', async () => {
    const who = await fixture.user()
    const { browser, page } = await stopAtConsent('openid email', openBrowser(), who)
    const switched = await flow.submit(browser, { page, action: '/auth/oauth/switch' })
    const end = await fixture.walk(browser, new URL(switched.headers.location ?? '', page.url).href, { user: who })
    expect(end.location).toContain('code=')
  })

  test('prompt=login asks for the password again, and prompt=select_account for the account', async () => {
    const who = await fixture.user()
    const browser = openBrowser()
    await flow.signIn(browser, { user: who })
    // The provider reads the time of the machine, and a sign-in of the same second counts as one for the request.
    await fixture.app.database.pool.query(`update session set auth_time = auth_time - interval '5 s'`)
    const { url } = await flow.prepare({ parameters: { prompt: 'login' } })
    const page = await fixture.walk(browser, url)
    expect(page.body).toContain('Sign in again')
    const select = await flow.prepare({ parameters: { prompt: 'select_account' } })
    const choice = await fixture.walk(browser, select.url)
    expect(choice.body).toContain(`Continue as ${who.email}`)
    const next = await flow.submit(browser, { page: choice, action: '/auth/oauth/continue' })
    expect((await fixture.walk(browser, String(next.headers.refresh).split('url=')[1] ?? '')).location).toContain(
      'code=',
    )
  })

  test('that is revoked by the user ends every token at once', async () => {
    const who = await fixture.user()
    const { tokens } = await flow.signIn(openBrowser(), { user: who, parameters: OFFLINE })
    const session = await fixture.app.anonymous('POST', '/api/v3/auth/login/local', {
      email: who.email,
      password: who.password,
    })
    const call = fixture.app.callAs(session.body.data.jwt)
    const [grant] = (await call('GET', '/api/v3/oauth/grant')).body.data
    const { call: stranger } = await fixture.app.signInMember()
    expect((await stranger('DELETE', `/api/v3/oauth/grant/${grant.document_id}`)).status).toBe(404)
    expect((await call('DELETE', `/api/v3/oauth/grant/${grant.document_id}`)).status).toBe(200)
    await expect(flow.refresh(tokens.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
    expect((await flow.userinfo(tokens.access_token)).status).toBe(401)
    expect(await flow.introspect(tokens.access_token)).toEqual({ active: false })
    expect((await call('GET', '/api/v3/oauth/grant')).body.data).toEqual([])
  })
})
