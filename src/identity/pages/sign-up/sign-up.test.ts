import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../../test/harness/app/known-password.ts'
import { readMails } from '../../../../test/harness/browser/mailbox.ts'
import { buildPageVisitor, PAGE_ENV, type PageVisitor } from '../../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const PASSWORD = 'correct horse battery'
const APP = 'https://app.example.test/'
let count = 0

const app = await openForFile(
  createTestApp({
    env: { ...PAGE_ENV, SIGN_UP: 'open', AUTH_REDIRECT_ALLOW_LIST: 'https://app.example.test' },
  }),
)

function newAddress(): string {
  count += 1
  return `page-${count}@example.test`
}

async function ask(visitor: PageVisitor, email: string, query = '') {
  expect((await visitor.get(`/auth/sign-up${query}`)).status).toBe(200)
  return visitor.post('/auth/sign-up', { email })
}
const openLink = async (visitor: PageVisitor, email: string) =>
  visitor.get(`/auth/sign-up/confirm?token=${(await readMails(app, email))[0]!.token}`)

describe('the form to sign up', () => {
  test('leads from the sign-in page by a mail to the account page, signed in with the chosen password', async () => {
    const [email, visitor] = [newAddress(), buildPageVisitor(app)]
    expect((await visitor.get('/auth/sign-in')).body).toContain('<a href="/auth/sign-up">Sign up</a>')
    const reply = await ask(visitor, email)
    expect([reply.status, reply.location]).toEqual([303, '/auth/sign-up?sent=1'])
    expect((await visitor.follow(reply)).body).toContain('Check your mail')
    const page = await openLink(visitor, email)
    expect(page.body).toContain(`You sign up as ${email}.`)
    const done = await visitor.post('/auth/sign-up/confirm', { name: 'Ada', password: PASSWORD })
    expect([done.status, done.location]).toEqual([303, '/auth/'])
    expect((await visitor.follow(done)).body).toContain(email)
    const again = buildPageVisitor(app)
    await again.get('/auth/sign-in')
    expect((await again.post('/auth/sign-in', { email, password: PASSWORD })).status).toBe(303)
  })

  test('continues at the app in the browser that asked, and at the account page in another one', async () => {
    for (const isSame of [true, false]) {
      const [email, visitor] = [newAddress(), buildPageVisitor(app)]
      await ask(visitor, email, `?redirect_url=${encodeURIComponent(APP)}`)
      const reader = isSame ? visitor : buildPageVisitor(app)
      const page = await openLink(reader, email)
      const policy = String(page.headers['content-security-policy'])
      expect(policy.includes('https://app.example.test')).toBe(isSame)
      const done = await reader.post('/auth/sign-up/confirm', { password: PASSWORD })
      expect([done.status, done.location]).toEqual([303, isSame ? APP : '/auth/'])
    }
  })

  test('keeps a goal of 2,048 characters and none that is longer', async () => {
    for (const [length, isKept] of [
      [2048, true],
      [2049, false],
    ] as const) {
      const [email, visitor] = [newAddress(), buildPageVisitor(app)]
      const next = `/auth/devices?x=${'x'.repeat(length - APP.length - 16)}`
      await ask(visitor, email, `?${new URLSearchParams({ redirect_url: APP, next })}`)
      await openLink(visitor, email)
      const done = await visitor.post('/auth/sign-up/confirm', { password: PASSWORD })
      expect([length, done.location]).toEqual([length, isKept ? APP : '/auth/'])
    }
  })

  test.each(['https://evil.example/', 'javascript:alert(1)', '//evil.example'])(
    'takes no return address %s',
    async (url) => {
      const visitor = buildPageVisitor(app)
      expect((await visitor.get(`/auth/sign-up?redirect_url=${encodeURIComponent(url)}`)).status).toBe(422)
      await visitor.get('/auth/sign-up')
      expect((await visitor.post('/auth/sign-up', { email: newAddress(), redirect_url: url })).status).toBe(422)
      await ask(visitor, newAddress())
      expect((await visitor.post('/auth/sign-up', { email: newAddress(), next: url })).status).not.toBe(500)
    },
  )

  test.each(['', 'nobody', 'a@b', 'a@evil.example@example.test', `${'a'.repeat(300)}@example.test`])(
    'says that %j is no address',
    async (email) => {
      const visitor = buildPageVisitor(app)
      const reply = await ask(visitor, email)
      expect(reply.status).toBe(422)
      expect(reply.body).toContain('<a href="#email">Enter your e-mail address, such as name@example.com</a>')
    },
  )

  test('has the same answer for the address of a user, who gets another mail', async () => {
    const [email, visitor] = [newAddress(), buildPageVisitor(app)]
    await createUserWithPassword(app, { email }, PASSWORD)
    const known = await ask(visitor, email)
    const unknown = await ask(buildPageVisitor(app), newAddress())
    expect([known.status, known.location, Object.keys(known.headers)]).toEqual([
      unknown.status,
      unknown.location,
      Object.keys(unknown.headers),
    ])
    expect((await readMails(app, email))[0]!.subject).toBe('You already have an account at Signalbox')
  })

  test('is in German for a visitor who reads it, and so is the mail', async () => {
    const [email, visitor] = [newAddress(), buildPageVisitor(app)]
    const german = { 'accept-language': 'de' }
    expect((await visitor.get('/auth/sign-up', german)).body).toContain('Wir senden Ihnen eine E-Mail mit einem Link.')
    await visitor.post(
      '/auth/sign-up',
      { email },
      { ...german, origin: PAGE_ENV.BASE_URL, 'sec-fetch-site': 'same-origin' },
    )
    expect((await readMails(app, email))[0]!.subject).toBe('Registrierung bei Signalbox abschließen')
  })

  test('is refused from another site, and shown to nobody who is signed in', async () => {
    const [email, visitor] = [newAddress(), buildPageVisitor(app)]
    await visitor.get('/auth/sign-up')
    const other = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
    expect((await visitor.post('/auth/sign-up', { email }, other)).status).toBe(403)
    await ask(visitor, email)
    await openLink(visitor, email)
    expect((await visitor.post('/auth/sign-up/confirm', { password: PASSWORD }, other)).status).toBe(403)
    expect((await visitor.post('/auth/sign-up/confirm', { password: PASSWORD })).status).toBe(303)
    expect((await visitor.get('/auth/sign-up')).location).toBe('/auth/')
  })
})

describe('the link of a sign-up', () => {
  test('is not spent by opening it, nor by a password or a name that breaks a rule', async () => {
    const [email, visitor] = [newAddress(), buildPageVisitor(app)]
    await ask(visitor, email)
    for (const _opened of [1, 2]) expect((await openLink(buildPageVisitor(app), email)).status).toBe(200)
    await openLink(visitor, email)
    const common = await visitor.post('/auth/sign-up/confirm', { password: 'password123' })
    expect(common.status).toBe(422)
    expect(common.body).toContain('The password is one of those that are guessed first')
    const name = await visitor.post('/auth/sign-up/confirm', { password: PASSWORD, name: 'a\nb' })
    expect(name.body).toContain(
      '<a href="#name">The name has a control, direction or invisible character. Remove it.</a>',
    )
    expect((await visitor.post('/auth/sign-up/confirm', { password: PASSWORD })).status).toBe(303)
  })

  test.each(['', 'unknown', '%3Cscript%3E'])('%j leads to a new one', async (token) => {
    const visitor = buildPageVisitor(app)
    const page = await visitor.get(`/auth/sign-up/confirm?token=${token}`)
    expect(page.status).toBe(410)
    expect(page.body).toContain('<a class="button" href="/auth/sign-up">Ask for a new link</a>')
    await visitor.get('/auth/sign-up')
    expect((await visitor.post('/auth/sign-up/confirm', { token, password: PASSWORD })).status).toBe(410)
  })

  test('signs out whoever uses the browser, whose session is revoked', async () => {
    const [first, second, visitor] = [newAddress(), newAddress(), buildPageVisitor(app)]
    await ask(buildPageVisitor(app), first)
    await ask(buildPageVisitor(app), second)
    await openLink(visitor, first)
    await visitor.post('/auth/sign-up/confirm', { password: PASSWORD })
    const { value } = visitor.cookies.get('signalbox_session') ?? visitor.cookies.get('__Host-signalbox_session')!
    await openLink(visitor, second)
    expect((await visitor.post('/auth/sign-up/confirm', { password: PASSWORD })).status).toBe(303)
    expect((await visitor.get('/auth/')).body).toContain(second)
    expect((await app.callAs(value)('GET', '/api/v3/auth/session')).status).toBe(401)
  })
})

test('where sign-up is closed, no page offers it, and its address says so', async () => {
  await using closed = await createTestApp({ env: PAGE_ENV })
  const visitor = buildPageVisitor(closed)
  expect((await visitor.get('/auth/sign-in')).body).not.toContain('sign-up')
  const page = await visitor.get('/auth/sign-up')
  expect([page.status, page.body.includes('Sign-up is closed')]).toEqual([403, true])
  await visitor.get('/auth/sign-in')
  expect((await visitor.post('/auth/sign-up', { email: newAddress() })).status).toBe(403)
  expect((await visitor.get('/auth/sign-up/confirm?token=x')).status).toBe(403)
})

test('an address of another domain gets its message', async () => {
  await using limited = await createTestApp({
    env: { ...PAGE_ENV, SIGN_UP: 'open', SIGN_UP_EMAIL_DOMAINS: 'rail.example' },
  })
  const visitor = buildPageVisitor(limited)
  await visitor.get('/auth/sign-up')
  const reply = await visitor.post('/auth/sign-up', { email: 'a@example.test' })
  expect([reply.status, reply.body.includes('Addresses of this domain cannot sign up here')]).toEqual([422, true])
})
