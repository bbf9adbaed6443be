import { describe, expect, test } from 'vitest'
import { createKeyedApp, createTestApp } from '../../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../../test/harness/app/known-password.ts'
import { readMails } from '../../../../test/harness/browser/mailbox.ts'
import { countTraffic } from '../../../../test/harness/plan/round-trips.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { dumpDatabase } from '../../../../test/harness/run/trail.ts'
import { VERIFICATION_LIFETIME_MS } from './email-verification.ts'
import { LINKS_WINDOW_MS, RESET_LIFETIME_MS } from './password-reset.ts'

const FORGOT = '/api/v3/auth/password/forgot'
const RESET = '/api/v3/auth/password/reset'
const VERIFY = '/api/v3/auth/email/verify'
const PASSWORD = 'correct horse battery'
const NEW = 'another horse battery'
const env = { RATE_LIMIT_STRICT_PER_MINUTE: '100000' }

const app = await openForFile(createKeyedApp({ env }))
/** Another process on the same database. */
const other = await openForFile(createTestApp({ env, database: app.database, clock: app.clock }))

let count = 0
async function createUser(more: object = {}) {
  const email = `forgetful-${count++}@example.com`
  const id = await createUserWithPassword(app, { email, ...more }, PASSWORD)
  const signIn = (password = PASSWORD) => app.anonymous('POST', '/api/v3/auth/login/local', { email, password })
  return { id, email, signIn }
}
const forgot = (email: string) => app.anonymous('POST', FORGOT, { email })
const reset = (token: string, more: object = {}) => app.anonymous('POST', RESET, { token, password: NEW, ...more })
const linkTo = async (email: string) => {
  expect((await forgot(email)).status).toBe(202)
  return (await readMails(app, email))[0]!.token
}
const lastAudit = async (action: string) =>
  (await app.admin('GET', `/api/v3/audit/log?filters=action|eq|${action}&sort=-created_at&page_size=1`)).body.data[0]
const invalid = { status: 410, body: { code: 'link_invalid' } }

describe('asking for a reset link', () => {
  test('sends a mail to the address as the user wrote it, whatever case is typed', async () => {
    const user = await createUser()
    expect(await forgot(user.email.toUpperCase())).toMatchObject({ status: 202, body: { data: { accepted: true } } })
    const [mail, ...more] = await readMails(app, user.email)
    expect(more).toEqual([])
    expect(mail).toMatchObject({ to: user.email, subject: 'Set a new password at Signalbox' })
    expect(mail!.text).toContain(`${app.app.baseUrl()}/auth/reset?token=`)
    expect(mail!.token).toMatch(/^[\w-]{43}$/)
  })

  test('answers the same for a known, an unknown, a disabled and a malformed address, with the same statements', async () => {
    const [known, disabled] = [await createUser(), await createUser()]
    await app.admin('POST', `/api/v3/identity/user/${disabled.id}/disable`)
    const measure = async (email: string) => {
      app.clock.advance(1)
      const traffic = countTraffic(app.database.pool)
      const { status, body, headers } = await forgot(email)
      const { 'content-length': length, 'content-type': type } = headers
      return { status, body, length, type, ...traffic.stop(), texts: traffic.texts }
    }
    const answers = []
    for (const email of [known.email, 'nobody@example.com', disabled.email, 'not an address'])
      answers.push(await measure(email))
    for (const answer of answers) expect(answer).toEqual(answers[0])
    expect(await readMails(app, disabled.email)).toEqual([])
    expect(await readMails(app, 'nobody@example.com')).toEqual([])
  })

  test('is audited with what it came to, and the answer does not say it', async () => {
    const user = await createUser()
    await forgot(user.email)
    expect(await lastAudit('password.forgot')).toMatchObject({ user: user.id, detail: { result: 'sent' } })
    await forgot('nobody@example.com')
    expect(await lastAudit('password.forgot')).toMatchObject({ user: null, detail: { result: 'unknown' } })
  })

  test('sends at most three mails in 15 minutes', async () => {
    const user = await createUser()
    for (let request = 0; request < 5; request += 1) expect((await forgot(user.email)).status).toBe(202)
    expect(await readMails(app, user.email)).toHaveLength(3)
    expect(await lastAudit('password.forgot')).toMatchObject({ detail: { result: 'too_many' } })
    app.clock.advance(LINKS_WINDOW_MS)
    await forgot(user.email)
    expect(await readMails(app, user.email)).toHaveLength(4)
  })

  test('sends three mails for forty requests at once, to two processes, and none more in their window', async () => {
    const user = await createUser()
    const asked = Array.from({ length: 40 }, (_, step) =>
      (step % 2 === 0 ? app : other).anonymous('POST', FORGOT, { email: user.email }),
    )
    for (const { status } of await Promise.all(asked)) expect(status).toBe(202)
    expect(await readMails(app, user.email)).toHaveLength(3)
    app.clock.advance(LINKS_WINDOW_MS - 1)
    await forgot(user.email)
    expect(await readMails(app, user.email)).toHaveLength(3)
  })

  test('waits for nobody once three mails were sent, so that a flood holds no connection', async () => {
    const user = await createUser()
    for (let request = 0; request < 3; request += 1) await forgot(user.email)
    const holder = await app.database.pool.connect()
    await holder.query('begin')
    await holder.query('select from "user" where document_id = $1 for update', [user.id])
    expect((await forgot(user.email)).status).toBe(202)
    await holder.query('rollback')
    holder.release()
    expect(await readMails(app, user.email)).toHaveLength(3)
  })

  test('leaves no token in the database but in the mailbox of development', async () => {
    const user = await createUser()
    await forgot(user.email)
    const { rows } = await app.database.pool.query('select content from mail_outbox where recipient = $1', [user.email])
    expect(rows[0].content).toMatch(/^v1\./)
    const { token } = (await readMails(app, user.email))[0]!
    await app.database.pool.query('delete from kept_mail where recipient = $1', [user.email])
    expect(await dumpDatabase(app.database.pool)).not.toContain(token)
  })

  test('is 503 where no mail server is set up, for every address alike', async () => {
    await using silent = await createTestApp({ env: { APP_ENV: 'certification' } })
    const ask = (email: string) => silent.anonymous('POST', FORGOT, { email })
    const { administrator } = silent.database
    expect(administrator).toBeDefined()
    expect(await ask('nobody@example.com')).toMatchObject({ status: 503, body: { code: 'dependency_unavailable' } })
    expect((await silent.anonymous('GET', '/auth/mail')).status).toBe(404)
  })
})

describe('a reset', () => {
  test('sets the password, verifies the address, ends sessions and API keys, and clears the throttle', async () => {
    const user = await createUser()
    const mine = app.callAs((await user.signIn()).body.data.jwt)
    const key = { name: 'key', permissions: ['contract:*'] }
    const asKey = app.callAs((await mine('POST', '/api/v3/identity/api-key', key)).body.data.key)
    for (let attempt = 0; attempt < 10; attempt += 1) await user.signIn('a wrong password')
    expect((await user.signIn()).status).toBe(429)
    const token = await linkTo(user.email)
    expect(await reset(token)).toMatchObject({ status: 200, body: { data: { revoked: 1, api_keys_revoked: 1 } } })
    expect((await mine('GET', '/api/v3/auth/session')).status).toBe(401)
    expect((await asKey('GET', '/api/v3/auth/session')).status).toBe(401)
    expect((await user.signIn(NEW)).status).toBe(200)
    const { body } = await app.admin('GET', `/api/v3/identity/user/${user.id}`)
    expect(body.data.email_verified_at).toBe(new Date(app.clock.now()).toISOString())
    expect(await lastAudit('password.reset')).toMatchObject({ outcome: 'success', user: user.id })
  })

  test('keeps API keys when it says so', async () => {
    const user = await createUser()
    const mine = app.callAs((await user.signIn()).body.data.jwt)
    const key = { name: 'key', permissions: ['contract:*'] }
    const asKey = app.callAs((await mine('POST', '/api/v3/identity/api-key', key)).body.data.key)
    await reset(await linkTo(user.email), { keep_api_keys: true })
    expect((await asKey('GET', '/api/v3/auth/session')).status).toBe(200)
  })

  test('works until one hour after the link, and not at the hour', async () => {
    const [early, late] = [await createUser(), await createUser()]
    const [first, second] = [await linkTo(early.email), await linkTo(late.email)]
    app.clock.advance(RESET_LIFETIME_MS - 1)
    expect((await reset(first)).status).toBe(200)
    app.clock.advance(1)
    expect(await reset(second)).toMatchObject(invalid)
  })

  test('works once, also by parallel requests in two processes, and ends every older link', async () => {
    const user = await createUser()
    const older = await linkTo(user.email)
    app.clock.advance(1)
    const token = await linkTo(user.email)
    const replies = await Promise.all(
      [app, other, app, other].map((item) => item.anonymous('POST', RESET, { token, password: NEW })),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 410, 410, 410])
    app.clock.advance(60_000)
    expect(await reset(token)).toMatchObject(invalid)
    expect(await reset(older)).toMatchObject(invalid)
    expect(await lastAudit('password.reset')).toMatchObject({
      outcome: 'failure',
      detail: { reason: 'unknown_used_or_expired' },
    })
  })

  test('keeps the link for another try when the new password breaks a rule', async () => {
    const user = await createUser()
    const token = await linkTo(user.email)
    expect(await reset(token, { password: 'password123' })).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'password', code: 'common' }] },
    })
    expect((await reset(token)).status).toBe(200)
  })

  test.each([
    ['disabled', (id: string) => app.admin('POST', `/api/v3/identity/user/${id}/disable`)],
    ['deleted', (id: string) => app.admin('DELETE', `/api/v3/identity/user/${id}`)],
    [
      'given another address',
      (id: string) => app.admin('PATCH', `/api/v3/identity/user/${id}`, { email: `${id}@x.example` }),
    ],
    [
      'given a password by an administrator',
      (id: string) => app.admin('PATCH', `/api/v3/identity/user/${id}`, { password: 'set by the office' }),
    ],
  ])('is refused for a user who was %s since', async (_name, act) => {
    const user = await createUser()
    const token = await linkTo(user.email)
    expect((await act(user.id)).status).toBe(200)
    expect(await reset(token)).toMatchObject(invalid)
  })

  test('is refused for a token that nobody got, and for one of a verification', async () => {
    expect(await reset('A'.repeat(43))).toMatchObject(invalid)
    expect(await reset('x')).toMatchObject(invalid)
    const user = await createUser()
    const mine = app.callAs((await user.signIn()).body.data.jwt)
    await mine('POST', `${VERIFY}/request`)
    const { token } = (await readMails(app, user.email))[0]!
    expect(await reset(token)).toMatchObject(invalid)
  })
})

describe('the verification of an address', () => {
  const request = async (user: Awaited<ReturnType<typeof createUser>>) =>
    app.callAs((await user.signIn()).body.data.jwt)('POST', `${VERIFY}/request`)
  const verify = (token: string) => app.anonymous('POST', VERIFY, { token })
  const verifiedAt = async (id: string) =>
    (await app.admin('GET', `/api/v3/identity/user/${id}`)).body.data.email_verified_at

  test('marks the address by its link, once, within 24 hours', async () => {
    const [early, late] = [await createUser(), await createUser()]
    const tokens = []
    for (const user of [early, late]) {
      expect(await request(user)).toMatchObject({ status: 202, body: { data: { accepted: true } } })
      const [mail] = await readMails(app, user.email)
      expect(mail!.text).toContain('/auth/verify?token=')
      tokens.push(mail!.token)
    }
    app.clock.advance(VERIFICATION_LIFETIME_MS - 1)
    expect(await verify(tokens[0]!)).toMatchObject({ status: 200, body: { data: { verified: true } } })
    expect(await verifiedAt(early.id)).toBe(new Date(app.clock.now()).toISOString())
    expect(await verify(tokens[0]!)).toMatchObject(invalid)
    app.clock.advance(1)
    expect(await verify(tokens[1]!)).toMatchObject(invalid)
    expect(await verifiedAt(late.id)).toBeNull()
  })

  test('answers the same for a verified address, without a mail', async () => {
    const user = await createUser()
    await request(user)
    await verify((await readMails(app, user.email))[0]!.token)
    expect((await request(user)).status).toBe(202)
    expect(await readMails(app, user.email)).toHaveLength(1)
    expect(await lastAudit('email.request-verification')).toMatchObject({ detail: { result: 'verified_already' } })
  })

  test('does not verify an address that the user took later', async () => {
    const user = await createUser()
    await request(user)
    const { token } = (await readMails(app, user.email))[0]!
    await app.admin('PATCH', `/api/v3/identity/user/${user.id}`, { email: `moved-${user.email}` })
    expect(await verify(token)).toMatchObject(invalid)
    expect(await verifiedAt(user.id)).toBeNull()
  })

  test('needs a token to ask for', async () => {
    expect((await app.anonymous('POST', `${VERIFY}/request`)).status).toBe(401)
  })
})
