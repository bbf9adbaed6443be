import { describe, expect, test } from 'vitest'
import { createKeyedApp, createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../test/harness/app/known-password.ts'
import { readMails } from '../../../test/harness/browser/mailbox.ts'
import { countTraffic } from '../../../test/harness/plan/round-trips.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { dumpDatabase } from '../../../test/harness/run/trail.ts'
import { deleteExpiredAddressProofs } from '../address-proof/address-proof.store.ts'
import { ADDRESS_LIMIT, NETWORK_LIMIT } from '../address-proof/address-proof.ts'
import { SIGN_UP_LIFETIME_MS } from './sign-up.ts'

const SIGN_UP = '/api/v3/auth/sign-up'
const CONFIRM = `${SIGN_UP}/confirm`
const LOGIN = '/api/v3/auth/login/local'
const PASSWORD = 'correct horse battery'
const env = { RATE_LIMIT_STRICT_PER_MINUTE: '100000', TRUST_PROXY: 'loopback' }

const app = await openForFile(createKeyedApp({ env: { ...env, SIGN_UP: 'open' } }))
const shared = { database: app.database, clock: app.clock }
/** Another process on the same database. */
const other = await openForFile(createTestApp({ env: { ...env, SIGN_UP: 'open' }, ...shared }))
const invited = await openForFile(createTestApp({ env: { ...env, SIGN_UP: 'invited' }, ...shared }))
const closed = await openForFile(createTestApp({ env, ...shared }))

let count = 0
/** A new address, and a network of its own, so that tests do not meet each other's limits. */
function newcomer() {
  count += 1
  return { email: `newcomer-${count}@example.com`, from: { 'x-forwarded-for': `10.${count}.1.1` } }
}
const ask = (email: string, from: Record<string, string>, at = app) => at.anonymous('POST', SIGN_UP, { email }, from)
const confirm = (token: string, more: object = {}, at = app) =>
  at.anonymous('POST', CONFIRM, { token, password: PASSWORD, ...more })
async function linkTo(email: string, from: Record<string, string>, at = app): Promise<string> {
  expect(await ask(email, from, at)).toMatchObject({ status: 202, body: { data: { accepted: true } } })
  return (await readMails(app, email))[0]!.token
}
async function invite(email: string): Promise<{ account: string; invitation: string }> {
  const account = (await app.admin('POST', '/api/v3/identity/account', { name: 'Rail' })).body.data.document_id
  const made = await app.admin('POST', `/api/v3/identity/account/${account}/invitation`, { email })
  return { account, invitation: made.body.data.document_id }
}
const lastAudit = async (action: string) =>
  (await app.admin('GET', `/api/v3/audit/log?filters=action|eq|${action}&sort=-created_at&page_size=1`)).body.data[0]
const countUsers = async (email: string) =>
  (await app.admin('GET', `/api/v3/identity/user?filters=email|eq|${email}`)).body.data.length
const isTaken = { status: 410, body: { code: 'link_invalid' } }

describe('a sign-up', () => {
  test('keeps no user before its link, and then one who is verified, signed in and has an account', async () => {
    const { email, from } = newcomer()
    const token = await linkTo(email, from)
    const [mail] = await readMails(app, email)
    expect(mail).toMatchObject({ to: email, subject: 'Finish signing up at Signalbox' })
    expect(mail!.text).toContain(`${app.app.baseUrl()}/auth/sign-up/confirm?token=`)
    expect(await countUsers(email)).toBe(0)

    const reply = await confirm(token, { name: 'Ada' })
    expect(reply.status).toBe(200)
    expect(reply.headers['cache-control']).toBe('no-store')
    const { user, account, jwt, is_new_user } = reply.body.data
    expect({ user, account, is_new_user }).toMatchObject({
      user: { email, name: 'Ada' },
      account: { name: 'Ada' },
      is_new_user: true,
    })
    const session = await app.callAs(jwt)('GET', '/api/v3/auth/session')
    expect(session.body.data).toMatchObject({ session: { amr: ['pwd'], acr: 'aal1' } })
    const row = (await app.admin('GET', `/api/v3/identity/user/${user.document_id}`)).body.data
    expect(row).toMatchObject({ email_verified_at: new Date(app.clock.now()).toISOString(), has_password: true })
    expect((await app.anonymous('POST', LOGIN, { email, password: PASSWORD })).status).toBe(200)
    const { rows } = await app.database.pool.query(
      `select event from event_occurrence where resource_id = any($1::text[]) order by document_id`,
      [[user.document_id, account.document_id]],
    )
    expect(rows.map(({ event }) => event).sort()).toEqual(['account.create', 'user.create'])
    expect(await lastAudit('login.sign-up')).toMatchObject({ user: user.document_id, outcome: 'success' })
    const log = await app.admin('GET', `/api/v3/identity/user/${user.document_id}/sign-in`)
    expect(log.body.data.at(-1)).toMatchObject({ method: 'sign-up', outcome: 'success' })
  })

  test('works once, also when its link is used at once in two processes', async () => {
    const { email, from } = newcomer()
    const token = await linkTo(email, from)
    const replies = await Promise.all([confirm(token), confirm(token, {}, other), confirm(token)])
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 410, 410])
    expect(await confirm(token)).toMatchObject(isTaken)
    expect(await countUsers(email)).toBe(1)
  })

  test('uses up every link of the address in any spelling, also at once', async () => {
    const { email, from } = newcomer()
    const first = await linkTo(email, from)
    await ask(email.toUpperCase(), from)
    const second = (await readMails(app, email.toUpperCase()))[0]!.token
    const replies = await Promise.all([confirm(first), confirm(second, {}, other)])
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 410])
    expect(await countUsers(email)).toBe(1)
  })

  test('is valid until its lifetime ends, and its row is then deleted', async () => {
    const [early, late] = [newcomer(), newcomer()]
    const tokens = [await linkTo(early.email, early.from), await linkTo(late.email, late.from)] as const
    app.clock.advance(SIGN_UP_LIFETIME_MS - 1)
    expect((await confirm(tokens[0])).status).toBe(200)
    app.clock.advance(1)
    expect(await confirm(tokens[1])).toMatchObject(isTaken)
    await deleteExpiredAddressProofs(app.database.db, new Date(app.clock.now() + 1), 1000)
    const { rows } = await app.database.pool.query('select from address_proof where email = $1', [late.email])
    expect(rows).toEqual([])
  })

  test('refuses a password that breaks a rule, and computes none without a valid link', async () => {
    const { email, from } = newcomer()
    const token = await linkTo(email, from)
    expect(await confirm(token, { password: 'password123' })).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'password', code: 'common' }] },
    })
    expect(await confirm(token, { password: `${email}!` })).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'password', code: 'personal' }] },
    })
    expect(await confirm('x'.repeat(43), { password: 'password123' })).toMatchObject(isTaken)
    expect((await confirm(token)).status).toBe(200)
  })

  test('refuses a name that others could not read, and keeps the link', async () => {
    const { email, from } = newcomer()
    const token = await linkTo(email, from)
    for (const [name, code] of [
      ['Support \u202e', 'unsafe_character'],
      ['\u00ad', 'blank'],
    ])
      expect(await confirm(token, { name })).toMatchObject({ status: 422, body: { errors: [{ path: 'name', code }] } })
    expect((await confirm(token, { name: 'Ada' })).status).toBe(200)
  })

  test.each([
    ['no body', undefined],
    ['no address', {}],
    ['an address that is none', { email: 'nobody' }],
    ['an address with NUL', { email: 'a\0@example.com' }],
    ['a lone surrogate', { email: 'a\ud800@example.com' }],
    ['a password', { email: 'a@example.com', password: PASSWORD }],
  ])('with %s is a 422', async (_name, body) => {
    expect([400, 422]).toContain((await app.anonymous('POST', SIGN_UP, body)).status)
  })

  test('reveals no token, password or address in the clear', async () => {
    const { email, from } = newcomer()
    const token = await linkTo(email, from)
    expect((await confirm(token)).status).toBe(200)
    const dump = JSON.stringify(await dumpDatabase(app.database.pool))
    const mails = JSON.stringify(await readMails(app, email))
    expect(mails).toContain(token)
    expect(dump.replaceAll(mails.slice(1, -1), '')).not.toContain(PASSWORD)
  })
})

describe('the answer to a sign-up', () => {
  test('is the same, with the same statements, for an unknown, a known, a disabled and an uninvited address', async () => {
    const known = 'known-address@example.com'
    const disabled = 'disabled-address@example.com'
    await createUserWithPassword(app, { email: known }, PASSWORD)
    const id = await createUserWithPassword(app, { email: disabled }, PASSWORD)
    await app.admin('POST', `/api/v3/identity/user/${id}/disable`)
    const measure = async (email: string, at: TestApp) => {
      app.clock.advance(1)
      const { from } = newcomer()
      const traffic = countTraffic(app.database.pool)
      const { status, body, headers } = await ask(email, from, at)
      const { request_id: _id, ...shown } = body
      const { 'content-length': length, 'content-type': type } = headers
      return { status, shown, length, type, ...traffic.stop(), texts: traffic.texts }
    }
    for (const at of [app, invited]) {
      const answers = []
      for (const email of [newcomer().email, known, disabled, known.toUpperCase()])
        answers.push(await measure(email, at))
      for (const answer of answers) expect(answer).toEqual(answers[0])
      expect(answers[0]!.status).toBe(202)
    }
    const mails = await readMails(app, known)
    expect(mails.map(({ subject }) => subject)).toEqual(Array(2).fill('You already have an account at Signalbox'))
    expect(mails[0]!.text).toContain(`${app.app.baseUrl()}/auth/sign-in`)
    expect(mails[0]!.token).toBe('')
  })

  test('is audited with what it came to', async () => {
    const { email, from } = newcomer()
    await ask(email, from)
    expect(await lastAudit('sign-up.request')).toMatchObject({ user: null, detail: { result: 'sent' } })
  })
})

describe('a limit of open sign-ups', () => {
  test('of an address is not shown, also with parallel requests, and counts a known address alike', async () => {
    const [{ email, from }, known] = [newcomer(), { ...newcomer() }]
    await createUserWithPassword(app, { email: known.email }, PASSWORD)
    for (const asker of [{ email, from }, known]) {
      const requests = Array.from({ length: ADDRESS_LIMIT + 3 }, (_, at) =>
        ask(asker.email, { 'x-forwarded-for': `10.200.${at}.${count}` }, at % 2 ? app : other),
      )
      const statuses = (await Promise.all(requests)).map(({ status }) => status)
      expect(statuses).toEqual(Array(ADDRESS_LIMIT + 3).fill(202))
      expect(await readMails(app, asker.email)).toHaveLength(ADDRESS_LIMIT)
    }
    app.clock.advance(SIGN_UP_LIFETIME_MS)
    await ask(email, from)
    expect(await readMails(app, email)).toHaveLength(ADDRESS_LIMIT + 1)
  })

  test('of a network refuses the next with 429, also with parallel requests and other addresses of it', async () => {
    const address = (at: number) => ({ 'x-forwarded-for': `2001:db8:77:1::${at + 1}` })
    const requests = Array.from({ length: NETWORK_LIMIT + 4 }, (_, at) =>
      ask(`network-${at}@example.com`, address(at), at % 2 ? app : other),
    )
    const replies = await Promise.all(requests)
    expect(replies.filter(({ status }) => status === 202)).toHaveLength(NETWORK_LIMIT)
    expect(replies.find(({ status }) => status === 429)).toMatchObject({
      headers: { 'retry-after': '3600' },
      body: { code: 'rate_limited' },
    })
    const elsewhere = { 'x-forwarded-for': '2001:db8:78:1::1' }
    expect((await ask('network-other@example.com', elsewhere)).status).toBe(202)
  })

  test('of everybody refuses the next with 503', async () => {
    await app.database.pool.query(
      `insert into address_proof (token_hash, purpose, email, network, wide_network, expires_at, created_at)
       select sha256(n::text::bytea), 'sign-up', 'filler', sha256(n::text::bytea), sha256(n::text::bytea), $1, $1
       from generate_series(1, 10000) n`,
      [new Date(app.clock.now() + 60_000)],
    )
    const { email, from } = newcomer()
    expect(await ask(email, from)).toMatchObject({ status: 503, body: { code: 'overloaded' } })
    app.clock.advance(60_000)
    expect((await ask(email, from)).status).toBe(202)
    await app.database.pool.query(`delete from address_proof where email = 'filler'`)
  })
})

describe('an address that got a user since', () => {
  test('is not taken over by an open link, and nobody has a password before the link', async () => {
    const { email, from } = newcomer()
    // The attacker asks with the address of somebody else, and can neither read the mail nor give a password.
    const token = await linkTo(email, from)
    const { invitation, account } = await invite(email)
    expect(invitation).toBeTypeOf('string')
    const accept = (await readMails(app, email))[0]!.token
    const accepted = await app.anonymous('POST', '/api/v3/auth/invitation/accept', {
      token: accept,
      password: PASSWORD,
    })
    expect(accepted.body.data.account.document_id).toBe(account)
    expect(await confirm(token, { password: 'password of an attacker' })).toMatchObject(isTaken)
    const wrong = { email, password: 'password of an attacker' }
    expect((await app.anonymous('POST', LOGIN, wrong)).status).toBe(401)
    expect(await lastAudit('login.sign-up')).toMatchObject({ outcome: 'failure' })
  })

  test('of a deleted user may sign up again, as another user', async () => {
    const { email, from } = newcomer()
    const id = await createUserWithPassword(app, { email }, PASSWORD)
    await app.admin('DELETE', `/api/v3/identity/user/${id}`)
    const reply = await confirm(await linkTo(email, from), { password: 'another horse battery' })
    expect(reply.status).toBe(200)
    expect(reply.body.data.user.document_id).not.toBe(id)
    expect((await app.anonymous('POST', LOGIN, { email, password: PASSWORD })).status).toBe(401)
  })
})

describe('SIGN_UP', () => {
  test('closed refuses both requests with a problem that names the remedy', async () => {
    const { email, from } = newcomer()
    const token = await linkTo(email, from)
    const problem = { status: 403, body: { code: 'sign_up_closed' } }
    expect(await ask(email, from, closed)).toMatchObject(problem)
    expect(await confirm(token, {}, closed)).toMatchObject(problem)
    expect(await countUsers(email)).toBe(0)
  })

  test('invited sends a link to an invited address only, and checks the invitation again at the link', async () => {
    const [guest, stranger, revoked] = [newcomer(), newcomer(), newcomer()]
    await invite(guest.email)
    const { account, invitation } = await invite(revoked.email)
    const token = await linkTo(guest.email.toUpperCase(), guest.from, invited)
    app.clock.advance(1)
    await ask(stranger.email, stranger.from, invited)
    expect(await readMails(app, stranger.email)).toEqual([])
    expect(await lastAudit('sign-up.request')).toMatchObject({ detail: { result: 'not_invited' } })
    const lost = await linkTo(revoked.email, revoked.from, invited)
    await app.admin('DELETE', `/api/v3/identity/account/${account}/invitation/${invitation}`)
    expect(await confirm(lost, {}, invited)).toMatchObject(isTaken)
    expect((await confirm(token, {}, invited)).status).toBe(200)
  })

  test('invited takes no invitation of a deleted account', async () => {
    const { email, from } = newcomer()
    const { account } = await invite(email)
    await app.admin('DELETE', `/api/v3/identity/account/${account}`)
    await ask(email, from, invited)
    expect((await readMails(app, email)).map(({ subject }) => subject)).not.toContain('Finish signing up at Signalbox')
  })

  test('with SIGN_UP_EMAIL_DOMAINS refuses every other domain, of a known address too', async () => {
    const domains = { SIGN_UP: 'open', SIGN_UP_EMAIL_DOMAINS: 'rail.example,road.example' }
    await using limited = await createTestApp({ env: { ...env, ...domains }, database: app.database, clock: app.clock })
    const { from } = newcomer()
    const other = 'known-elsewhere@example.com'
    await createUserWithPassword(app, { email: other }, PASSWORD)
    for (const email of [other, 'a@sub.rail.example', 'a@rail.example.org', 'a@notrail.example'])
      expect(await ask(email, from, limited)).toMatchObject({
        status: 422,
        body: { errors: [{ path: 'email', code: 'domain_not_allowed' }] },
      })
    const token = await linkTo('somebody@RAIL.example', from, limited)
    const before = newcomer()
    const foreign = await linkTo(before.email, before.from)
    expect(await confirm(foreign, {}, limited)).toMatchObject(isTaken)
    expect((await confirm(token, {}, limited)).status).toBe(200)
  })
})
