import { describe, expect, test } from 'vitest'
import { createKeyedApp, createTestApp } from '../../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../../test/harness/app/known-password.ts'
import { codeOf, decodeBase32 } from '../../../../test/harness/browser/factor-user.ts'
import { readMails } from '../../../../test/harness/browser/mailbox.ts'
import { countTraffic } from '../../../../test/harness/plan/round-trips.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { dumpDatabase } from '../../../../test/harness/run/trail.ts'
import { ADDRESS_LIMIT, NETWORK_LIMIT } from '../../address-proof/address-proof.ts'
import { CODE_ATTEMPTS, MAIL_LOGIN_LIFETIME_MS } from './mail-login.ts'

const REQUEST = '/api/v3/auth/login/mail'
const CONFIRM = `${REQUEST}/confirm`
const LOCAL = '/api/v3/auth/login/local'
const FACTOR = '/api/v3/auth/login/factor'
const PASSWORD = 'correct horse battery'
const env = { RATE_LIMIT_STRICT_PER_MINUTE: '100000', TRUST_PROXY: 'loopback', SIGN_IN_BY_MAIL: 'true' }

const app = await openForFile(createKeyedApp({ env }))
/** Another process on the same database. */
const other = await openForFile(createTestApp({ env, database: app.database, clock: app.clock }))

let count = 0
/** A new user with a network of its own, so that tests do not meet each other's limits. */
async function newcomer() {
  count += 1
  const email = `by-mail-${count}@example.com`
  const id = await createUserWithPassword(app, { email }, PASSWORD)
  await app.database.pool.query('update "user" set email_verified_at = now() where document_id = $1', [id])
  return { id, email, from: { 'x-forwarded-for': `10.${count}.1.1` } }
}
type Newcomer = Pick<Awaited<ReturnType<typeof newcomer>>, 'email' | 'from'>

const ask = ({ email, from }: Newcomer, at = app) => at.anonymous('POST', REQUEST, { email }, from)
const confirm = (login: string, code: string, { from }: Pick<Newcomer, 'from'>, at = app) =>
  at.anonymous('POST', CONFIRM, { login, code }, from)
async function begin(user: Newcomer): Promise<{ login: string; code: string }> {
  const reply = await ask(user)
  expect(reply).toMatchObject({ status: 202, body: { data: { expires_in: 600 } } })
  return { login: reply.body.data.login, code: await readCode(user.email) }
}
const readCode = async (email: string) => /code is (\d{8})\./.exec((await readMails(app, email))[0]!.text)![1]!
/** Another code of the same form. */
const wrong = (code: string, by = 1) => String((Number(code) + by) % 100_000_000).padStart(8, '0')
const lastAudit = async (action: string) =>
  (await app.admin('GET', `/api/v3/audit/log?filters=action|eq|${action}&sort=-created_at&page_size=1`)).body.data[0]
const failed = { status: 401, body: { code: 'login_failed' } }

describe('a sign-in by mail', () => {
  test('answers the login payload for the code of the mail, whose session says so', async () => {
    const user = await newcomer()
    const { login, code } = await begin(user)
    const [mail] = await readMails(app, user.email)
    expect(mail).toMatchObject({ to: user.email, subject: 'Sign in at Signalbox', token: '' })
    const reply = await confirm(login, ` ${code.slice(0, 4)}-${code.slice(4)} `, user)
    expect(reply).toMatchObject({ status: 200, body: { data: { user: { email: user.email }, is_new_user: false } } })
    expect(reply.headers['cache-control']).toBe('no-store')
    const session = await app.callAs(reply.body.data.jwt)('GET', '/api/v3/auth/session')
    expect(session.body.data.session).toMatchObject({ amr: ['mail'], acr: 'aal1' })
    expect(await lastAudit('login.mail')).toMatchObject({ outcome: 'success', user: user.id })
    const log = await app.admin('GET', `/api/v3/identity/user/${user.id}/sign-in`)
    expect(log.body.data[0]).toMatchObject({ method: 'mail', outcome: 'success' })
  })

  test('verifies the address of a user without a password, and is not open to one with a password beside it', async () => {
    const [user, waiting] = [await newcomer(), await newcomer()]
    const forget = 'update "user" set email_verified_at = null, password_hash = $2 where document_id = $1'
    await app.database.pool.query(forget, [user.id, null])
    await app.database.pool.query(forget, [waiting.id, 'a hash'])
    const { login, code } = await begin(user)
    expect((await confirm(login, code, user)).status).toBe(200)
    const row = (await app.admin('GET', `/api/v3/identity/user/${user.id}`)).body.data
    expect(row.email_verified_at).toBe(new Date(app.clock.now()).toISOString())
    expect((await ask(waiting)).status).toBe(202)
    expect(await readMails(app, waiting.email)).toEqual([])
  })

  test('goes to the address as its user wrote it, whatever case is typed', async () => {
    const user = await newcomer()
    const { login } = (await ask({ ...user, email: user.email.toUpperCase() })).body.data
    expect((await confirm(login, await readCode(user.email), user)).status).toBe(200)
  })

  test('works once, also when its code is used at once in two processes, and ends the other mails of the user', async () => {
    const user = await newcomer()
    const first = await begin(user)
    const { login, code } = await begin(user)
    const replies = await Promise.all([confirm(login, code, user), confirm(login, code, user, other)])
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 401])
    expect(await confirm(login, code, user)).toMatchObject(failed)
    expect(await confirm(first.login, first.code, user)).toMatchObject(failed)
  })

  test('takes the code with the id of its own request only', async () => {
    const [user, thief] = [await newcomer(), await newcomer()]
    const own = await begin(user)
    const stolen = await begin(thief)
    expect(await confirm(stolen.login, own.code, thief)).toMatchObject(failed)
    expect(await confirm('x'.repeat(43), own.code, thief)).toMatchObject(failed)
    expect((await confirm(own.login, own.code, user)).status).toBe(200)
  })

  test('is valid until its lifetime ends', async () => {
    const user = await newcomer()
    const [early, late] = [await begin(user), await begin(await newcomer())]
    app.clock.advance(MAIL_LOGIN_LIFETIME_MS - 1)
    expect((await confirm(early.login, early.code, user)).status).toBe(200)
    app.clock.advance(1)
    expect(await confirm(late.login, late.code, user)).toMatchObject(failed)
  })

  test('takes no right code after five wrong ones, also when these come at once', async () => {
    const user = await newcomer()
    const { login, code } = await begin(user)
    const tries = Array.from({ length: CODE_ATTEMPTS }, (_, at) =>
      confirm(
        login,
        wrong(code, at + 1),
        { from: { 'x-forwarded-for': `10.201.${at}.${count}` } },
        at % 2 ? app : other,
      ),
    )
    for (const reply of await Promise.all(tries)) expect([401, 429]).toContain(reply.status)
    app.clock.advance(30_000)
    for (let at = 0; at < CODE_ATTEMPTS; at += 1) {
      await confirm(login, wrong(code, at + 1), { from: { 'x-forwarded-for': `10.202.${at}.${count}` } })
      app.clock.advance(30_000)
    }
    expect(await confirm(login, code, { from: { 'x-forwarded-for': `10.203.1.${count}` } })).toMatchObject(failed)
    expect(await lastAudit('login.mail')).toMatchObject({ user: user.id, detail: { reason: 'exhausted' } })
  })

  test('takes the right code at the fifth attempt', async () => {
    const user = await newcomer()
    const { login, code } = await begin(user)
    for (let at = 1; at < CODE_ATTEMPTS; at += 1)
      expect(await confirm(login, wrong(code, at), user)).toMatchObject(failed)
    expect((await confirm(login, code, user)).status).toBe(200)
  })

  test('delays as wrong passwords do, together with them, and alike for an address of nobody', async () => {
    const known = await newcomer()
    const nobody = { email: `nobody-${count}@example.com`, from: { 'x-forwarded-for': `10.204.${count}.1` } }
    const patterns = []
    for (const asker of [known, nobody]) {
      const { login } = (await ask(asker)).body.data
      const statuses = []
      for (let at = 0; at < 3; at += 1) {
        const body = { email: asker.email, password: 'wrong' }
        statuses.push((await app.anonymous('POST', LOCAL, body, asker.from)).status)
        statuses.push((await confirm(login, '00000000', asker)).status)
      }
      patterns.push(statuses)
    }
    expect(patterns[0]).toEqual(patterns[1])
    expect(patterns[0]).toEqual([401, 401, 401, 401, 401, 429])
    expect(await lastAudit('login.mail')).toMatchObject({ detail: { reason: 'throttled' } })
  })

  test('clears the count of the user when the code is right', async () => {
    const user = await newcomer()
    for (let round = 0; round < 2; round += 1) {
      const { login, code } = await begin(user)
      for (let at = 1; at < CODE_ATTEMPTS; at += 1) await confirm(login, wrong(code, at), user)
      expect((await confirm(login, code, user)).status).toBe(200)
    }
  })

  test.each([
    ['no body', REQUEST, undefined],
    ['no address', REQUEST, {}],
    ['an unknown member', REQUEST, { email: 'a@example.com', code: '1' }],
    ['an address over the limit', REQUEST, { email: 'a'.repeat(321) }],
    ['NUL', REQUEST, { email: 'a\0@example.com' }],
    ['no code', CONFIRM, { login: 'x' }],
    ['a code that is no text', CONFIRM, { login: 'x', code: 12345678 }],
    ['a code over the limit', CONFIRM, { login: 'x', code: '1'.repeat(65) }],
  ])('with %s is refused before anything is kept', async (_name, path, body) => {
    expect([400, 422]).toContain((await app.anonymous('POST', path, body)).status)
  })

  test('keeps neither code nor id in the clear, nor a hash that can be searched', async () => {
    const user = await newcomer()
    const { login, code } = await begin(user)
    const { rows } = await app.database.pool.query('select * from address_proof where "user" = $1', [user.id])
    const kept = JSON.stringify(rows)
    expect(kept).not.toContain(code)
    expect(kept).not.toContain(login)
    const dump = JSON.stringify(await dumpDatabase(app.database.pool))
    expect(dump).not.toContain(login)
  })
})

describe('the answer to a request', () => {
  test('is the same, with the same statements, for a known, an unknown, a disabled and a malformed address', async () => {
    const [known, disabled, unproven] = [await newcomer(), await newcomer(), 'unproven@example.com']
    await app.admin('POST', `/api/v3/identity/user/${disabled.id}/disable`)
    await createUserWithPassword(app, { email: unproven }, PASSWORD)
    const measure = async (email: string) => {
      app.clock.advance(1)
      const { from } = await newcomer()
      const traffic = countTraffic(app.database.pool)
      const { status, body, headers } = await ask({ email, from })
      const { 'content-length': length, 'content-type': type } = headers
      const asked = traffic.stop()
      const texts = [...traffic.texts]
      const more = countTraffic(app.database.pool)
      const refused = await confirm(body.data.login, '00000000', { from })
      return {
        ...{ status, length, type, ...asked, texts, message: body.message, login: body.data.login.length },
        confirmed: [refused.status, refused.body.detail, Object.keys(refused.headers), more.stop(), [...more.texts]],
      }
    }
    const answers = []
    for (const email of [known.email, 'no-user@example.com', disabled.email, unproven, 'not an address'])
      answers.push(await measure(email))
    for (const answer of answers) expect(answer).toEqual(answers[0])
    for (const email of ['no-user@example.com', disabled.email, unproven])
      expect(await readMails(app, email)).toEqual([])
  })

  test('is audited with what it came to', async () => {
    const user = await newcomer()
    await ask(user)
    expect(await lastAudit('mail-login.request')).toMatchObject({ user: user.id, detail: { result: 'sent' } })
    app.clock.advance(1)
    await ask({ ...user, email: 'no-user-either@example.com' })
    expect(await lastAudit('mail-login.request')).toMatchObject({ user: null, detail: { result: 'unknown' } })
  })

  test('shows no limit of an address, and that of a network by 429', async () => {
    const user = await newcomer()
    const requests = Array.from({ length: ADDRESS_LIMIT + 2 }, (_, at) => ask(user, at % 2 ? app : other))
    for (const { status } of await Promise.all(requests)) expect(status).toBe(202)
    expect(await readMails(app, user.email)).toHaveLength(ADDRESS_LIMIT)
    const from = { 'x-forwarded-for': '2001:db8:99:1::1' }
    for (let at = 0; at < NETWORK_LIMIT; at += 1)
      expect((await ask({ email: `flood-${at}@example.com`, from })).status).toBe(202)
    expect(await ask({ email: 'flood@example.com', from })).toMatchObject({
      status: 429,
      body: { code: 'rate_limited' },
    })
  })
})

describe('an open code', () => {
  const asAdmin =
    (path: string, body: object = {}) =>
    (id: string) =>
      app.admin('POST', `/api/v3/identity/user/${id}/${path}`, body)
  const patch = (body: object) => (id: string) => app.admin('PATCH', `/api/v3/identity/user/${id}`, body)
  const ends: [string, (id: string, user: Newcomer) => Promise<{ status: number }>][] = [
    ['disabling', asAdmin('disable')],
    [
      'disabling and enabling',
      async (id) => {
        await asAdmin('disable')(id)
        return asAdmin('enable')(id)
      },
    ],
    ['deletion', (id) => app.admin('DELETE', `/api/v3/identity/user/${id}`)],
    ['a new address', (id) => patch({ email: `moved-${id}@example.com` })(id)],
    ['a new password', patch({ password: 'another horse battery' })],
    ['revoke-sessions', asAdmin('revoke-sessions')],
    ['removal of factors', asAdmin('remove-factors')],
    [
      'a reset by mail',
      async (_id, { email }) => {
        await app.anonymous('POST', '/api/v3/auth/password/forgot', { email })
        const { token } = (await readMails(app, email))[0]!
        return app.anonymous('POST', '/api/v3/auth/password/reset', { token, password: 'another horse battery' })
      },
    ],
    [
      'a sign-out everywhere',
      async (_id, { email }) => {
        const { jwt } = (await app.anonymous('POST', LOCAL, { email, password: PASSWORD })).body.data
        return app.callAs(jwt)('POST', '/api/v3/auth/session/revoke', { all: true })
      },
    ],
  ]
  test.each(ends)('is invalid after %s', async (_name, act) => {
    const user = await newcomer()
    const { login, code } = await begin(user)
    app.clock.advance(1)
    expect((await act(user.id, user)).status).toBeLessThan(300)
    expect(await confirm(login, code, user)).toMatchObject(failed)
    const { rows } = await app.database.pool.query('select from address_proof where "user" = $1', [user.id])
    expect(rows).toEqual([])
  })

  test('of a user who is disabled without an end of its access is invalid too', async () => {
    const user = await newcomer()
    const { login, code } = await begin(user)
    await app.database.pool.query('update "user" set is_actived = false where document_id = $1', [user.id])
    expect(await confirm(login, code, user)).toMatchObject(failed)
  })

  test('of an address that another user has since is invalid', async () => {
    const user = await newcomer()
    const { login, code } = await begin(user)
    await app.database.pool.query('update "user" set email = $2 where document_id = $1', [user.id, `x${user.email}`])
    await createUserWithPassword(app, { email: user.email }, PASSWORD)
    expect(await confirm(login, code, user)).toMatchObject(failed)
    expect(await lastAudit('login.mail')).toMatchObject({ user: user.id, detail: { reason: 'disabled' } })
  })
})

describe('a user with a second factor', () => {
  async function enrol() {
    const user = await newcomer()
    const { jwt } = (await app.anonymous('POST', LOCAL, { email: user.email, password: PASSWORD })).body.data
    const enrolled = await app.callAs(jwt)('POST', '/api/v3/auth/factor/totp')
    const secret = decodeBase32(enrolled.body.data.secret)
    const done = await app.callAs(jwt)('POST', '/api/v3/auth/factor/totp/confirm', { code: codeOf(app, secret) })
    expect(done.status).toBe(200)
    app.clock.advance(30_000)
    return { ...user, secret }
  }
  async function reachStep(user: Newcomer): Promise<string> {
    const { login, code } = await begin(user)
    const reply = await confirm(login, code, user)
    expect(reply).toMatchObject({ status: 401, body: { code: 'second_factor_required' } })
    expect(reply.body.detail).toBe('The code is right. Prove your second factor to sign in.')
    expect(await confirm(login, code, user)).toMatchObject(failed)
    return reply.body.second_factor.challenge
  }

  test('is asked for it, and gets a session with both', async () => {
    const user = await enrol()
    const challenge = await reachStep(user)
    const reply = await app.anonymous('POST', FACTOR, { challenge, code: codeOf(app, user.secret) }, user.from)
    expect(reply.status).toBe(200)
    const session = await app.callAs(reply.body.data.jwt)('GET', '/api/v3/auth/session')
    expect(session.body.data.session).toMatchObject({ amr: ['mail', 'otp', 'mfa'], acr: 'aal2' })
  })

  test('gets it also without a password, and cannot finish a step that began before a new one', async () => {
    const user = await enrol()
    await app.database.pool.query('update "user" set password_hash = null where document_id = $1', [user.id])
    const first = await reachStep(user)
    const done = await app.anonymous('POST', FACTOR, { challenge: first, code: codeOf(app, user.secret) }, user.from)
    expect(done.status).toBe(200)
    app.clock.advance(30_000)
    const challenge = await reachStep(user)
    app.clock.advance(1)
    await app.admin('PATCH', `/api/v3/identity/user/${user.id}`, { password: PASSWORD })
    const late = await app.anonymous('POST', FACTOR, { challenge, code: codeOf(app, user.secret) }, user.from)
    expect(late).toMatchObject({ status: 401, body: { code: 'second_factor_failed' } })
  })
})

test('where it is switched off, both requests are a 403 and nothing is kept', async () => {
  await using off = await createTestApp()
  for (const [path, body] of [
    [REQUEST, { email: 'a@example.com' }],
    [CONFIRM, { login: 'x', code: '1' }],
  ] as const)
    expect(await off.anonymous('POST', path, body)).toMatchObject({
      status: 403,
      body: { code: 'sign_in_by_mail_off' },
    })
})
