import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../../test/harness/app/known-password.ts'
import { readMails } from '../../../../test/harness/browser/mailbox.ts'
import { buildPageVisitor, PAGE_ENV, type PageVisitor } from '../../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const PASSWORD = 'correct horse battery'
const NEXT_PASSWORD = 'staple of another stable'
let users = 0

const app = await openForFile(createTestApp({ env: PAGE_ENV }))

async function createUser() {
  users += 1
  const email = `reader-${users}@example.test`
  return { email, id: await createUserWithPassword(app, { email }, PASSWORD) }
}

async function signIn(email: string, password = PASSWORD) {
  const visitor = buildPageVisitor(app)
  await visitor.get('/auth/sign-in')
  return { visitor, reply: await visitor.post('/auth/sign-in', { email, password }) }
}

/** The token of the newest mail to an address. */
async function readToken(email: string): Promise<string> {
  return (await readMails(app, email)).at(0)!.token
}

async function askForLink(visitor: PageVisitor, email: string) {
  await visitor.get('/auth/forgot')
  return visitor.follow(await visitor.post('/auth/forgot', { email }))
}

describe('an address that is not confirmed', () => {
  test('gets a link by the account page, which offers none once it is confirmed', async () => {
    const { email, id } = await createUser()
    const { visitor } = await signIn(email)
    expect((await visitor.get('/auth/')).body).toContain('Not confirmed yet')
    const reply = await visitor.post('/auth/verify/request')
    expect([reply.status, reply.location]).toEqual([303, '/auth/?notice=link-sent'])
    expect((await visitor.follow(reply)).body).toContain('a mail with a link is on its way')
    const { rows } = await app.database.pool.query(
      'select event, resource_id from event_occurrence order by document_id desc limit 1',
    )
    expect(rows).toEqual([{ event: 'email.request-verification', resource_id: id }])
    await visitor.get(`/auth/verify?token=${await readToken(email)}`)
    expect((await visitor.post('/auth/verify')).body).toContain('Address confirmed')
    expect((await visitor.get('/auth/')).body).not.toContain('Not confirmed yet')
  })

  test('gets no link by the form of a visitor who is not signed in', async () => {
    const { email } = await createUser()
    const { visitor } = await signIn(email)
    await visitor.get('/auth/')
    visitor.cookies.delete('signalbox_session')
    visitor.cookies.delete('signalbox_refresh')
    expect((await visitor.post('/auth/verify/request')).location).toMatch(/^\/auth\/sign-in/)
    expect(await readMails(app, email)).toEqual([])
  })
})

describe('a forgotten password', () => {
  test('is replaced by the link of a mail, which ends every session and works once', async () => {
    const { email } = await createUser()
    const { visitor: elsewhere } = await signIn(email)
    const visitor = buildPageVisitor(app)
    expect((await visitor.get('/auth/sign-in')).body).toContain('href="/auth/forgot"')
    expect((await askForLink(visitor, email)).body).toContain('Check your mail')
    const link = `/auth/reset?token=${await readToken(email)}`
    await visitor.get(link)
    const reply = await visitor.post('/auth/reset', { password: NEXT_PASSWORD })
    expect([reply.status, reply.location]).toEqual([303, '/auth/?notice=password-set'])
    expect((await visitor.follow(reply)).body).toContain('Your new password is set, and you are signed in.')
    expect((await elsewhere.get('/auth/')).location).toContain('/auth/refresh')
    expect((await signIn(email, NEXT_PASSWORD)).reply.status).toBe(303)
    expect((await visitor.get(link)).status).toBe(410)
  })

  test('of an unknown address gets the same answer, and an empty address its message', async () => {
    const visitor = buildPageVisitor(app)
    expect((await askForLink(visitor, 'nobody@example.test')).body).toContain('Check your mail')
    await visitor.get('/auth/forgot')
    const reply = await visitor.post('/auth/forgot', { email: ' ' })
    expect([reply.status, reply.body.includes('<a href="#email">Enter your e-mail address</a>')]).toEqual([422, true])
  })

  test('is not replaced by one that breaks a rule: the form names it and keeps its link', async () => {
    const { email } = await createUser()
    const visitor = buildPageVisitor(app)
    await askForLink(visitor, email)
    await visitor.get(`/auth/reset?token=${await readToken(email)}`)
    const short = await visitor.post('/auth/reset', { password: 'short' })
    expect(short.status).toBe(422)
    expect(short.body).toContain('The password must have 8 to 256 characters.')
    const common = await visitor.post('/auth/reset', { password: 'password123' })
    expect(common.body).toContain('The password is one of those that are guessed first')
    expect((await visitor.post('/auth/reset', { password: NEXT_PASSWORD })).status).toBe(303)
  })

  test.each(['', 'unknown', '%3Cscript%3E'])('with the link %j leads to a new one', async (token) => {
    const visitor = buildPageVisitor(app)
    const page = await visitor.get(`/auth/reset?token=${token}`)
    expect(page.status).toBe(410)
    expect(page.body).toContain('This link no longer works')
    expect(page.body).toContain('<a class="button" href="/auth/forgot">Ask for a new link</a>')
    await visitor.get('/auth/sign-in')
    expect((await visitor.post('/auth/reset', { token, password: NEXT_PASSWORD })).status).toBe(410)
  })
})

test('where no mail is sent, the sign-in page offers no link', async () => {
  await using silent = await createTestApp({ env: { ...PAGE_ENV, APP_ENV: 'certification' } })
  const visitor = buildPageVisitor(silent)
  expect((await visitor.get('/auth/sign-in')).body).not.toContain('/auth/forgot')
  await visitor.get('/auth/forgot')
  expect((await visitor.post('/auth/forgot', { email: 'a@example.test' })).status).toBe(503)
})

describe('a verification link', () => {
  test('verifies the address by its button, and not by opening it', async () => {
    const { email, id } = await createUser()
    const { visitor } = await signIn(email)
    const jwt = visitor.cookies.get('signalbox_session')!.value
    await app.callAs(jwt)('POST', '/api/v3/auth/email/verify/request')
    const isVerified = async () =>
      (await app.database.pool.query('select email_verified_at from "user" where document_id = $1', [id])).rows[0]
        .email_verified_at !== null
    await visitor.get(`/auth/verify?token=${await readToken(email)}`)
    expect(await isVerified()).toBe(false)
    expect((await visitor.post('/auth/verify')).body).toContain('Address confirmed')
    expect(await isVerified()).toBe(true)
    expect((await visitor.post('/auth/verify', { token: 'unknown' })).status).toBe(410)
  })
})

describe('changing the password', () => {
  test('needs the present one, ends the other sessions and keeps this one', async () => {
    const { email } = await createUser()
    const { visitor } = await signIn(email)
    const { visitor: other } = await signIn(email)
    await visitor.get('/auth/password')
    const wrong = await visitor.post('/auth/password', { current: 'not the password', password: NEXT_PASSWORD })
    expect(wrong.status).toBe(422)
    expect(wrong.body).toContain('<a href="#current">This is not your current password</a>')
    const reply = await visitor.post('/auth/password', { current: PASSWORD, password: NEXT_PASSWORD })
    expect((await visitor.follow(reply)).body).toContain('Your password is changed.')
    expect((await other.get('/auth/')).location).toContain('/auth/refresh')
    expect((await signIn(email, NEXT_PASSWORD)).reply.status).toBe(303)
  })

  test('names an empty field and a broken rule, and audits the attempt', async () => {
    const { email, id } = await createUser()
    const { visitor } = await signIn(email)
    await visitor.get('/auth/password')
    expect((await visitor.post('/auth/password', { current: '', password: '' })).body).toContain(
      '<a href="#current">Enter your current password</a>',
    )
    expect((await visitor.post('/auth/password', { current: PASSWORD, password: email })).body).toContain(
      '<a href="#password">The password is made of your name',
    )
    const { rows } = await app.database.pool.query(
      `select count(*)::int as refused from audit_log where action = 'password.change' and outcome = 'failure' and "user" = $1`,
      [id],
    )
    expect(rows).toEqual([{ refused: 2 }])
  })

  test('without a session asks to sign in', async () => {
    const visitor = buildPageVisitor(app)
    expect((await visitor.get('/auth/password')).location).toBe('/auth/sign-in?next=%2Fauth%2Fpassword')
    await visitor.get('/auth/sign-in')
    expect((await visitor.post('/auth/password', { current: 'a', password: 'b' })).status).toBe(303)
  })
})

test('the mails of development are a page for a browser, with links to follow, and data for a program', async () => {
  const { email } = await createUser()
  const visitor = buildPageVisitor(app)
  await askForLink(visitor, email)
  await readMails(app, email)
  const page = await visitor.get('/auth/mail')
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8')
  expect(page.body).toMatch(new RegExp(`To ${email}[\\s\\S]*<a href="https://id.example.test/auth/reset\\?token=`))
  expect(JSON.parse((await visitor.get('/auth/mail', { accept: 'application/json' })).body).data[0].to).toBe(email)
})
