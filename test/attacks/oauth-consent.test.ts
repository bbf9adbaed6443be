import { describe, expect, test } from 'vitest'
import { openFlow } from '../harness/browser/oauth-flow.ts'
import { type OauthUser, openBrowser, readForm, startOauthFixture } from '../harness/browser/oauth-service.ts'
import type { Visited, Visitor } from '../harness/browser/visitor.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/** Attacks on the user who decides (RFC 9700 sections 4.2, 4.4, 4.7, 4.16), and on a user who signs out. */

const CONSENT = '/auth/oauth/consent'

const fixture = await openForFile(startOauthFixture())
const user = await fixture.user()
const flow = await openFlow(fixture, await fixture.client())

/** A new user in a new browser, who stands before the question for consent. */
async function standBefore(): Promise<{ browser: Visitor; page: Visited; url: string; who: OauthUser }> {
  const [browser, who] = [openBrowser(), await fixture.user()]
  const { url } = await flow.prepare({ scope: 'openid email' })
  const page = await fixture.walk(browser, url, { user: who, decision: 'stop' })
  return { browser, page, url, who }
}

const post = (browser: Visitor, form: Record<string, string>, headers: Record<string, string> = {}) =>
  browser.visit(`${fixture.baseUrl}${CONSENT}`, { method: 'POST', form, headers })

const grantsOf = async ({ userId }: OauthUser) =>
  (await fixture.app.admin('GET', `/api/v3/oauth/grant?filters=user|eq|${userId}`)).body.data

describe('a decision is refused', () => {
  test.each([
    ['from another site', { origin: 'https://evil.example' }, {}],
    ['from another origin of this machine', { origin: 'http://localhost:1' }, {}],
    ['from a sandboxed frame', { origin: 'null' }, {}],
    ['from another site, as the browser tells it', { 'sec-fetch-site': 'cross-site' }, {}],
    ['from a sibling site, as the browser tells it', { 'sec-fetch-site': 'same-site' }, {}],
    ['without the token of the form', {}, { form_token: '' }],
    ['with a made-up token of the form', {}, { form_token: 'a.b' }],
  ])('%s', async (_name, headers, change) => {
    const { browser, page, who } = await standBefore()
    const answer = await post(browser, { ...readForm(page.body, CONSENT), decision: 'approve', ...change }, headers)
    expect(answer.status).toBe(403)
    expect(await grantsOf(who)).toEqual([])
  })

  test('with the token of a form of another browser', async () => {
    const [mine, theirs] = [await standBefore(), await standBefore()]
    const { form_token: token = '' } = readForm(theirs.page.body, CONSENT)
    const form = { ...readForm(mine.page.body, CONSENT), form_token: token, decision: 'approve' }
    expect((await post(mine.browser, form)).status).toBe(403)
  })

  test('for the authorization of another browser', async () => {
    const [mine, theirs] = [await standBefore(), await standBefore()]
    const id = theirs.page.url.searchParams.get('id') ?? ''
    const answer = await post(mine.browser, { ...readForm(mine.page.body, CONSENT), id, decision: 'approve' })
    expect(answer.status).toBe(410)
    expect(await grantsOf(theirs.who)).toEqual([])
  })

  test('by GET', async () => {
    const { browser, page, who } = await standBefore()
    const query = new URLSearchParams({ ...readForm(page.body, CONSENT), decision: 'approve' })
    await browser.visit(`${fixture.baseUrl}${CONSENT}?${query}`)
    expect(await grantsOf(who)).toEqual([])
  })

  test('a second time', async () => {
    const { browser, page } = await standBefore()
    const form = { ...readForm(page.body, CONSENT), decision: 'deny' }
    expect((await post(browser, form)).status).toBe(303)
    expect((await post(browser, { ...form, decision: 'approve' })).status).toBe(410)
  })

  test('that is neither of the two', async () => {
    const { browser, page, who } = await standBefore()
    expect((await post(browser, { ...readForm(page.body, CONSENT), decision: 'maybe' })).status).toBe(422)
    expect(await grantsOf(who)).toEqual([])
  })

  test('through the API by another user', async () => {
    const { page } = await standBefore()
    const { call } = await fixture.app.signInMember()
    const body = { authorization_id: page.url.searchParams.get('id'), decision: 'approve' }
    expect((await call('POST', '/api/v3/oauth/decision', body)).status).toBe(404)
  })

  test('through the API by the cookie of a browser', async () => {
    const { browser, page } = await standBefore()
    const body = JSON.stringify({ authorization_id: page.url.searchParams.get('id'), decision: 'approve' })
    const cookie = [...browser.cookiesOf(fixture.baseUrl)].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(`${fixture.baseUrl}/api/v3/oauth/decision`, {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/json' },
      body,
    })
    expect(answer.status).toBe(401)
  })

  test('through the API by an API key', async () => {
    const { page } = await standBefore()
    const key = await fixture.app.admin('POST', '/api/v3/identity/api-key', { name: 'k', permissions: ['*:*'] })
    const body = { authorization_id: page.url.searchParams.get('id'), decision: 'approve' }
    const answer = await fixture.app.callAs(key.body.data.key)('POST', '/api/v3/oauth/decision', body)
    expect(answer.status).toBe(409)
  })
})

describe('a decision gives no more than was asked for', () => {
  test('through a field of the form that the page did not have', async () => {
    const { browser, page, who } = await standBefore()
    const form = { ...readForm(page.body, CONSENT), decision: 'approve', 'allow:contract:read': '1' }
    expect((await post(browser, form)).status).toBe(303)
    expect((await grantsOf(who))[0].scopes).toEqual(['openid', 'email'])
  })

  test('through the API', async () => {
    const { page, who } = await standBefore()
    const login = { email: who.email, password: who.password }
    const session = await fixture.app.anonymous('POST', '/api/v3/auth/login/local', login)
    const id = page.url.searchParams.get('id')
    const body = { authorization_id: id, decision: 'approve', scopes: ['openid', 'webhook:write'] }
    expect((await fixture.app.callAs(session.body.data.jwt)('POST', '/api/v3/oauth/decision', body)).status).toBe(422)
    expect(await grantsOf(who)).toEqual([])
  })
})

describe('an authorization continues only', () => {
  test('in the browser that began it, after the decision', async () => {
    const { browser, page } = await standBefore()
    const done = await post(browser, { ...readForm(page.body, CONSENT), decision: 'approve' })
    const stolen = await openBrowser().visit(done.headers.location ?? '')
    expect(stolen.status).toBe(400)
    expect(stolen.headers.location).toBeUndefined()
  })

  test('once', async () => {
    const { browser, page } = await standBefore()
    const done = await post(browser, { ...readForm(page.body, CONSENT), decision: 'approve' })
    expect((await browser.visit(done.headers.location ?? '')).headers.location).toContain('code=')
    expect((await browser.visit(done.headers.location ?? '')).headers.location ?? '').not.toContain('code=')
  })

  test('for the user who decided, not for the one who signed in meanwhile', async () => {
    const { browser, page } = await standBefore()
    const done = await post(browser, { ...readForm(page.body, CONSENT), decision: 'approve' })
    const devices = await browser.visit(`${fixture.baseUrl}/auth/devices`)
    await flow.submit(browser, { page: devices, action: '/auth/sign-out' })
    await fixture.walk(browser, `${fixture.baseUrl}/auth/sign-in`, { user })
    expect((await browser.visit(done.headers.location ?? '')).headers.location ?? '').not.toContain('code=')
  })

  test('for an active user', async () => {
    const { browser, page, who } = await standBefore()
    const done = await post(browser, { ...readForm(page.body, CONSENT), decision: 'approve' })
    await fixture.app.admin('POST', `/api/v3/identity/user/${who.userId}/disable`, {})
    expect((await browser.visit(done.headers.location ?? '')).headers.location ?? '').not.toContain('code=')
  })
})

describe('sign-out by a client', () => {
  const signedIn = async () => {
    const browser = openBrowser()
    const { tokens } = await flow.signIn(browser, { user })
    return { browser, tokens }
  }
  const isSignedIn = async (browser: Visitor) => (await browser.visit(`${fixture.baseUrl}/auth/devices`)).status === 200

  test('needs the word of the user', async () => {
    const { browser, tokens } = await signedIn()
    await browser.visit(`${fixture.issuer}/end-session?id_token_hint=${tokens.id_token}`)
    expect(await isSignedIn(browser)).toBe(true)
  })

  test('is refused without the token of its form', async () => {
    const { browser } = await signedIn()
    await browser.visit(`${fixture.issuer}/end-session`)
    const form = { logout: 'yes', xsrf: 'guess' }
    const answer = await browser.visit(`${fixture.issuer}/end-session/confirm`, { method: 'POST', form })
    expect(answer.status).toBe(400)
    expect(await isSignedIn(browser)).toBe(true)
  })

  test('returns to no address that is not registered', async () => {
    const { browser, tokens } = await signedIn()
    const query = new URLSearchParams({
      id_token_hint: tokens.id_token ?? '',
      post_logout_redirect_uri: 'https://evil.example/',
    })
    const answer = await browser.visit(`${fixture.issuer}/end-session?${query}`)
    expect(answer.status).toBe(400)
    expect(answer.headers.location).toBeUndefined()
  })

  test('ignores an address without a client', async () => {
    const { browser } = await signedIn()
    const page = await browser.visit(`${fixture.issuer}/end-session?post_logout_redirect_uri=https://evil.example/`)
    const action = `${fixture.issuer}/end-session/confirm`
    const done = await flow.submit(browser, { page, action, fields: { logout: 'yes' } })
    expect(done.headers.location).toBe(`${fixture.issuer}/end-session/success`)
  })

  test('takes no ID token that somebody else signed as a hint', async () => {
    const { browser, tokens } = await signedIn()
    const [head, payload] = (tokens.id_token ?? '').split('.')
    const answer = await browser.visit(`${fixture.issuer}/end-session?id_token_hint=${head}.${payload}.AAAA`)
    expect(answer.status).toBe(400)
  })
})
