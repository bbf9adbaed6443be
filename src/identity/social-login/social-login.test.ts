import { describe, expect, test } from 'vitest'
import {
  createSocialApp,
  localOf,
  MOBILE_APP,
  pathOf,
  redirectUrlOf,
  WEB_APP,
} from '../../../test/harness/app/social-app.ts'
import { PERSONALITIES, type PersonalityName } from '../../../test/harness/fakes/provider/personalities.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

let users = 0

const t = await openForFile(createSocialApp())

/** A subject that no other test has used. GitHub's ids are numbers. */
const someone = () => {
  users += 1
  return `90${users}`
}

const auditOf = async (action: string) => {
  const { body } = await t.app.admin('GET', `/api/v3/audit/log?filters=action|eq|${action}&page_size=1`)
  return body.data[0]
}

describe('the start', () => {
  test('redirects to the provider with a state, and gives the browser a cookie that scripts do not see', async () => {
    const answer = await t.browser().get(`${pathOf('google')}?redirect_url=${encodeURIComponent(WEB_APP)}`)
    expect(answer.status).toBe(302)
    const url = new URL(String(answer.headers.location))
    expect([url.origin, url.searchParams.get('redirect_uri')]).toEqual([
      'https://accounts.google.com',
      'https://service.test/api/v3/auth/login/oauth/google/callback',
    ])
    expect(url.searchParams.get('state')?.length).toBeGreaterThan(80)
    expect(String(answer.headers['set-cookie'])).toMatch(
      /^signalbox_flow_[\w-]{8}=[0-9a-z]+\.[\w-]{22}; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    )
    expect(answer.headers['cache-control']).toBe('no-store')
  })

  test.each([
    ['format=json', '&format=json', '*/*'],
    ['Accept: application/json', '', 'application/json'],
    ['a type in another case', '', 'Application/JSON, */*'],
  ])('answers JSON for %s, without a cookie for a client that is no page of the service', async (_, query, accept) => {
    const answer = await t
      .browser()
      .get(`${pathOf('github')}?redirect_url=${encodeURIComponent(WEB_APP)}${query}`, accept)
    expect(answer.status).toBe(200)
    expect(new URL(answer.body.data.redirectUrl).origin).toBe('https://github.com')
    expect(answer.headers['set-cookie']).toBeUndefined()
  })

  test('ties JSON that a page of the service fetches to its browser', async () => {
    const url = `${pathOf('github')}?redirect_url=${encodeURIComponent(WEB_APP)}&format=json`
    const answer = await t.browser().get(url, 'application/json', { 'sec-fetch-site': 'same-origin' })
    expect(String(answer.headers['set-cookie'])).toContain('signalbox_flow_')
  })

  test.each(['unknown', 'local', 'dev', '__proto__', 'constructor', 'GOOGLE', 'google%20', 'a'.repeat(256)])(
    'answers 404 provider_unknown for %s and lists no provider',
    async (name) => {
      for (const query of [`?redirect_url=${encodeURIComponent(WEB_APP)}`, '']) {
        const answer = await t.browser().get(`${pathOf(name)}${query}`, 'application/json')
        expect([answer.status, answer.body.code]).toEqual([404, 'provider_unknown'])
        expect(JSON.stringify(answer.body)).not.toMatch(/google|github|apple/i)
      }
    },
  )

  test('needs a redirect_url', async () => {
    const answer = await t.browser().get(pathOf('google'), '*/*')
    expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed'])
  })

  test.each([
    'https://evil.example/',
    'https://app.example.com.evil.example/',
    'https://app.example.com@evil.example/',
    '//evil.example',
    '/relative',
    'javascript:alert(1)',
    'data:text/html,x',
    'https://app.example.com\\@evil.example/',
    'com.example.other:/x',
  ])('refuses the open redirect %s', async (url) => {
    const answer = await t.browser().get(`${pathOf('google')}?redirect_url=${encodeURIComponent(url)}`, '*/*')
    expect([answer.status, answer.body.code]).toEqual([422, 'redirect_url_not_allowed'])
    expect(answer.body.detail).not.toContain('app.example.com')
  })

  test('refuses a code_challenge without a deep link, and one that is no S256', async () => {
    const query = `?redirect_url=${encodeURIComponent(WEB_APP)}&code_challenge=`
    expect((await t.browser().get(`${pathOf('google')}${query}${'a'.repeat(43)}`)).status).toBe(422)
    const link = `?redirect_url=${encodeURIComponent(MOBILE_APP)}&code_challenge=`
    expect((await t.browser().get(`${pathOf('google')}${link}short`)).status).toBe(422)
    const plain = `${link}${'a'.repeat(43)}&code_challenge_method=plain`
    expect((await t.browser().get(`${pathOf('google')}${plain}`)).status).toBe(422)
  })

  test('answers 503 when the provider does not answer, and says no more', async () => {
    await using other = await createSocialApp()
    other.fixture.fakes.gitlab.fault = 'foreign discovery issuer'
    const answer = await other.browser().get(`${pathOf('gitlab')}?redirect_url=${encodeURIComponent(WEB_APP)}`, '*/*')
    expect([answer.status, answer.body.code]).toEqual([503, 'dependency_unavailable'])
    expect(JSON.stringify(answer.body)).not.toContain('issuer')
  })
})

describe.each(Object.keys(PERSONALITIES) as PersonalityName[])('a sign-in with %s', (provider) => {
  test('registers a user once, with an account, and finds the same user the next time', async () => {
    const sub = someone()
    t.seat(provider, { sub, name: 'Ada Lovelace' })
    const first = await t.signIn(t.browser(), provider)
    expect([first.status, first.body.message]).toEqual([200, 'Signed in.'])
    const { data } = first.body
    expect(data).toMatchObject({
      token_type: 'Bearer',
      expires_in: 3600,
      is_new_user: true,
      redirect_url: WEB_APP,
      user: { email: `${sub}@example.com`, name: 'Ada Lovelace' },
      account: { name: 'Ada Lovelace' },
    })
    const second = await t.signIn(t.browser(), provider)
    expect(second.body.data).toMatchObject({ is_new_user: false, user: data.user, account: data.account })
    const who = await t.app.callAs(second.body.data.jwt)('GET', '/api/v3/auth/session')
    expect(who.body.data.user.document_id).toBe(data.user.document_id)
  })

  test('leads a user who declines back, with an audit entry', async () => {
    t.seat(provider, { sub: someone(), denies: true })
    const browser = t.browser()
    const step = await t.reachCallback(browser, provider)
    if (step.method === 'POST') step.url = String((await browser.post(step.url, step.form ?? {})).headers.location)
    const page = await browser.get(step.url)
    expect(page.status).toBe(401)
    expect(page.body).toContain(`href="${WEB_APP}"`)
    expect(await auditOf('login.oauth-callback')).toMatchObject({ outcome: 'failure', detail: { provider } })
  })
})

describe('the new profile', () => {
  test('has the role member, a verified address, and events for user and account', async () => {
    const sub = someone()
    t.seat('google', { sub, name: 'New User', picture: 'https://img.example/a.png' })
    const { data } = (await t.signIn(t.browser(), 'google')).body
    const user = (await t.app.admin('GET', `/api/v3/identity/user/${data.user.document_id}`)).body.data
    const roles = (await t.app.admin('GET', '/api/v3/identity/role?filters=name|eq|member')).body.data
    expect(user.roles).toEqual([roles[0].document_id])
    expect(user.email_verified_at).not.toBeNull()
    expect(data.user.avatar_url).toBe('https://img.example/a.png')
    const events = await t.app.database.db
      .selectFrom('event_occurrence')
      .select(['event', 'account', 'url'])
      .where('resource_id', 'in', [data.user.document_id, data.account.document_id])
      .orderBy('event')
      .execute()
    const [userId, account] = [data.user.document_id, data.account.document_id]
    expect(events).toEqual([
      { event: 'account.create', account, url: `/api/v3/identity/account/${account}` },
      { event: 'user.create', account: null, url: `/api/v3/identity/user/${userId}` },
    ])
  })

  test('keeps the name that Apple says only once', async () => {
    const sub = someone()
    t.seat('apple', { sub, name: 'Grace Hopper' })
    const first = await t.signIn(t.browser(), 'apple')
    const second = await t.signIn(t.browser(), 'apple')
    expect([first.body.data.user.name, second.body.data.user.name]).toEqual(['Grace Hopper', 'Grace Hopper'])
    const list = await t.app.callAs(second.body.data.jwt)('GET', '/api/v3/identity/identity')
    expect(list.body.data).toMatchObject([{ provider: 'apple', name: 'Grace Hopper' }])
  })

  test('is made once by two first sign-ins at the same time', async () => {
    t.seat('google', { sub: someone() })
    const [browser, other] = [t.browser(), t.browser()]
    const steps = [await t.reachCallback(browser, 'google'), await t.reachCallback(other, 'google')]
    const answers = await Promise.all([
      browser.get(redirectUrlOf(steps[0]!), 'application/json'),
      other.get(redirectUrlOf(steps[1]!), 'application/json'),
    ])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(answers.map(({ body }) => body.data.is_new_user).sort()).toEqual([false, true])
  })

  test('is made again for a user whose user was deleted', async () => {
    t.seat('google', { sub: someone() })
    const first = (await t.signIn(t.browser(), 'google')).body.data
    await t.app.admin('DELETE', `/api/v3/identity/user/${first.user.document_id}`)
    const second = (await t.signIn(t.browser(), 'google')).body.data
    expect(second.is_new_user).toBe(true)
    expect(second.user.document_id).not.toBe(first.user.document_id)
  })

  test('says how the user signed in', async () => {
    t.seat('google', { sub: someone() })
    const { jwt } = (await t.signIn(t.browser(), 'google')).body.data
    const claims = JSON.parse(Buffer.from(jwt.split('.')[1], 'base64url').toString())
    expect(claims.amr).toEqual(['fed'])
  })
})

describe('deep links', () => {
  const query = { redirect_url: MOBILE_APP }

  test('get the tokens in their query', async () => {
    t.seat('github', { sub: someone() })
    const answer = await t.signIn(t.browser(), 'github', query)
    expect(answer.status).toBe(302)
    const url = new URL(String(answer.headers.location))
    expect(`${url.protocol}${url.pathname}`).toBe(MOBILE_APP)
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      refresh_token: expect.stringMatching(/^sbr_/),
      token_type: 'Bearer',
      expires_in: '3600',
      is_new_user: 'true',
    })
    const token = url.searchParams.get('access_token') ?? ''
    const { status, body } = await t.app.callAs(token)('GET', '/api/v3/auth/session')
    expect(status).toBe(200)
    const { session, user, account } = body.data
    expect(await auditOf('login.oauth')).toMatchObject({
      ...{ outcome: 'success', session: session.document_id, user: user.document_id, account: account.document_id },
    })
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  })

  test('keep the query that the app gave', async () => {
    t.seat('github', { sub: someone() })
    const answer = await t.signIn(t.browser(), 'github', { redirect_url: `${MOBILE_APP}?flow=7` })
    expect(new URL(String(answer.headers.location)).searchParams.get('flow')).toBe('7')
  })

  test('get error and error_description when the user declines', async () => {
    t.seat('github', { sub: someone(), denies: true })
    const browser = t.browser()
    const step = await t.reachCallback(browser, 'github', query)
    const answer = await browser.get(step.url)
    expect(answer.status).toBe(302)
    const url = new URL(String(answer.headers.location))
    expect(url.protocol).toBe('com.example.app:')
    expect(Object.fromEntries(url.searchParams)).toEqual({
      error: 'access_denied',
      error_description: 'The sign-in was not completed. Start it again.',
    })
  })

  test('get the code of the problem when the profile does not serve', async () => {
    t.seat('facebook', { sub: someone(), email: null })
    const answer = await t.signIn(t.browser(), 'facebook', query)
    expect(new URL(String(answer.headers.location)).searchParams.get('error')).toBe('email_required')
  })
})

describe('the bridge page', () => {
  test('takes the code, hands it to callback-redirect and allows no inline script', async () => {
    t.seat('google', { sub: someone() })
    const browser = t.browser()
    const step = await t.reachCallback(browser, 'google')
    const page = await browser.get(step.url)
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.body).toContain('data-next="/api/v3/auth/login/oauth/google/callback-redirect"')
    expect(page.body).toContain('data-mode="fetch"')
    expect(page.body).not.toMatch(/<script>|onclick|onload|style=/)
    expect(page.headers['content-security-policy']).toMatch(/default-src 'none'.*script-src 'self'/)
    expect(page.headers).toMatchObject({ 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' })
  })

  test('has a link that continues without scripts and ends at the app', async () => {
    t.seat('google', { sub: someone() })
    const browser = t.browser()
    const step = await t.reachCallback(browser, 'google')
    const page = await browser.get(step.url)
    const href = /<a class="button" id="continue" href="([^"]*callback-redirect[^"]*)"/
      .exec(page.body)?.[1]
      ?.replaceAll('&amp;', '&')
    const answer = await browser.get(String(href))
    expect([answer.status, answer.headers.location]).toEqual([302, WEB_APP])
  })

  test('explains itself without scripts when the answer is in the fragment', async () => {
    const browser = t.browser()
    const step = await t.reachCallback(browser, 'google')
    const url = new URL(step.url)
    url.searchParams.delete('code')
    expect((await browser.get(url.href)).body).toContain('<noscript>')
  })

  test('is shown for a callback with nothing in its query, whose whole answer is in the fragment', async () => {
    const page = await t.browser().get(pathOf('google', '/callback'))
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.body).toContain('data-mode="fragment"')
    expect(page.body).toContain('<noscript>')
    expect(page.headers).toMatchObject({ 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' })
  })

  test('opens an app by the browser itself', async () => {
    const browser = t.browser()
    const step = await t.reachCallback(browser, 'google', { redirect_url: MOBILE_APP })
    expect((await browser.get(step.url)).body).toContain('data-mode="open"')
  })

  test('escapes what the query says', async () => {
    const browser = t.browser()
    const step = await t.reachCallback(browser, 'google')
    const url = new URL(step.url)
    url.searchParams.set('code', '"><script>alert(1)</script>')
    const page = await browser.get(url.href)
    expect(page.body).not.toContain('<script>alert')
  })

  test('spends nothing: the code still completes the sign-in', async () => {
    t.seat('google', { sub: someone() })
    const browser = t.browser()
    const step = await t.reachCallback(browser, 'google')
    await browser.get(step.url)
    expect((await browser.get(redirectUrlOf(step), 'application/json')).status).toBe(200)
  })

  test('is an error page for a callback that no browser began', async () => {
    const page = await t.browser().get(`${pathOf('google', '/callback')}?state=x&code=y`)
    expect([page.status, page.headers['content-type']]).toEqual([401, 'text/html; charset=utf-8'])
    expect(page.body).toContain('You were not signed in')
  })

  test('has its script at a path of its own', async () => {
    const script = await t.browser().get('/auth/bridge.js')
    expect([script.status, script.headers['content-type']]).toEqual([200, 'text/javascript; charset=utf-8'])
  })
})

describe('the posted answer of Apple', () => {
  test('is led to the bridge by GET, with the name kept out of the address', async () => {
    t.seat('apple', { sub: someone(), name: 'Hidden Name' })
    const browser = t.browser()
    const step = await t.reachCallback(browser, 'apple')
    const answer = await browser.post(step.url, step.form ?? {})
    expect(answer.status).toBe(303)
    expect(localOf(String(answer.headers.location))).toMatch(/^\/api\/v3\/auth\/login\/oauth\/apple\/callback\?state=/)
    expect(String(answer.headers.location)).not.toMatch(/Hidden|user=/)
  })

  test('needs the cookie of the browser in the step by GET', async () => {
    t.seat('apple', { sub: someone() })
    const step = await t.reachCallback(t.browser(), 'apple')
    const stranger = t.browser()
    const answer = await stranger.post(step.url, step.form ?? {})
    expect((await stranger.get(String(answer.headers.location))).status).toBe(401)
  })

  test('takes no JSON', async () => {
    const answer = await t.app.anonymous('POST', pathOf('apple', '/callback'), '{"user":1}')
    expect([415, 422]).toContain(answer.status)
  })
})
