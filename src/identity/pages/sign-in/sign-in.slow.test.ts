import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../../test/harness/app/app.ts'
import { buildPageVisitor, PAGE_ENV, PAGE_ORIGIN } from '../../../../test/harness/browser/page-visitor.ts'

const PASSWORD = 'correct horse battery'
const EMAIL = 'ada@example.test'
let app: TestApp

beforeAll(async () => {
  const env = { ...PAGE_ENV, AUTH_REDIRECT_ALLOW_LIST: 'https://app.example.test/welcome, com.example.app:' }
  app = await createTestApp({ env })
  await app.admin('POST', '/api/v3/identity/user', { email: EMAIL, name: 'Ada Lovelace', password: PASSWORD })
})
afterAll(() => app[Symbol.asyncDispose]())

/** The failures that the audit log holds of sign-ins and forms, newest first. Equal ones of a minute are one. */
async function readReasons(action: string): Promise<unknown[]> {
  const { rows } = await app.database.pool.query(
    "select detail->>'reason' as reason from audit_log where action = $1 and outcome = 'failure' order by document_id desc",
    [action],
  )
  return rows.map(({ reason }) => reason)
}

async function signIn(query = '') {
  const visitor = buildPageVisitor(app)
  await visitor.get(`/auth/sign-in${query}`)
  return { visitor, reply: await visitor.post('/auth/sign-in', { email: EMAIL, password: PASSWORD }) }
}

describe('the sign-in page', () => {
  test('signs in and shows who the user is', async () => {
    const { visitor, reply } = await signIn()
    expect([reply.status, reply.location]).toEqual([303, '/auth/'])
    const page = await visitor.follow(reply)
    expect(page.body).toContain('Ada Lovelace')
    expect(page.body).toContain(EMAIL)
  })

  test('sets cookies that scripts and other sites do not reach', async () => {
    const { visitor } = await signIn()
    const [session, refresh, browser] = visitor.lastCookies()
    expect(session).toMatch(/^signalbox_session=ey[^;]+; Max-Age=3600; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
    expect(refresh).toMatch(
      /^signalbox_refresh=sbr_[^;]+; Max-Age=2592000; Path=\/auth; HttpOnly; Secure; SameSite=Lax$/,
    )
    expect(browser).toMatch(/^signalbox_browser=[^;]{43}; Max-Age=7776000; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
  })

  test('records the event and the audit entry of a sign-in, like the API', async () => {
    const { reply } = await signIn()
    expect(reply.status).toBe(303)
    const { rows } = await app.database.pool.query(
      "select action, outcome, user_agent from audit_log a join session s on s.document_id = a.session where action = 'login.local' order by a.document_id desc limit 1",
    )
    expect(rows[0]).toMatchObject({ action: 'login.local', outcome: 'success' })
    expect(rows[0].user_agent).toContain('Chrome')
    const events = await app.database.pool.query("select from event_occurrence where event = 'login.local'")
    expect(events.rowCount).toBeGreaterThan(0)
  })

  test.each([
    ['a wrong password', { email: EMAIL, password: 'not-the-password' }, 'wrong_password'],
    ['an unknown address', { email: 'nobody@example.test', password: PASSWORD }, 'unknown_email'],
  ])(
    'answers %s with the form, one sentence and the typed address, and audits the reason',
    async (_, fields, reason) => {
      const visitor = buildPageVisitor(app)
      await visitor.get('/auth/sign-in')
      const reply = await visitor.post('/auth/sign-in', fields)
      expect(reply.status).toBe(401)
      expect(reply.body).toContain('The e-mail address or the password is wrong.')
      expect(reply.body).toContain(`value="${fields.email}"`)
      expect(reply.body).not.toContain(fields.password)
      expect(reply.body).toContain('<title>Error: Sign in · Signalbox</title>')
      expect(visitor.cookies.has('signalbox_session')).toBe(false)
      expect((await readReasons('login.local'))[0]).toBe(reason)
    },
  )

  test('names each empty field and links to it, and looks at no password', async () => {
    const visitor = buildPageVisitor(app)
    await visitor.get('/auth/sign-in')
    const reply = await visitor.post('/auth/sign-in', { email: ' ', password: '' })
    expect(reply.status).toBe(422)
    expect(reply.body).toContain('<a href="#email">Enter your e-mail address</a>')
    expect(reply.body).toContain('<a href="#password">Enter your password</a>')
    expect(reply.body).toMatch(/id="email"[^>]*aria-invalid="true"[^>]*aria-describedby="email-error"/)
  })

  test('keeps the throttle of the API: after five failures the next attempt waits, and the page says how long', async () => {
    const visitor = buildPageVisitor(app)
    await visitor.get('/auth/sign-in')
    const attempt = () => visitor.post('/auth/sign-in', { email: 'storm@example.test', password: 'wrong' })
    for (let count = 0; count < 5; count += 1) expect((await attempt()).status).toBe(401)
    const reply = await attempt()
    expect([reply.status, reply.headers['retry-after']]).toEqual([429, '1'])
    expect(reply.body).toContain('Too many failed sign-ins. Try again in 1 s.')
    app.clock.advance(3_600_000)
  })

  test('a form with text that looks like HTML shows it as text', async () => {
    const visitor = buildPageVisitor(app)
    await visitor.get('/auth/sign-in')
    const reply = await visitor.post('/auth/sign-in', { email: '"><script>alert(1)</script>', password: 'x' })
    expect(reply.body).not.toContain('<script>alert')
    expect(reply.body).toContain('value="&quot;&gt;&lt;script&gt;')
  })

  test('a second sign-in ends the session that the browser had', async () => {
    const { visitor } = await signIn()
    const first = visitor.cookies.get('signalbox_session')!.value
    const other = buildPageVisitor(app)
    for (const [name, cookie] of visitor.cookies) other.cookies.set(name, cookie)
    // A form that was open before the sign-in is not valid any more, so the visitor takes it from another page.
    await other.get('/auth/devices')
    expect((await other.post('/auth/sign-in', { email: EMAIL, password: PASSWORD })).status).toBe(303)
    expect((await app.callAs(first)('GET', '/api/v3/auth/session')).status).toBe(401)
    expect(other.cookies.get('signalbox_session')!.value).not.toBe(first)
  })
})

describe('the place to return to', () => {
  test('is the app that the sign-in began in, which the policy of the form names', async () => {
    const visitor = buildPageVisitor(app)
    const form = await visitor.get(
      '/auth/sign-in?redirect_url=https%3A%2F%2Fapp.example.test%2Fwelcome%3Fa%3D1%26b%3D2',
    )
    expect(form.headers['content-security-policy']).toContain("form-action 'self' https://app.example.test;")
    expect(form.body).toContain('to continue to app.example.test')
    const reply = await visitor.post('/auth/sign-in', { email: EMAIL, password: PASSWORD })
    expect(reply.location).toBe('https://app.example.test/welcome?a=1&b=2')
  })

  test('is remembered after a wrong password', async () => {
    const visitor = buildPageVisitor(app)
    await visitor.get('/auth/sign-in?next=%2Fauth%2Fdevices')
    await visitor.post('/auth/sign-in', { email: EMAIL, password: 'wrong' })
    expect((await visitor.post('/auth/sign-in', { email: EMAIL, password: PASSWORD })).location).toBe('/auth/devices')
  })

  test.each(['https://evil.test/', 'https://app.example.test.evil.test/welcome', 'javascript:alert(1)', '//evil.test'])(
    'is never %s: neither the page nor the form takes it, and neither repeats it',
    async (url) => {
      const visitor = buildPageVisitor(app)
      const page = await visitor.get(`/auth/sign-in?redirect_url=${encodeURIComponent(url)}`)
      expect(page.status).toBe(422)
      expect(page.body).toContain('This link does not work')
      expect(page.body).not.toContain(url)
      await visitor.get('/auth/sign-in')
      const reply = await visitor.post('/auth/sign-in', { email: EMAIL, password: PASSWORD, redirect_url: url })
      expect([reply.status, reply.location]).toEqual([422, undefined])
    },
  )

  test.each(['//evil.test', '/\\evil.test', 'https://evil.test', '/a/..//evil.test'])(
    'within the service is never %s',
    async (next) => {
      const { reply } = await signIn(`?next=${encodeURIComponent(next)}`)
      expect(reply.location).toBe('/auth/')
    },
  )

  test('of a user who is signed in is reached without the form', async () => {
    const { visitor } = await signIn()
    const reply = await visitor.get('/auth/sign-in?redirect_url=https%3A%2F%2Fapp.example.test%2Fwelcome')
    expect([reply.status, reply.location]).toEqual([302, 'https://app.example.test/welcome'])
  })

  test('with a custom scheme has no password form, and the form does not return there', async () => {
    const visitor = buildPageVisitor(app)
    const page = await visitor.get('/auth/sign-in?redirect_url=com.example.app%3A%2Fdone')
    expect(page.body).not.toContain('name="password"')
    await visitor.get('/auth/sign-in')
    const fields = { email: EMAIL, password: PASSWORD, redirect_url: 'com.example.app:/done' }
    expect((await visitor.post('/auth/sign-in', fields)).status).toBe(422)
  })
})

describe('a form', () => {
  const fields = { email: EMAIL, password: PASSWORD }

  test.each([
    ['another site', { origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' }, 'other_site'],
    [
      'another host of the same site',
      { origin: 'https://x.example.test', 'sec-fetch-site': 'same-site' },
      'other_site',
    ],
    ['another site in an old browser', { origin: 'https://evil.test' }, 'other_site'],
    ['a page that hides its origin', { origin: 'null' }, 'other_site'],
    ['a program that names no origin', {}, 'no_origin'],
  ])('of %s is refused before the password is checked, and audited', async (_, headers, reason) => {
    const visitor = buildPageVisitor(app)
    await visitor.get('/auth/sign-in')
    const reply = await visitor.post('/auth/sign-in', fields, headers as Record<string, string>)
    expect(reply.status).toBe(403)
    expect(reply.body).toContain('Open the page again')
    expect(visitor.cookies.has('signalbox_session')).toBe(false)
    expect((await readReasons('login.local'))[0]).toBe(reason)
  })

  test('of the service is taken from a browser that names only its origin', async () => {
    const visitor = buildPageVisitor(app)
    await visitor.get('/auth/sign-in')
    expect((await visitor.post('/auth/sign-in', fields, { origin: PAGE_ORIGIN })).status).toBe(303)
  })

  test('without its token, with a foreign one, or without the cookie is refused', async () => {
    const visitor = buildPageVisitor(app)
    const attacker = buildPageVisitor(app)
    await attacker.get('/auth/sign-in')
    const page = await attacker.get('/auth/sign-in')
    const foreign = /name="form_token" value="([^"]+)"/.exec(page.body)![1]!
    await visitor.get('/auth/sign-in')
    expect((await visitor.post('/auth/sign-in', { ...fields, form_token: '' })).status).toBe(403)
    // As that of a page from before a sign-in: the form is shown again, and nobody is signed in.
    const led = await visitor.post('/auth/sign-in', { ...fields, form_token: foreign })
    expect([led.status, led.location]).toEqual([303, '/auth/sign-in?again=1'])
    expect(visitor.cookies.has('signalbox_session')).toBe(false)
    visitor.cookies.clear()
    expect((await visitor.post('/auth/sign-in', fields)).status).toBe(403)
    expect((await readReasons('login.local')).slice(0, 2)).toEqual(['no_cookie', 'form_token'])
  })

  test('from before the sign-in is not valid after it', async () => {
    const { visitor } = await signIn()
    const reply = await visitor.post('/auth/sign-out')
    expect(reply.status).toBe(403)
    expect((await visitor.get('/auth/')).status).toBe(200)
  })

  test.each([
    ['a repeated field', 'email=a%40b.test&email=c%40d.test&password=x', 422],
    ['a value of 5 KiB', `email=${'a'.repeat(5_000)}&password=x`, 422],
    ['text with U+0000', 'email=a%00&password=x', 400],
    ['bytes that are not UTF-8', 'email=%ff&password=x', 400],
    ['a body over the limit', `email=a&password=${'x'.repeat(70_000)}`, 413],
  ])('with %s is refused with a page that repeats nothing', async (_, payload, status) => {
    const answer = await app.app.server.inject({
      method: 'POST',
      url: '/auth/sign-in',
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
      payload,
    })
    expect(answer.statusCode).toBe(status)
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(answer.body).toContain('Malformed request')
    expect(answer.body).not.toContain('aaaa')
  })

  test('over the strict limit of its address is refused with a page and the time to wait', async () => {
    await using strict = await createTestApp({ env: { ...PAGE_ENV, RATE_LIMIT_STRICT_PER_MINUTE: '1' } })
    const visitor = buildPageVisitor(strict)
    await visitor.get('/auth/sign-in')
    await visitor.post('/auth/sign-in', fields)
    const reply = await visitor.post('/auth/sign-in', fields)
    expect([reply.status, Number(reply.headers['retry-after']) > 0]).toEqual([429, true])
    expect(reply.body).toContain('Too many attempts')
  })

  test('in JSON, which a browser form cannot send, is judged by the same rules', async () => {
    const answer = await app.app.server.inject({ method: 'POST', url: '/auth/sign-in', payload: fields })
    expect(answer.statusCode).toBe(403)
  })
})

describe('an API route', () => {
  test('takes no cookie', async () => {
    const { visitor } = await signIn()
    const jwt = visitor.cookies.get('signalbox_session')!.value
    const read = await visitor.get('/api/v3/auth/session')
    expect(read.status).toBe(401)
    const change = await app.app.server.inject({
      method: 'POST',
      url: '/api/v3/auth/session/revoke',
      headers: { cookie: `signalbox_session=${jwt}` },
    })
    expect(change.statusCode).toBe(401)
    expect((await app.callAs(jwt)('GET', '/api/v3/auth/session')).status).toBe(200)
  })
})
