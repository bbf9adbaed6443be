import { describe, expect, test } from 'vitest'
import { createTestApp, type TestCall } from '../../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../../test/harness/app/known-password.ts'
import { readMails } from '../../../../test/harness/browser/mailbox.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { EMAIL_CHANGE_LIFETIME_MS, EMAIL_CHANGES_LIMIT, EMAIL_CHANGES_WINDOW_MS } from './email-change.ts'

const OWN = '/api/v3/auth/user'
const CHANGE = `${OWN}/email-change`
const CONFIRM = `${CHANGE}/confirm`
const PASSWORD = 'correct horse battery'

const openApp = () => createTestApp({ env: { RATE_LIMIT_STRICT_PER_MINUTE: '100000', APP_ENV: 'development' } })
const app = await openForFile(openApp())

let count = 0
async function createUser(service = app) {
  const email = `mover-${count++}@example.com`
  const id = await createUserWithPassword(service, { email, name: 'Vera Quill' }, PASSWORD)
  const signIn = (address = email) =>
    service.anonymous('POST', '/api/v3/auth/login/local', { email: address, password: PASSWORD })
  const session = async () => service.callAs((await signIn()).body.data.jwt)
  return { id, email, next: `new-${email}`, signIn, session, call: await session() }
}
const tokenOf = async (address: string, service = app) => (await readMails(service, address))[0]?.token ?? ''
const confirm = (token: string, call: TestCall = app.anonymous) => call('POST', CONFIRM, { token })
const storedOf = async (id: string) =>
  (await app.database.pool.query('select email, email_verified_at from "user" where document_id = $1', [id])).rows[0]

/** A user with an open change, and the tokens of both links. */
async function askFor(next?: string, service = app) {
  const user = await createUser(service)
  const email = next ?? user.next
  expect(await user.call('POST', CHANGE, { email })).toMatchObject({ status: 202, body: { data: { accepted: true } } })
  return { ...user, next: email, toNew: await tokenOf(email, service), toOld: await tokenOf(user.email, service) }
}
const invalid = { status: 410, body: { code: 'link_invalid' } }

describe('a change of the own address', () => {
  test.each([
    ['the new address first', 0],
    ['the present address first', 1],
  ])('is made with the second link, %s', async (_name, first) => {
    const user = await askFor()
    const tokens = first === 0 ? [user.toNew, user.toOld] : [user.toOld, user.toNew]
    expect(await confirm(tokens[0]!)).toMatchObject({ status: 200, body: { data: { is_changed: false } } })
    expect(await storedOf(user.id)).toMatchObject({ email: user.email })
    const { email_change } = (await user.call('GET', OWN)).body.data
    expect(email_change).toMatchObject({
      email: user.next,
      is_new_confirmed: first === 0,
      is_present_confirmed: first === 1,
    })
    expect(await confirm(tokens[0]!)).toMatchObject(invalid)
    expect(await confirm(tokens[1]!)).toMatchObject({ status: 200, body: { data: { is_changed: true } } })
    expect(await storedOf(user.id)).toEqual({ email: user.next, email_verified_at: new Date(app.clock.now()) })
    expect((await user.call('GET', OWN)).body.data).toMatchObject({ email: user.next, email_change: null })
    expect((await user.signIn()).status).toBe(401)
    expect((await user.signIn(user.next)).status).toBe(200)
    expect(await confirm(tokens[1]!)).toMatchObject(invalid)
  })

  test('is recorded as a change of the user, and queued for provisioning, with its second link only', async () => {
    const target = await app.admin('POST', '/api/v3/provisioning/target', { url: 'https://target.example.com/' })
    expect(target.status).toBe(201)
    const user = await askFor()
    const queued = async () =>
      (
        await app.database.pool.query(
          'select type, email, name from provisioning_delivery where target = $1 and user_id = $2 order by position desc',
          [target.body.data.document_id, user.id],
        )
      ).rows[0]
    const events = async () =>
      (
        await app.database.pool.query(
          `select event from event_occurrence where resource_id = $1 order by document_id desc limit 1`,
          [user.id],
        )
      ).rows[0].event
    expect(await events()).toBe('user.request-email-change')
    await confirm(user.toNew)
    expect(await events()).toBe('user.request-email-change')
    expect(await queued()).toMatchObject({ email: user.email })
    await confirm(user.toOld)
    expect(await events()).toBe('user.update')
    expect(await queued()).toMatchObject({ type: 'user.updated', email: user.next })
    const { body } = await app.admin('GET', `/api/v3/audit/log?filters=user|eq|${user.id}&sort=-created_at`)
    const actions = body.data.map((row: { action: string }) => row.action)
    expect(actions.slice(0, 3)).toEqual([
      'user.confirm-email-change',
      'user.confirm-email-change',
      'user.request-email-change',
    ])
    expect(JSON.stringify(body.data)).not.toContain(user.toNew)
    await user.call('PATCH', OWN, { name: 'Ada' })
    expect(await queued()).toMatchObject({ type: 'user.updated', name: 'Ada' })
    await user.call('DELETE', OWN, { email: user.next })
    expect(await queued()).toMatchObject({ type: 'user.deprovisioned' })
    await app.admin('DELETE', `/api/v3/provisioning/target/${target.body.data.document_id}`)
  })

  test('ends the other sessions and keeps the one that asked, and the API keys', async () => {
    const user = await askFor()
    const other = await user.session()
    const key = { name: 'key', permissions: ['contract:*'] }
    const asKey = app.callAs((await user.call('POST', '/api/v3/identity/api-key', key)).body.data.key)
    await confirm(user.toNew)
    await confirm(user.toOld)
    const statuses = [user.call, other, asKey].map(async (call) => (await call('GET', OWN)).status)
    expect(await Promise.all(statuses)).toEqual([200, 401, 200])
  })

  test('does not revive the session that asked, when that signed out meanwhile', async () => {
    const user = await askFor()
    const other = await user.session()
    await user.call('POST', '/api/v3/auth/session/revoke')
    await confirm(user.toNew)
    expect((await confirm(user.toOld)).body.data).toEqual({ is_changed: true })
    const statuses = [user.call, other].map(async (call) => (await call('GET', OWN)).status)
    expect(await Promise.all(statuses)).toEqual([401, 401])
  })

  test('expires an hour after the request, at the instant', async () => {
    await using own = await openApp()
    const user = await askFor(undefined, own)
    own.clock.advance(EMAIL_CHANGE_LIFETIME_MS - 1)
    expect((await confirm(user.toNew, own.anonymous)).status).toBe(200)
    own.clock.advance(1)
    expect(await confirm(user.toOld, own.anonymous)).toMatchObject(invalid)
    expect((await user.signIn()).status).toBe(200)
  })

  test('replaces an earlier one, whose links are not valid any more', async () => {
    const user = await askFor()
    await user.call('POST', CHANGE, { email: `other-${user.next}` })
    expect(await confirm(user.toNew)).toMatchObject(invalid)
    expect(await confirm(user.toOld)).toMatchObject(invalid)
    expect((await user.call('GET', OWN)).body.data.email_change.email).toBe(`other-${user.next}`)
  })

  test('does not take both proofs from one mailbox: a link confirms the address that it was sent to', async () => {
    const user = await askFor()
    await confirm(user.toNew)
    expect(await confirm(user.toNew)).toMatchObject(invalid)
    expect(await storedOf(user.id)).toMatchObject({ email: user.email })
  })

  test('is withdrawn by the user, once', async () => {
    const user = await askFor()
    expect(await user.call('DELETE', CHANGE)).toMatchObject({ status: 200 })
    expect(await user.call('DELETE', CHANGE)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    expect(await confirm(user.toNew)).toMatchObject(invalid)
    expect((await user.call('GET', OWN)).body.data.email_change).toBeNull()
  })

  test.each([
    [
      'sign-out everywhere',
      (user: { call: TestCall }) => user.call('POST', '/api/v3/auth/session/revoke', { all: true }),
    ],
    [
      'a reset by mail',
      async ({ email }: { email: string }) => {
        await app.anonymous('POST', '/api/v3/auth/password/forgot', { email })
        const body = { token: await tokenOf(email), password: `${PASSWORD} two` }
        return app.anonymous('POST', '/api/v3/auth/password/reset', body)
      },
    ],
    [
      'a change of the password',
      (user: { call: TestCall }) =>
        user.call('POST', '/api/v3/auth/password/change', {
          current_password: PASSWORD,
          new_password: `${PASSWORD} two`,
        }),
    ],
    ['disabling', ({ id }: { id: string }) => app.admin('POST', `/api/v3/identity/user/${id}/disable`)],
    ['deletion', ({ id }: { id: string }) => app.admin('DELETE', `/api/v3/identity/user/${id}`)],
    [
      'a new address by an administrator',
      ({ id }: { id: string }) =>
        app.admin('PATCH', `/api/v3/identity/user/${id}`, { email: `by-admin-${id}@example.com` }),
    ],
  ] as const)('ends with %s', async (_name, act) => {
    const user = await askFor()
    expect((await act(user)).status).toBe(200)
    expect(await confirm(user.toNew)).toMatchObject(invalid)
    expect(await confirm(user.toOld)).toMatchObject(invalid)
    const { rows } = await app.database.pool.query(
      'select count(*)::int as open from email_change where "user" = $1 and ended_at is null',
      [user.id],
    )
    expect(rows[0].open).toBe(0)
  })

  test('disabled and enabled again, stays ended', async () => {
    const user = await askFor()
    await app.admin('POST', `/api/v3/identity/user/${user.id}/disable`)
    await app.admin('POST', `/api/v3/identity/user/${user.id}/enable`)
    expect(await confirm(user.toNew)).toMatchObject(invalid)
  })
})

describe('an address that another user has', () => {
  test('gets the same answer and the same mails', async () => {
    const other = await createUser()
    const [free, taken] = [await createUser(), await createUser()]
    const answers = [
      await free.call('POST', CHANGE, { email: free.next }),
      await taken.call('POST', CHANGE, { email: other.email.toUpperCase() }),
    ]
    expect(answers[1]!.status).toBe(202)
    expect(answers[1]!.body).toEqual(answers[0]!.body)
    const [own] = await readMails(app, taken.email)
    expect(own?.subject).toBe((await readMails(app, free.email))[0]?.subject)
  })

  test('is not taken over: its owner ends the change by the link', async () => {
    const other = await createUser()
    const user = await askFor(other.email)
    expect((await confirm(user.toOld)).body.data).toEqual({ is_changed: false })
    expect(await confirm(user.toNew)).toMatchObject(invalid)
    expect(await storedOf(user.id)).toMatchObject({ email: user.email })
    expect((await user.call('GET', OWN)).body.data.email_change).toBeNull()
  })

  test('also not when it was taken between the two links', async () => {
    const user = await askFor()
    await confirm(user.toNew)
    await app.admin('POST', '/api/v3/identity/user', { email: user.next })
    expect(await confirm(user.toOld)).toMatchObject(invalid)
    expect(await storedOf(user.id)).toMatchObject({ email: user.email })
  })

  test('goes to one of two users who confirm it at once', async () => {
    const email = `wanted-${count}@example.com`
    const [earlier, later] = [await askFor(email), await askFor(email)]
    const { rows } = await app.database.pool.query(
      'select count(*)::int as mails from kept_mail where recipient = $1',
      [email],
    )
    expect(rows[0].mails).toBe(2)
    const [second, first] = await readMails(app, email)
    for (const { toOld } of [earlier, later]) await confirm(toOld)
    const answers = await Promise.all([confirm(first!.token), confirm(second!.token)])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 410])
  })
})

describe('parallel uses', () => {
  test('of both links make one change', async () => {
    const user = await askFor()
    const answers = await Promise.all([
      confirm(user.toNew),
      confirm(user.toOld),
      confirm(user.toNew),
      confirm(user.toOld),
    ])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 410, 410])
    expect(answers.filter(({ body }) => body.data?.is_changed === true)).toHaveLength(1)
    expect(await storedOf(user.id)).toMatchObject({ email: user.next })
  })

  test('of requests never exceed the limit of a day, and leave one open change', async () => {
    const user = await createUser()
    const asks = Array.from({ length: EMAIL_CHANGES_LIMIT + 3 }, (_, at) =>
      user.call('POST', CHANGE, { email: `${at}-${user.next}` }),
    )
    const statuses = (await Promise.all(asks)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 202)).toHaveLength(EMAIL_CHANGES_LIMIT)
    expect(statuses.filter((status) => status === 409)).toHaveLength(3)
    const { rows } = await app.database.pool.query(
      'select count(*)::int as open from email_change where "user" = $1 and ended_at is null',
      [user.id],
    )
    expect(rows[0].open).toBe(1)
    const refused = await user.call('POST', CHANGE, { email: user.next })
    expect(refused).toMatchObject({ status: 409, body: { code: 'limit_reached' } })
  })
})

test('the limit ends a day after the requests, and a sweep frees nothing earlier', async () => {
  await using own = await openApp()
  const user = await createUser(own)
  for (let at = 0; at < EMAIL_CHANGES_LIMIT; at += 1) await user.call('POST', CHANGE, { email: `${at}-${user.next}` })
  own.clock.advance(EMAIL_CHANGES_WINDOW_MS - 1)
  expect((await own.app.maintenance.sweep()).emailChanges).toBe(0)
  const later = await user.session()
  expect((await later('POST', CHANGE, { email: user.next })).status).toBe(409)
  own.clock.advance(1)
  expect((await later('POST', CHANGE, { email: user.next })).status).toBe(202)
  own.clock.advance(1)
  expect((await own.app.maintenance.sweep()).emailChanges).toBe(EMAIL_CHANGES_LIMIT)
})

describe('a refused request', () => {
  test.each([
    ['no address', {}],
    ['no text', { email: 7 }],
    ['no address in it', { email: 'nobody' }],
    ['a display name', { email: 'Vera <vera@example.com>' }],
    ['a line end', { email: 'vera@example.com\nbcc: all@example.com' }],
    ['NUL', { email: 'vera\u0000@example.com' }],
    ['a lone surrogate', { email: 'vera\ud800@example.com' }],
    ['255 characters', { email: `${'a'.repeat(243)}@example.com` }],
    ['another member', { email: 'vera@example.com', user: 'x' }],
  ])('with %s', async (_name, body) => {
    const { call } = await createUser()
    const text = JSON.stringify(body)
    expect((await call('POST', CHANGE, text)).status).toBeOneOf([400, 422])
  })

  test('for the present address, in any case', async () => {
    const user = await createUser()
    expect(await user.call('POST', CHANGE, { email: user.email.toUpperCase() })).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'email', code: 'unchanged' }] },
    })
  })

  test('without a token, and by an API key, also of one account and of an administrator', async () => {
    expect((await app.anonymous('POST', CHANGE, { email: 'a@example.com' })).status).toBe(401)
    const key = await app.admin('POST', '/api/v3/identity/api-key', { name: 'all', permissions: ['*:*'] })
    const asKey = app.callAs(key.body.data.key)
    expect((await asKey('POST', CHANGE, { email: 'a@example.com' })).status).toBe(409)
    expect((await asKey('DELETE', CHANGE)).status).toBe(409)
  })

  test('without a sign-in of the last ten minutes', async () => {
    await using own = await openApp()
    const user = await createUser(own)
    own.clock.advance(600_000)
    expect((await user.call('POST', CHANGE, { email: user.next })).status).toBe(202)
    own.clock.advance(1)
    expect(await user.call('POST', CHANGE, { email: user.next })).toMatchObject({
      status: 403,
      body: { code: 'fresh_factor_required' },
    })
  })

  test.each(['', 'x', 'x'.repeat(200), 'x'.repeat(201), '\u0000', '../..'])('with the token %j', async (token) => {
    expect((await confirm(token)).status).toBeOneOf([400, 410, 422])
  })

  test('where no mail is sent', async () => {
    await using silent = await createTestApp({ env: { APP_ENV: 'certification' } })
    const member = await silent.signInMember()
    expect(await member.call('POST', CHANGE, { email: 'new@example.com' })).toMatchObject({
      status: 503,
      body: { code: 'dependency_unavailable' },
    })
  })
})

test('the mail to the present address shows the new one without a link in it, and no mail says who asks', async () => {
  const user = await askFor('visit-evil.example@example.com')
  const [toOld] = await readMails(app, user.email)
  expect(toOld?.text).toContain('"visit-evil. example @ example. com"')
  const [toNew] = await readMails(app, 'visit-evil.example@example.com')
  expect(toNew?.text).not.toContain(user.email)
  expect(toNew?.text).not.toContain('Vera')
})
