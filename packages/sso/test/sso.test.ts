import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createSso, type SsoEvent, type SsoOptions } from '../src/sso.ts'
import { buildJwt, type ServiceDouble, startServiceDouble } from './service-double.ts'

const ORIGIN = 'https://b.example.test'
const NOW_SECONDS = 1_790_000_000
const SESSION = buildJwt({ sub: 'ada', exp: NOW_SECONDS + 3600 })
const OTHER_SESSION = buildJwt({ sub: 'bob', exp: NOW_SECONDS + 3600 })
const TOKEN = buildJwt({ aud: ORIGIN, sub: 'ada' })

let service: ServiceDouble
const events: SsoEvent[] = []

beforeAll(async () => {
  service = await startServiceDouble()
})
afterAll(() => service[Symbol.asyncDispose]())
beforeEach(() => {
  events.length = 0
  service.calls.length = 0
  service.answer = { status: 200, body: JSON.stringify({ jwt: SESSION }) }
})

const build = (more: Partial<SsoOptions> = {}) =>
  createSso({
    service: service.url,
    origin: ORIGIN,
    now: () => NOW_SECONDS * 1000,
    onEvent: (event) => events.push(event),
    ...more,
  })

const land = (path: string, headers: Record<string, string> = {}, more: Partial<SsoOptions> = {}) =>
  build(more).handle(new Request(`${ORIGIN}${path}`, { headers }))

const locationOf = (answer: Response | undefined) => answer?.headers.get('location')
const cookiesOf = (answer: Response | undefined) => answer?.headers.getSetCookie() ?? []
const sessionCookie = (jwt: string) => ({ cookie: `__Host-signalbox_session=${jwt}` })

/** Answer of every failed landing, at `path`. */
function expectFailed(answer: Response | undefined, path: string): void {
  expect(answer?.status).toBe(303)
  expect(locationOf(answer)).toBe(`${ORIGIN}${path}`)
  expect(cookiesOf(answer).filter((cookie) => cookie.includes('_session'))).toEqual([])
  expect(answer?.headers.get('cache-control')).toBe('no-store')
}

describe('a landing', () => {
  test('exchanges the token server to server, sets the cookie and redirects to the clean URL', async () => {
    const answer = await land(`/landing?tab=1&sso_token=${TOKEN}&sso_error=exchange_failed&q=a%20b+c`)
    expect(answer?.status).toBe(303)
    expect(locationOf(answer)).toBe(`${ORIGIN}/landing?tab=1&q=a%20b+c`)
    expect(cookiesOf(answer)[0]).toBe(
      `__Host-signalbox_session=${SESSION}; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure`,
    )
    expect(service.calls).toMatchObject([
      {
        path: '/api/v3/auth/sso/exchange',
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: ORIGIN },
        body: { token: TOKEN },
      },
    ])
    expect(events).toEqual([{ kind: 'arrived', userId: 'ada', endedOtherUser: false }])
  })

  test('answers without a body, a cache, a referrer and an index', async () => {
    const answer = await land(`/?sso_token=${TOKEN}`)
    expect(await answer?.text()).toBe('')
    expect(Object.fromEntries(answer?.headers ?? [])).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-robots-tag': 'noindex',
    })
    expect(JSON.stringify([...(answer?.headers ?? [])])).not.toContain(TOKEN)
  })

  test('continues at the path of the token', async () => {
    const token = buildJwt({ next: '/orders?page=2' })
    expect(locationOf(await land(`/landing?sso_token=${token}`))).toBe(`${ORIGIN}/orders?page=2`)
  })

  test.each(['//evil.test', 'https://evil.test/', '/\\evil.test', '/a/..//evil.test', '/%2f/evil.test', 7, null])(
    'continues at the clean URL when the path of the token is %j',
    async (next) => {
      expect(locationOf(await land(`/landing?sso_token=${buildJwt({ next })}`))).toBe(`${ORIGIN}/landing`)
    },
  )

  test('stays on its own origin when its path begins with two slashes', async () => {
    expect(locationOf(await land(`//evil.test/?sso_token=${TOKEN}`))).toBe(`${ORIGIN}//evil.test/`)
    service.answer = { status: 401, body: '{}' }
    expect(locationOf(await land(`//evil.test/?sso_token=${TOKEN}`))).toBe(
      `${ORIGIN}//evil.test/?sso_error=exchange_failed`,
    )
  })

  test('behind a proxy redirects to the public origin', async () => {
    const answer = await build().handle(new Request(`http://10.0.0.7:3000/?sso_token=${TOKEN}`))
    expect(locationOf(answer)).toBe(`${ORIGIN}/`)
  })

  test('over http on loopback sets a cookie without Secure and without a prefix', async () => {
    const answer = await land(`/?sso_token=${TOKEN}`, {}, { origin: 'http://b.localhost:4002' })
    expect(cookiesOf(answer)[0]).toBe(`signalbox_session=${SESSION}; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax`)
  })

  test('passes on the user agent, and the address of the visitor where the app knows it', async () => {
    const visitor = { 'user-agent': 'Browser/1' }
    await land(`/?sso_token=${TOKEN}`, visitor, { clientAddress: () => '203.0.113.7' })
    await land(`/?sso_token=${TOKEN}`, visitor)
    expect(service.calls.map(({ headers }) => [headers['user-agent'], headers['x-forwarded-for']])).toEqual([
      ['Browser/1', '203.0.113.7'],
      ['Browser/1', undefined],
    ])
  })

  test('sends no cookie of the visitor to the service', async () => {
    await land(`/?sso_token=${TOKEN}`, { cookie: 'other=1' })
    expect(service.calls[0]?.headers.cookie).toBeUndefined()
  })

  test.each([
    ['another path', '/orders?sso_tokens=x'],
    ['a path with an error alone', '/?sso_error=exchange_failed'],
  ])('is not %s', async (_name, path) => {
    expect(await land(path)).toBeUndefined()
    expect(service.calls).toEqual([])
  })

  test.each(['POST', 'HEAD', 'PUT', 'OPTIONS'])('is no %s', async (method) => {
    const request = new Request(`${ORIGIN}/?sso_token=${TOKEN}`, { method })
    expect(await build().handle(request)).toBeUndefined()
    expect(service.calls).toEqual([])
  })
})

describe('a landing that fails redirects to the clean URL with an error', () => {
  test.each<[string, ServiceDouble['answer'], object]>([
    ['a refusal', { status: 401, body: '{"code":"sso_exchange_failed"}' }, { reason: 'refused', status: 401 }],
    ['a spent rate limit', { status: 429, body: '{}' }, { reason: 'refused', status: 429 }],
    ['an error of the service', { status: 500, body: 'oops' }, { reason: 'refused', status: 500 }],
    ['an answer without a JWT', { status: 200, body: '{}' }, { reason: 'answer' }],
    ['an answer that is no JSON', { status: 200, body: '<html>' }, { reason: 'answer' }],
    ['an answer that is null', { status: 200, body: 'null' }, { reason: 'answer' }],
    [
      'a JWT with a line end',
      { status: 200, body: JSON.stringify({ jwt: `${SESSION}\r\nx: y` }) },
      { reason: 'answer' },
    ],
    [
      'a JWT with an attribute',
      { status: 200, body: JSON.stringify({ jwt: `${SESSION}; Domain=x` }) },
      { reason: 'answer' },
    ],
    [
      'a JWT without a user',
      { status: 200, body: JSON.stringify({ jwt: buildJwt({ exp: 1 }) }) },
      { reason: 'answer' },
    ],
    ['a redirect', { status: 302, body: '', headers: { location: 'https://evil.test/' } }, { reason: 'network' }],
    ['a closed connection', 'reset', { reason: 'network' }],
  ])('after %s', async (_name, answer, expected) => {
    service.answer = answer
    expectFailed(await land(`/landing?a=1&sso_token=${TOKEN}`), '/landing?a=1&sso_error=exchange_failed')
    expect(events).toMatchObject([{ kind: 'failed', ...expected }])
  })

  test('when the service does not answer in time', async () => {
    // One of its own, which gets the call however late: another test counts its calls.
    await using hanging = await startServiceDouble()
    hanging.answer = 'hang'
    const more = { service: hanging.url, timeoutMs: 50 }
    expectFailed(await land(`/?sso_token=${TOKEN}`, {}, more), '/?sso_error=exchange_failed')
  })

  test('when the service cannot be reached', async () => {
    const answer = await land(`/?sso_token=${TOKEN}`, {}, { service: 'http://127.0.0.1:1' })
    expectFailed(answer, '/?sso_error=exchange_failed')
  })

  test('when the URL holds two tokens, of which none is used', async () => {
    expectFailed(await land(`/?sso_token=${TOKEN}&sso_token=${TOKEN}`), '/?sso_error=exchange_failed')
    expect(service.calls).toEqual([])
  })

  test('and keeps a session that the visitor has', async () => {
    service.answer = { status: 401, body: '{}' }
    const answer = await land(`/?sso_token=${TOKEN}`, sessionCookie(SESSION))
    expectFailed(answer, '/?sso_error=exchange_failed')
    expect(service.calls).toHaveLength(1)
  })

  test('also when the log of the app throws or rejects', async () => {
    service.answer = { status: 401, body: '{}' }
    for (const onEvent of [
      () => {
        throw new Error('disk full')
      },
      () => Promise.reject(new Error('disk full')),
    ])
      expectFailed(await land(`/?sso_token=${TOKEN}`, {}, { onEvent }), '/?sso_error=exchange_failed')
  })
})

describe('the guard against loops', () => {
  const guardOf = (answer: Response | undefined) =>
    cookiesOf(answer).find((cookie) => cookie.startsWith('__Host-signalbox_landings='))

  test('counts landings in a cookie of five seconds and stops at the third', async () => {
    const seen: string[] = []
    let cookie = ''
    for (let landing = 0; landing < 4; landing += 1) {
      const answer = await land(`/?sso_token=${TOKEN}`, { cookie })
      const guard = guardOf(answer)
      if (guard) {
        expect(guard).toMatch(/; Path=\/; Max-Age=5; HttpOnly; SameSite=Lax; Secure$/)
        cookie = guard.split(';')[0] ?? ''
      }
      seen.push(locationOf(answer) ?? '')
    }
    expect(seen).toEqual([`${ORIGIN}/`, `${ORIGIN}/`, `${ORIGIN}/`, `${ORIGIN}/?sso_error=exchange_failed`])
    expect(service.calls).toHaveLength(3)
    expect(events.at(-1)).toEqual({ kind: 'failed', reason: 'loop' })
  })

  test('counts failures too', async () => {
    service.answer = { status: 401, body: '{}' }
    expect(guardOf(await land(`/?sso_token=${TOKEN}`))).toContain('__Host-signalbox_landings=1;')
  })

  test('says whether a visitor may be sent to the authentication app', () => {
    const { mayStart } = build()
    const visit = (path: string, landings?: number) =>
      mayStart(
        new Request(`${ORIGIN}${path}`, {
          headers: landings === undefined ? {} : { cookie: `__Host-signalbox_landings=${landings}` },
        }),
      )
    expect([visit('/'), visit('/', 2), visit('/', 3), visit('/?sso_error=exchange_failed')]).toEqual([
      true,
      true,
      false,
      false,
    ])
  })

  test.each(['-1', '99', 'x', '', '1e9'])('takes the value %j for no landing', async (value) => {
    const answer = await land(`/?sso_token=${TOKEN}`, { cookie: `__Host-signalbox_landings=${value}` })
    expect(locationOf(answer)).toBe(`${ORIGIN}/`)
  })
})

describe('a request that is no navigation does not use the token up', () => {
  test.each([
    ['a prefetch', { 'sec-purpose': 'prefetch' }, 503],
    ['a prerendering', { 'sec-purpose': 'prefetch;prerender' }, 503],
    ['a prefetch of an older browser', { purpose: 'prefetch' }, 503],
    ['a prefetch of Firefox', { 'x-moz': 'prefetch' }, 503],
    ['a preview', { purpose: 'preview' }, 503],
    ['an image', { 'sec-fetch-dest': 'image' }, 403],
    ['a frame', { 'sec-fetch-dest': 'iframe' }, 403],
    ['a script', { 'sec-fetch-dest': 'script' }, 403],
    ['a fetch', { 'sec-fetch-dest': 'empty' }, 403],
  ])('%s', async (_name, headers, status) => {
    const answer = await land(`/?sso_token=${TOKEN}`, headers as Record<string, string>)
    expect(answer?.status).toBe(status)
    expect(answer?.headers.get('cache-control')).toBe('no-store')
    expect(cookiesOf(answer)).toEqual([])
    expect(service.calls).toEqual([])
    expect(events).toMatchObject([{ kind: 'ignored' }])
  })

  test('a navigation with Fetch Metadata is one', async () => {
    const headers = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'cross-site' }
    expect((await land(`/?sso_token=${TOKEN}`, headers))?.status).toBe(303)
  })
})

describe('a visitor who has a session', () => {
  const click = (headers: Record<string, string>) =>
    build().handle(
      new Request(`${ORIGIN}/?sso_token=${TOKEN}`, {
        method: 'POST',
        headers: { ...sessionCookie(OTHER_SESSION), ...headers },
      }),
    )

  test('names both users and takes the style of the app, where the app says how', async () => {
    const names: Record<string, string> = { ada: 'Ada <ada@example.com>', bob: 'Bob' }
    const style = 'h1{color:#0b7a5a}'
    const question = { nameUser: async (userId: string) => names[userId], style }
    const request = new Request(`${ORIGIN}/?sso_token=${TOKEN}`, { headers: sessionCookie(OTHER_SESSION) })
    const answer = await build({ question }).handle(request)
    const page = (await answer?.text()) ?? ''
    expect(page).toContain('<h1>Continue as Ada &lt;ada@example.com&gt;?</h1>')
    expect(page).toContain('You are signed in here as Bob.')
    expect(page).toContain('>Stay Bob</a>')
    const hash = createHash('sha256')
      .update(/<style>(.*)<\/style>/.exec(page)?.[1] ?? '')
      .digest('base64')
    expect(page).toContain(`${style}</style>`)
    expect(answer?.headers.get('content-security-policy')).toContain(`style-src 'sha256-${hash}'`)
    expect([service.calls, events]).toEqual([[], [{ kind: 'asked' }]])
  })

  test.each([() => undefined, () => Promise.reject(new Error('no directory')), () => ''])(
    'names nobody whom the app does not know: %#',
    async (nameUser) => {
      const request = new Request(`${ORIGIN}/?sso_token=${TOKEN}`, { headers: sessionCookie(OTHER_SESSION) })
      const answer = await build({ question: { nameUser } }).handle(request)
      expect(await answer?.text()).toContain('<h1>Continue as another user?</h1>')
    },
  )

  test('refuses a style that would end the element of the style', () => {
    expect(() => build({ question: { style: '</style><script>' } })).toThrow('question.style')
  })

  test('of another user is asked first: the token stays unused, and the page repeats no text of the URL as HTML', async () => {
    const answer = await land(`/?q="><script>&sso_token=${TOKEN}`, sessionCookie(OTHER_SESSION))
    expect([answer?.status, answer?.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(answer?.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    const page = (await answer?.text()) ?? ''
    const style = /<style>(.*)<\/style>/.exec(page)?.[1] ?? ''
    const hash = createHash('sha256').update(style).digest('base64')
    expect(answer?.headers.get('content-security-policy')).toContain(`style-src 'sha256-${hash}'`)
    expect(page).toContain('<form method="post"><button type="submit">Continue as the other user</button></form>')
    expect(page).not.toContain('<script>')
    expect(page).not.toContain(TOKEN)
    expect([cookiesOf(answer), service.calls, events]).toEqual([[], [], [{ kind: 'asked' }]])
  })

  test('of another user gets the new one by the click, and the old one is ended at the service', async () => {
    const answer = await click({ 'sec-fetch-site': 'same-origin' })
    expect(cookiesOf(answer)[0]).toContain(SESSION)
    expect(service.calls[1]).toMatchObject({
      path: '/api/v3/auth/session/revoke',
      headers: { authorization: `Bearer ${OTHER_SESSION}` },
      body: { family: false },
    })
    expect(events).toEqual([{ kind: 'arrived', userId: 'ada', endedOtherUser: true }])
  })

  test('of another user keeps it when another site posts to the landing', async () => {
    expect(await click({ 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' })).toBeUndefined()
    expect(await click({ origin: 'null' })).toBeUndefined()
    expect(service.calls).toEqual([])
  })

  test.each([
    ['of the same user', buildJwt({ sub: 'ada', exp: NOW_SECONDS + 60 })],
    ['that has expired', buildJwt({ sub: 'bob', exp: NOW_SECONDS })],
    ['that is no JWT', 'bob'],
  ])('%s ends none', async (_name, jwt) => {
    await land(`/?sso_token=${TOKEN}`, sessionCookie(jwt))
    expect(service.calls).toHaveLength(1)
    expect(events).toEqual([{ kind: 'arrived', userId: 'ada', endedOtherUser: false }])
  })
})

describe('reading the token', () => {
  const read = (cookie: string) => build().readToken(new Request(ORIGIN, { headers: { cookie } }))

  test('returns the JWT of the cookie while it is valid', () => {
    expect(read(`a=b; __Host-signalbox_session=${SESSION}; c=d`)).toBe(SESSION)
  })

  test.each([
    ['no cookie', ''],
    ['another name', `signalbox_session=${SESSION}`],
    ['an expired JWT', `__Host-signalbox_session=${buildJwt({ sub: 'ada', exp: NOW_SECONDS })}`],
    ['a text', '__Host-signalbox_session=x'],
    ['a cookie without a value', '__Host-signalbox_session'],
  ])('returns nothing for %s', (_name, cookie) => {
    expect(read(cookie)).toBeUndefined()
  })
})

describe('a sign-out', () => {
  const signOut = (headers: Record<string, string>, next?: string, method = 'POST') =>
    build().signOut(new Request(`${ORIGIN}/sign-out`, { method, headers }), next)
  const own = { origin: ORIGIN, ...sessionCookie(SESSION) }
  const removed = '__Host-signalbox_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure'

  test('ends the whole family at the service, removes the cookie and redirects', async () => {
    const answer = await signOut(own, '/goodbye')
    expect([answer.status, locationOf(answer)]).toEqual([303, `${ORIGIN}/goodbye`])
    expect(cookiesOf(answer)).toEqual([removed])
    expect(service.calls).toMatchObject([
      {
        path: '/api/v3/auth/session/revoke',
        headers: { authorization: `Bearer ${SESSION}` },
        body: { family: true },
      },
    ])
    expect(events).toEqual([{ kind: 'signed_out', isRevoked: true }])
  })

  test('of a session that has ended already is done', async () => {
    service.answer = { status: 401, body: '{}' }
    expect(locationOf(await signOut(own))).toBe(`${ORIGIN}/`)
  })

  test('without a session only removes the cookie', async () => {
    const answer = await signOut({ origin: ORIGIN })
    expect(cookiesOf(answer)).toEqual([removed])
    expect(service.calls).toEqual([])
  })

  test('says so when the service cannot be reached, and removes the cookie', async () => {
    service.answer = 'reset'
    const answer = await signOut(own)
    expect(locationOf(answer)).toBe(`${ORIGIN}/?sso_error=sign_out_failed`)
    expect(cookiesOf(answer)).toEqual([removed])
    expect(events).toEqual([{ kind: 'signed_out', isRevoked: false }])
  })

  test('continues on its own origin only', async () => {
    expect(locationOf(await signOut(own, '//evil.test'))).toBe(`${ORIGIN}/`)
  })

  test.each<[string, Record<string, string>, number]>([
    ['from another origin', { ...own, origin: 'https://evil.test' }, 403],
    ['from another site', { ...own, 'sec-fetch-site': 'cross-site' }, 403],
    ['from a sibling of the site', { ...own, 'sec-fetch-site': 'same-site' }, 403],
    ['without an origin', sessionCookie(SESSION), 403],
    [
      'from a page without a referrer',
      { ...sessionCookie(SESSION), origin: 'null', 'sec-fetch-site': 'same-origin' },
      303,
    ],
  ])('%s', async (_name, headers, status) => {
    expect((await signOut(headers)).status).toBe(status)
    expect(service.calls).toHaveLength(status === 303 ? 1 : 0)
  })

  test('by a link is a 405', async () => {
    const answer = await signOut(own, '/', 'GET')
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
  })
})

describe('a wrong option stops the start', () => {
  test.each<[string, Partial<SsoOptions>]>([
    ['an origin with a path', { origin: `${ORIGIN}/` }],
    ['an origin in upper case', { origin: ORIGIN.toUpperCase() }],
    ['an origin over http that is not loopback', { origin: 'http://b.example.test' }],
    ['an origin that is no URL', { origin: 'b.example.test' }],
    ['a service that is no URL', { service: 'id.example.test' }],
    ['a service with a query', { service: 'https://id.example.test/?a=b' }],
    ['a name that no cookie has', { cookieName: 'my session' }],
  ])('%s', (_name, options) => {
    expect(() => build(options)).toThrow(TypeError)
  })
})
