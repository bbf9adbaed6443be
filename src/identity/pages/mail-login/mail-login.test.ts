import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../../test/harness/app/known-password.ts'
import { beginMailLogin, readMails, readSignInCode } from '../../../../test/harness/browser/mailbox.ts'
import { enrolAppOnPage, readCode, signInOnPage } from '../../../../test/harness/browser/page-user.ts'
import { buildPageVisitor, PAGE_ENV, type PageVisitor } from '../../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { ADDRESS_LIMIT } from '../../address-proof/address-proof.ts'
import { MAIL_LOGIN_LIFETIME_MS } from '../../sign-in/by-mail/mail-login.ts'

const PASSWORD = 'correct horse battery'
const APP = 'https://app.example.test/'
const MAIL = '/auth/sign-in/mail'
let users = 0

const app = await openForFile(
  createTestApp({
    env: {
      ...PAGE_ENV,
      SIGN_IN_BY_MAIL: 'true',
      AUTH_REDIRECT_ALLOW_LIST: 'https://app.example.test',
      TRUST_PROXY: 'loopback',
    },
  }),
)

const verify = (email: string) =>
  app.database.pool.query('update "user" set email_verified_at = now() where email = $1', [email])

async function createUser() {
  users += 1
  const email = `mailed-${users}@example.test`
  const id = await createUserWithPassword(app, { email }, PASSWORD)
  await verify(email)
  return { email, id }
}

/** A browser in a network of its own, so that tests do not meet each other's limits. */
function openBrowser(): PageVisitor {
  users += 1
  const own = { 'x-forwarded-for': `10.77.${users}.1` }
  const visitor = buildPageVisitor(app)
  const form = { origin: PAGE_ENV.BASE_URL, 'sec-fetch-site': 'same-origin' }
  return {
    ...visitor,
    get: (path, headers = {}) => visitor.get(path, { ...own, ...headers }),
    post: (path, fields, headers = form) => visitor.post(path, fields, { ...own, ...headers }),
  }
}

/** Asks for a mail, and opens the page of its code. */
async function ask(visitor: PageVisitor, email: string, query = '') {
  expect((await visitor.get(`${MAIL}${query}`)).status).toBe(200)
  const reply = await visitor.post(MAIL, { email })
  expect([reply.status, reply.location]).toEqual([303, expect.stringMatching(/^\/auth\/sign-in\/mail\/code\?login=/)])
  return visitor.get(reply.location!)
}
const readHidden = (body: string, name: string) =>
  (new RegExp(`name="${name}" value="([^"]*)"`).exec(body)?.[1] ?? '').replaceAll('&amp;', '&')
/** The hidden fields of a form of a code. */
const readGoalFields = (body: string) =>
  Object.fromEntries(['form_token', 'login', 'redirect_url', 'next'].map((name) => [name, readHidden(body, name)]))
const enter = (visitor: PageVisitor, code: string) => visitor.post(`${MAIL}/code`, { code })
async function openLink(visitor: PageVisitor, email: string) {
  const { token } = (await readMails(app, email))[0]!
  return { token, page: await visitor.get(`${MAIL}/link?token=${token}`) }
}
async function readSession(visitor: PageVisitor) {
  const { value } = visitor.cookies.get('signalbox_session')!
  return (await app.callAs(value)('GET', '/api/v3/auth/session')).body.data
}

describe('a sign-in by mail', () => {
  test('leads from the sign-in page by the code to the account page', async () => {
    const [{ email }, visitor] = [await createUser(), openBrowser()]
    expect((await visitor.get('/auth/sign-in')).body).toContain(`href="${MAIL}">Sign in by mail</a>`)
    expect((await ask(visitor, email)).body).toContain('Both are valid for 10 minutes, in this browser.')
    const done = await enter(visitor, await readSignInCode(app, email))
    expect([done.status, done.location]).toEqual([303, '/auth/'])
    expect(await readSession(visitor)).toMatchObject({ session: { amr: ['mail'] }, user: { email } })
  })

  test('is finished by the button of the link too, and opening the link changes nothing', async () => {
    const [{ email }, visitor] = [await createUser(), openBrowser()]
    await ask(visitor, email)
    for (const _scanned of [1, 2]) await openLink(openBrowser(), email)
    const { page } = await openLink(visitor, email)
    expect(page.body).toContain('Sign in with the link of your mail.')
    expect(visitor.cookies.has('signalbox_session')).toBe(false)
    expect((await visitor.post(`${MAIL}/link`)).location).toBe('/auth/')
    expect(await readSession(visitor)).toMatchObject({ user: { email } })
  })

  test('continues at the app that asked, by the code and by the link', async () => {
    for (const way of ['code', 'link']) {
      const [{ email }, visitor] = [await createUser(), openBrowser()]
      const page = await ask(visitor, email, `?redirect_url=${encodeURIComponent(APP)}`)
      expect(page.headers['content-security-policy']).toContain('https://app.example.test')
      if (way === 'link') await openLink(visitor, email)
      const done =
        way === 'code' ? await enter(visitor, await readSignInCode(app, email)) : await visitor.post(`${MAIL}/link`)
      expect([done.status, done.location]).toEqual([303, APP])
    }
  })

  test.each([
    'https://evil.example/',
    'javascript:alert(1)',
    '//evil.example',
    'https://app.example.test.evil.example/',
  ])('takes no return address %s', async (url) => {
    const visitor = openBrowser()
    expect((await visitor.get(`${MAIL}?redirect_url=${encodeURIComponent(url)}`)).status).toBe(422)
    const [{ email }] = [await createUser()]
    await visitor.get(MAIL)
    expect((await visitor.post(MAIL, { email, redirect_url: url })).status).toBe(422)
    await ask(visitor, email, `?next=${encodeURIComponent(url)}`)
    expect((await enter(visitor, await readSignInCode(app, email))).location).toBe('/auth/')
  })

  test('asks for the second factor, and continues where it was to', async () => {
    const user = await signInOnPage(app)
    const { secret } = await enrolAppOnPage(app, user)
    await verify(user.email)
    const visitor = openBrowser()
    await ask(visitor, user.email, '?next=%2Fauth%2Fdevices')
    const step = await enter(visitor, await readSignInCode(app, user.email))
    expect([step.status, step.body.includes('Your mail is confirmed. One more step')]).toEqual([401, true])
    expect(visitor.cookies.has('signalbox_session')).toBe(false)
    const done = await visitor.post('/auth/second-step', { code: readCode(app, secret) })
    expect([done.status, done.location]).toEqual([303, '/auth/devices'])
    expect(await readSession(visitor)).toMatchObject({ session: { amr: ['mail', 'otp', 'mfa'], acr: 'aal2' } })
  })

  test('is in German for a visitor who reads it, and so is the mail', async () => {
    const [{ email }, visitor] = [await createUser(), openBrowser()]
    const german = { 'accept-language': 'de' }
    expect((await visitor.get(MAIL, german)).body).toContain('Per E-Mail anmelden')
    const form = { origin: PAGE_ENV.BASE_URL, 'sec-fetch-site': 'same-origin', ...german }
    await visitor.post(MAIL, { email }, form)
    expect((await readMails(app, email))[0]!.text).toMatch(/Ihr Code ist \d{8}\./)
  })

  test('that another tab outdated leads the second tab to its own app, with the session of the first one', async () => {
    const [{ email }, visitor] = [await createUser(), openBrowser()]
    const second = await ask(visitor, email, `?redirect_url=${encodeURIComponent(APP)}`)
    await ask(visitor, email, '?next=%2Fauth%2Fdevices')
    expect((await enter(visitor, await readSignInCode(app, email))).location).toBe('/auth/devices')
    const session = visitor.cookies.get('signalbox_session')
    const led = await visitor.post(`${MAIL}/code`, { ...readGoalFields(second.body), code: '00000000' })
    expect([led.status, led.location]).toEqual([303, `/auth/sign-in?${new URLSearchParams({ redirect_url: APP })}`])
    expect((await visitor.get(String(led.location))).location).toBe(APP)
    expect(visitor.cookies.get('signalbox_session')).toEqual(session)
  })

  test('keeps its app after a wrong code', async () => {
    const [{ email }, visitor] = [await createUser(), openBrowser()]
    await ask(visitor, email, `?redirect_url=${encodeURIComponent(APP)}`)
    expect((await enter(visitor, 'wrong')).headers['content-security-policy']).toContain('https://app.example.test')
    expect((await enter(visitor, await readSignInCode(app, email))).location).toBe(APP)
  })

  test('revokes the previous session of the browser and gives it another id', async () => {
    const [first, second, visitor] = [await createUser(), await createUser(), openBrowser()]
    await ask(visitor, first.email)
    await enter(visitor, await readSignInCode(app, first.email))
    const { value } = visitor.cookies.get('signalbox_session')!
    const id = visitor.cookies.get('signalbox_browser')!.value
    // Also for a fresh sign-in of the same user, which the page of a confirmation asks for.
    await ask(visitor, second.email)
    expect((await app.callAs(value)('GET', '/api/v3/auth/session')).status).toBe(200)
    expect((await enter(visitor, await readSignInCode(app, second.email))).status).toBe(303)
    expect((await app.callAs(value)('GET', '/api/v3/auth/session')).status).toBe(401)
    expect(visitor.cookies.get('signalbox_browser')!.value).not.toBe(id)
  })
})

describe('a link and a code', () => {
  test('of another browser sign nobody in: neither a thief of the mail, nor whoever was sent it', async () => {
    const [{ email }, visitor, other] = [await createUser(), openBrowser(), openBrowser()]
    await ask(visitor, email)
    const code = await readSignInCode(app, email)
    const login = /name="login" value="([^"]+)"/.exec((await visitor.get(`${MAIL}/code?login=x`)).body)
    expect(login?.[1]).toBe('x')
    const { page } = await openLink(other, email)
    expect(page.status).toBe(200)
    const refused = await other.post(`${MAIL}/link`)
    expect([refused.status, refused.body.includes('This link does not work here')]).toEqual([410, true])
    expect(refused.body).toContain(`<a class="button" href="${MAIL}">Ask for a new mail</a>`)
    // The id of the sign-in alone is of no use in another browser.
    const reply = await visitor.post(MAIL, { email })
    const taken = new URLSearchParams(reply.location!.split('?')[1]).get('login')!
    await other.get(MAIL)
    const own = await readSignInCode(app, email)
    expect((await other.post(`${MAIL}/code`, { login: taken, code: own })).status).toBe(401)
    await other.get(MAIL)
    expect((await other.post(`${MAIL}/code`, { login: taken, code })).status).toBe(401)
    await visitor.get(reply.location!)
    expect((await enter(visitor, own)).status).toBe(303)
  })

  test('are neither counted nor delayed by what another browser tries with the id of the sign-in', async () => {
    const [{ email }, visitor, other] = [await createUser(), openBrowser(), openBrowser()]
    const page = await ask(visitor, email)
    const login = /name="login" value="([^"]+)"/.exec(page.body)![1]!
    await other.get(MAIL)
    for (let tried = 0; tried < 8; tried += 1)
      expect((await other.post(`${MAIL}/code`, { login, code: `0000000${tried}` })).status).toBe(401)
    expect((await enter(visitor, await readSignInCode(app, email))).status).toBe(303)
  })

  test('by the link clear no failures of the password, which were not the reader of the mail', async () => {
    const [{ email }, visitor] = [await createUser(), openBrowser()]
    await ask(visitor, email)
    for (let tried = 0; tried < 5; tried += 1) {
      await visitor.get('/auth/sign-in')
      expect((await visitor.post('/auth/sign-in', { email, password: 'wrong' })).status).toBe(401)
    }
    await openLink(visitor, email)
    expect((await visitor.post(`${MAIL}/link`)).status).toBe(303)
    await visitor.get('/auth/sign-in?again=1')
    expect((await visitor.post('/auth/sign-in', { email, password: 'wrong' })).status).toBe(429)
  })

  test('of the API sign no browser in, and those of a page no client of the API', async () => {
    const [{ email }, visitor] = [await createUser(), openBrowser()]
    const { login, code } = await beginMailLogin(app, email)
    await visitor.get(`${MAIL}/code?login=${login}`)
    expect((await enter(visitor, code)).status).toBe(401)
    await visitor.get(MAIL)
    const { location } = await visitor.post(MAIL, { email })
    const own = new URLSearchParams(location!.split('?')[1]).get('login')
    const body = { login: own, code: await readSignInCode(app, email) }
    expect((await app.anonymous('POST', '/api/v3/auth/login/mail/confirm', body)).status).toBe(401)
    expect((await app.anonymous('POST', '/api/v3/auth/login/mail/confirm', { login, code })).status).toBe(200)
  })

  test('work once, the other one not after it, and neither after ten minutes', async () => {
    const [{ email }, visitor, other] = [await createUser(), openBrowser(), openBrowser()]
    const page = await ask(visitor, email)
    const used = /name="login" value="([^"]+)"/.exec(page.body)![1]!
    const code = await readSignInCode(app, email)
    const { token } = await openLink(visitor, email)
    const replies = await Promise.all([
      visitor.post(`${MAIL}/link`, { token }),
      visitor.post(`${MAIL}/link`, { token }),
    ])
    expect(replies.map(({ status }) => status).sort()).toEqual([303, 410])
    await other.get(MAIL)
    const late = openBrowser()
    await ask(late, email)
    app.clock.advance(MAIL_LOGIN_LIFETIME_MS)
    expect((await enter(late, await readSignInCode(app, email))).status).toBe(401)
    expect((await other.post(`${MAIL}/code`, { login: used, code })).status).toBe(401)
  })

  test('that are wrong or empty show the form again with what is wrong', async () => {
    const [{ email }, visitor] = [await createUser(), openBrowser()]
    await ask(visitor, email)
    const code = await readSignInCode(app, email)
    const wrong = await enter(visitor, code === '00000000' ? '00000001' : '00000000')
    expect([wrong.status, wrong.body.includes('The code is wrong, was used, or has expired.')]).toEqual([401, true])
    const empty = await enter(visitor, ' ')
    expect([empty.status, empty.body.includes('<a href="#code">')]).toEqual([422, true])
    expect((await enter(visitor, code)).status).toBe(303)
  })

  test.each(['', 'unknown', '%3Cscript%3E', 'x'.repeat(4000)])('of the token %j lead to a new one', async (token) => {
    const visitor = openBrowser()
    expect((await visitor.get(`${MAIL}/link?token=${token}`)).status).toBe(200)
    expect([410, 422]).toContain((await visitor.post(`${MAIL}/link`)).status)
  })

  test.each(['a\0@example.test', 'a@example.test\0', '\u202ea@example.test', 'ä@example.test', '"a@b"@example.test'])(
    'asked for with %j have the answer of an address of nobody',
    async (email) => {
      const visitor = openBrowser()
      await visitor.get(MAIL)
      expect([303, 400, 422]).toContain((await visitor.post(MAIL, { email })).status)
      await visitor.get(`${MAIL}/code?login=x`)
      expect([400, 401, 422]).toContain((await enter(visitor, email)).status)
    },
  )

  test('of a browser whose session can be refreshed are asked for after the refresh', async () => {
    const [{ email }, visitor] = [await createUser(), openBrowser()]
    await ask(visitor, email)
    await enter(visitor, await readSignInCode(app, email))
    visitor.cookies.delete('signalbox_session')
    expect((await visitor.get(`${MAIL}?next=%2Fauth%2Fdevices`)).location).toBe(
      `/auth/refresh?${new URLSearchParams({ next: `${MAIL}?next=%2Fauth%2Fdevices` })}`,
    )
  })

  test('from another site are refused', async () => {
    const [{ email }, visitor] = [await createUser(), openBrowser()]
    await ask(visitor, email)
    const other = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
    const code = await readSignInCode(app, email)
    expect((await visitor.post(`${MAIL}/code`, { code }, other)).status).toBe(403)
    await openLink(visitor, email)
    expect((await visitor.post(`${MAIL}/link`, {}, other)).status).toBe(403)
    expect((await visitor.post(MAIL, { email }, other)).status).toBe(403)
    expect((await visitor.post(`${MAIL}/link`)).status).toBe(303)
  })
})

describe('the answers to a known and to an unknown address', () => {
  test('are the same at every step', async () => {
    const known = (await createUser()).email
    const walk = async (email: string) => {
      const visitor = openBrowser()
      const page = await ask(visitor, email)
      const wrong = await enter(visitor, '00000000')
      const plain = (body: string) => body.replaceAll(/value="[^"]*"|[0-9a-f-]{36}/g, '')
      return [page.status, plain(page.body), wrong.status, plain(wrong.body), Object.keys(wrong.headers)]
    }
    expect(await walk(known)).toEqual(await walk('no-user@example.test'))
  })

  test('show no limit of the address, which a browser that signed in before does not share', async () => {
    const { email } = await createUser()
    const own = openBrowser()
    await own.get('/auth/sign-in')
    expect((await own.post('/auth/sign-in', { email, password: PASSWORD })).status).toBe(303)
    await own.get('/auth/')
    await own.post('/auth/sign-out')
    for (let count = 0; count < ADDRESS_LIMIT + 2; count += 1) await ask(openBrowser(), email)
    expect(await readMails(app, email)).toHaveLength(ADDRESS_LIMIT)
    await ask(own, email)
    expect(await readMails(app, email)).toHaveLength(ADDRESS_LIMIT + 1)
    expect((await enter(own, await readSignInCode(app, email))).status).toBe(303)
    const another = (await createUser()).email
    for (let count = 0; count < ADDRESS_LIMIT + 2; count += 1)
      await ask(own.cookies.size > 0 ? openBrowser() : own, another)
    expect(await readMails(app, another)).toHaveLength(ADDRESS_LIMIT)
  })
})

test('the limit of everybody refuses strangers, and no browser in which the user signed in before', async () => {
  const [{ email }, own] = [await createUser(), openBrowser()]
  await own.get('/auth/sign-in')
  await own.post('/auth/sign-in', { email, password: PASSWORD })
  await app.database.pool.query(
    `insert into address_proof (token_hash, purpose, email, network, wide_network, expires_at, created_at)
     select sha256(n::text::bytea), 'sign-in', 'filler', sha256(n::text::bytea), sha256(n::text::bytea), $1, $1
     from generate_series(1, 10000) n`,
    [new Date(app.clock.now() + 60_000)],
  )
  const stranger = openBrowser()
  await stranger.get(MAIL)
  expect((await stranger.post(MAIL, { email })).status).toBe(503)
  await ask(own, email)
  expect((await enter(own, await readSignInCode(app, email))).status).toBe(303)
  await app.database.pool.query(`delete from address_proof where email = 'filler'`)
})

test('where it is switched off, no page offers it, and its address says so', async () => {
  await using off = await createTestApp({ env: PAGE_ENV })
  const visitor = buildPageVisitor(off)
  expect((await visitor.get('/auth/sign-in')).body).not.toContain(MAIL)
  for (const path of [MAIL, `${MAIL}/code?login=x`, `${MAIL}/link?token=x`]) {
    const page = await visitor.get(path)
    expect([page.status, page.body.includes('Sign-in by mail is switched off')]).toEqual([403, true])
  }
  await visitor.get('/auth/sign-in')
  for (const path of [MAIL, `${MAIL}/code`, `${MAIL}/link`])
    expect((await visitor.post(path, { email: 'a@example.test', code: '1', token: 'x' })).status).toBe(403)
})
