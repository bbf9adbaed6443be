import { describe, expect, test } from 'vitest'
import { createKeyedApp, createTestApp, type TestCall } from '../../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../../test/harness/app/known-password.ts'
import { readMails } from '../../../../test/harness/browser/mailbox.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { MEMBER_PATTERNS } from '../../access/system-roles.ts'
import { INVITATION_LIFETIME_MS, INVITE_PERMISSION, OPEN_LIMIT } from './invitation.ts'

const ACCOUNTS = '/api/v3/identity/account'
const ACCEPT = '/api/v3/auth/invitation/accept'
const PASSWORD = 'correct horse battery'
const env = { RATE_LIMIT_STRICT_PER_MINUTE: '100000' }

const app = await openForFile(createKeyedApp({ env }))
/** Another process on the same database. */
const other = await openForFile(createTestApp({ env, database: app.database, clock: app.clock }))

let count = 0
const newEmail = () => `invited-${count++}@example.com`
const roleOf = async (name: string): Promise<string> =>
  (await app.admin('GET', `/api/v3/identity/role?filters=name|eq|${name}`)).body.data[0].document_id
/** An account with a boss who has this role there. */
async function createAccount(role = 'account-admin') {
  const id = (await app.admin('POST', ACCOUNTS, { name: 'Acme' })).body.data.document_id as string
  const boss = await app.signInMember()
  await app.admin('POST', `${ACCOUNTS}/${id}/member`, { user: boss.userId })
  await setRoles(id, boss.userId, [role])
  return { id, boss, path: `${ACCOUNTS}/${id}/invitation` }
}
type Made = Awaited<ReturnType<typeof createAccount>>
const setRoles = async (account: string, user: string, roles: string[]) =>
  app.admin('PATCH', `${ACCOUNTS}/${account}/member`, { user, roles: await Promise.all(roles.map(roleOf)) })
/** A user with this address, signed in. */
async function createUser(email = newEmail()) {
  const id = await createUserWithPassword(app, { email }, PASSWORD)
  const login = await app.anonymous('POST', '/api/v3/auth/login/local', { email, password: PASSWORD })
  return { id, email, call: app.callAs(login.body.data.jwt) }
}
async function invite(by: TestCall, path: string, email: string, roles: string[] = []) {
  const reply = await by('POST', path, { email, roles: await Promise.all(roles.map(roleOf)) })
  expect(reply.status, JSON.stringify(reply.body)).toBe(201)
  return { id: reply.body.data.document_id as string, token: (await readMails(app, email))[0]!.token }
}
const accept = (token: string, more: object = {}, call = app.anonymous) => call('POST', ACCEPT, { token, ...more })
const members = async (account: string) =>
  (await app.admin('GET', `${ACCOUNTS}/${account}/member?sort=created_at`)).body.data
const lastAudit = async (action: string) =>
  (await app.admin('GET', `/api/v3/audit/log?filters=action|eq|${action}&sort=-created_at&page_size=1`)).body.data[0]
const invalid = { status: 410, body: { code: 'link_invalid' } }

describe('an invitation', () => {
  test('makes a new user a member with its roles, with a password and a verified address', async () => {
    const { id, boss, path } = await createAccount()
    const email = newEmail()
    const { token } = await invite(boss.call, path, email, ['account-viewer'])
    const reply = await accept(token, { password: PASSWORD, name: 'Ada' })
    expect(reply).toMatchObject({
      status: 200,
      body: { data: { account: { document_id: id, name: 'Acme' }, member: { email, name: 'Ada' }, is_new_user: true } },
    })
    const login = await app.anonymous('POST', '/api/v3/auth/login/local', { email, password: PASSWORD })
    expect(login.body.data).toMatchObject({ user: { email, name: 'Ada' }, account: { document_id: id } })
    const user = (await app.admin('GET', `/api/v3/identity/user/${login.body.data.user.document_id}`)).body.data
    expect(user.email_verified_at).not.toBeNull()
    expect((await members(id)).at(-1)).toMatchObject({
      user: user.document_id,
      roles: [await roleOf('account-viewer')],
    })
    expect(await lastAudit('account-invitation.accept')).toMatchObject({
      outcome: 'success',
      user: user.document_id,
      account: id,
    })
  })

  test('makes a user who has the address a member, when signed in, and verifies the address', async () => {
    const { id, boss, path } = await createAccount()
    const invitee = await createUser()
    const { token } = await invite(boss.call, path, invitee.email.toUpperCase(), ['account-developer'])
    const { body } = await app.admin('GET', `${path}?filters=email|eq|${invitee.email}`)
    expect(body.data).toMatchObject([{ status: 'open', accepted_by: null }])
    expect((await invitee.call('PATCH', '/api/v3/auth/user', { name: 'Grace' })).status).toBe(200)
    expect(await accept(token, {}, invitee.call)).toMatchObject({
      status: 200,
      body: { data: { is_new_user: false, member: { name: 'Grace' } } },
    })
    expect((await members(id)).at(-1)).toMatchObject({ user: invitee.id, roles: [await roleOf('account-developer')] })
    expect((await app.admin('GET', path)).body.data).toMatchObject([{ status: 'accepted', accepted_by: invitee.id }])
    const user = (await app.admin('GET', `/api/v3/identity/user/${invitee.id}`)).body.data
    expect(user.email_verified_at).not.toBeNull()
  })

  test('asks a user who has the address to sign in, and lets nobody else accept', async () => {
    const { id, boss, path } = await createAccount()
    const [invitee, stranger] = [await createUser(), await createUser()]
    const { token } = await invite(boss.call, path, invitee.email)
    expect(await accept(token, { password: PASSWORD })).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect(await lastAudit('account-invitation.accept')).toMatchObject({ detail: { reason: 'not_signed_in' } })
    expect(await accept(token, {}, stranger.call)).toMatchObject({ status: 409 })
    expect(await lastAudit('account-invitation.accept')).toMatchObject({
      outcome: 'failure',
      user: stranger.id,
      detail: { reason: 'other_address' },
    })
    const key = { name: 'key', permissions: ['contract:*'] }
    const asKey = app.callAs((await invitee.call('POST', '/api/v3/identity/api-key', key)).body.data.key)
    expect((await accept(token, {}, asKey)).status).toBe(409)
    expect((await accept(token, {}, app.callAs('no.such.token'))).status).toBe(401)
    expect(await members(id)).toHaveLength(1)
    expect((await accept(token, {}, invitee.call)).status).toBe(200)
  })

  test('works once, also by parallel requests in two processes', async () => {
    const { id, boss, path } = await createAccount()
    const { token } = await invite(boss.call, path, newEmail())
    const replies = await Promise.all(
      [app, other, app, other].map((item) => accept(token, { password: PASSWORD }, item.anonymous)),
    )
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(replies.every(({ status }) => [200, 409, 410].includes(status))).toBe(true)
    expect(await members(id)).toHaveLength(2)
    expect(await accept(token, { password: PASSWORD })).toMatchObject(invalid)
  })

  test('works until 7 days after it was sent, and not at that instant', async () => {
    const { boss, path } = await createAccount()
    const [first, second] = [await invite(boss.call, path, newEmail()), await invite(boss.call, path, newEmail())]
    app.clock.advance(INVITATION_LIFETIME_MS - 1)
    expect((await accept(first.token, { password: PASSWORD })).status).toBe(200)
    app.clock.advance(1)
    expect(await accept(second.token, { password: PASSWORD })).toMatchObject(invalid)
    const { data } = (await app.admin('GET', `${path}?filters=document_id|eq|${second.id}`)).body
    expect(data).toMatchObject([{ status: 'expired' }])
  })

  test('is revoked, and is replaced by a newer one to the same address', async () => {
    const { boss, path } = await createAccount()
    const email = newEmail()
    const older = await invite(boss.call, path, email)
    app.clock.advance(1)
    const newer = await invite(boss.call, path, email)
    expect(await accept(older.token, { password: PASSWORD })).toMatchObject(invalid)
    expect((await boss.call('DELETE', `${path}/${newer.id}`)).body.data.status).toBe('revoked')
    expect(await accept(newer.token, { password: PASSWORD })).toMatchObject(invalid)
    expect((await boss.call('DELETE', `${path}/${newer.id}`)).status).toBe(404)
    const third = await invite(boss.call, path, email)
    await accept(third.token, { password: PASSWORD })
    expect((await boss.call('DELETE', `${path}/${third.id}`)).status).toBe(409)
  })

  test('needs a password that follows the rules from a new user, and keeps the link until then', async () => {
    const { boss, path } = await createAccount()
    const email = newEmail()
    const { token } = await invite(boss.call, path, email)
    const codeOf = async (more: object) => (await accept(token, more)).body.errors?.[0].code
    expect(await codeOf({})).toBe('required')
    expect(await codeOf({ password: 'password123' })).toBe('common')
    expect(await codeOf({ password: email })).toBe('personal')
    expect(await codeOf({ password: PASSWORD, name: 'Support \u202e' })).toBe('unsafe_character')
    expect((await accept(token, { password: PASSWORD })).status).toBe(200)
  })

  test('of a member already is a conflict', async () => {
    const { id, boss, path } = await createAccount()
    const invitee = await createUser()
    const { token } = await invite(boss.call, path, invitee.email)
    await app.admin('POST', `${ACCOUNTS}/${id}/member`, { user: invitee.id })
    expect((await accept(token, {}, invitee.call)).status).toBe(409)
  })

  test('of a deleted account, and to a user who was disabled, is not valid', async () => {
    const { id, boss, path } = await createAccount()
    const { token } = await invite(boss.call, path, newEmail())
    const invitee = await createUser()
    const theirs = await invite(boss.call, path, invitee.email)
    await app.admin('POST', `/api/v3/identity/user/${invitee.id}/disable`)
    expect((await accept(theirs.token, {}, invitee.call)).status).toBe(401)
    expect((await accept(theirs.token, { password: PASSWORD })).status).toBe(409)
    await app.admin('DELETE', `${ACCOUNTS}/${id}`)
    expect(await accept(token, { password: PASSWORD })).toMatchObject(invalid)
  })
})

describe('inviting', () => {
  test('needs the permission in the account: 404 in another one, 403 without it', async () => {
    const [mine, theirs] = [await createAccount(), await createAccount()]
    const viewer = await createAccount('account-viewer')
    const body = { email: newEmail() }
    expect((await mine.boss.call('POST', theirs.path, body)).status).toBe(404)
    expect((await mine.boss.call('GET', theirs.path)).status).toBe(404)
    const { id } = await invite(theirs.boss.call, theirs.path, newEmail())
    expect((await mine.boss.call('DELETE', `${theirs.path}/${id}`)).status).toBe(404)
    expect((await mine.boss.call('DELETE', `${mine.path}/${id}`)).status).toBe(404)
    expect((await viewer.boss.call('POST', viewer.path, body)).status).toBe(403)
    expect((await viewer.boss.call('GET', viewer.path)).status).toBe(403)
  })

  test('gives no more than the inviter holds there, when it invites and when the user accepts', async () => {
    const { id, boss, path } = await createAccount()
    const body = { name: `inviters ${id}`, permissions: ['account-member:invite'], is_account_scoped: true }
    await app.admin('POST', '/api/v3/identity/role', body)
    const clerk = await app.signInMember()
    await app.admin('POST', `${ACCOUNTS}/${id}/member`, { user: clerk.userId })
    await setRoles(id, clerk.userId, [body.name])
    const asked = { email: newEmail(), roles: [await roleOf('account-viewer')] }
    expect(await clerk.call('POST', path, asked)).toMatchObject({ status: 403, body: { code: 'permission_denied' } })
    expect((await clerk.call('POST', path, { email: newEmail() })).status).toBe(201)

    const { token } = await invite(boss.call, path, newEmail(), ['account-admin'])
    await setRoles(id, boss.userId, ['account-viewer'])
    expect(await accept(token, { password: PASSWORD })).toMatchObject(invalid)
    expect(await lastAudit('account-invitation.accept')).toMatchObject({ detail: { reason: 'inviter_holds_less' } })
    await setRoles(id, boss.userId, ['account-admin'])
    expect((await accept(token, { password: PASSWORD })).status).toBe(200)
  })

  test('counts what the user brings along: an account-scoped role of its own', async () => {
    const { boss, path } = await createAccount()
    const user = await createUser()
    const body = { name: `publishers of ${user.id}`, permissions: ['event:publish'], is_account_scoped: true }
    const role = (await app.admin('POST', '/api/v3/identity/role', body)).body.data.document_id
    await app.admin('PATCH', `/api/v3/identity/user/${user.id}`, { roles: [role] })
    const { token } = await invite(boss.call, path, user.email)
    expect(await accept(token, {}, user.call)).toMatchObject(invalid)
  })

  test('gives no more than the token of the invitation held, whatever its owner holds', async () => {
    const { path } = await createAccount()
    const user = await createUser()
    const body = { name: `senders of ${user.id}`, permissions: ['event:publish'], is_account_scoped: true }
    const role = (await app.admin('POST', '/api/v3/identity/role', body)).body.data.document_id
    await app.admin('PATCH', `/api/v3/identity/user/${user.id}`, { roles: [role] })
    const permissions = [INVITE_PERMISSION, ...MEMBER_PATTERNS]
    const key = await app.admin('POST', '/api/v3/identity/api-key', { name: 'narrow', permissions })
    const byKey = await invite(app.callAs(key.body.data.key), path, user.email)
    expect(await accept(byKey.token, {}, user.call)).toMatchObject(invalid)
    expect(await lastAudit('account-invitation.accept')).toMatchObject({ detail: { reason: 'inviter_holds_less' } })
    app.clock.advance(1)
    const byAll = await invite(app.admin, path, user.email)
    expect((await accept(byAll.token, {}, user.call)).status).toBe(200)
  })

  test('takes account-scoped roles that exist, and an e-mail address', async () => {
    const { id, boss, path } = await createAccount()
    const post = (body: object) => boss.call('POST', path, body)
    expect((await post({ email: 'not an address' })).status).toBe(422)
    expect((await post({ email: newEmail(), roles: [id] })).body.errors[0].code).toBe('unknown_role')
    const administrator = await roleOf('administrator')
    expect((await post({ email: newEmail(), roles: [administrator] })).body.errors[0].code).toBe('not_account_scoped')
  })

  test('answers the same for an address that a user has and for one that nobody has', async () => {
    const { boss, path } = await createAccount()
    const user = await createUser()
    const strip = ({ document_id: _, email: __, ...rest }: Record<string, unknown>) => rest
    const [known, unknown] = [
      (await boss.call('POST', path, { email: user.email })).body,
      (await boss.call('POST', path, { email: newEmail() })).body,
    ]
    expect(strip(known.data)).toEqual(strip(unknown.data))
    expect(known.message).toBe(unknown.message)
  })

  test('goes to one address 5 times a day from an account, and 10 times an hour from all accounts together', async () => {
    const email = newEmail()
    const accounts = [await createAccount(), await createAccount(), await createAccount()]
    const ask = async ({ boss, path }: (typeof accounts)[number], times: number) => {
      const replies = await Promise.all(Array.from({ length: times }, () => boss.call('POST', path, { email })))
      return replies.map(({ status, body }) => (status === 201 ? 'sent' : body.code)).sort()
    }
    const limited = (sent: number, refused: number) => [
      ...Array.from({ length: refused }, () => 'limit_reached'),
      ...Array.from({ length: sent }, () => 'sent'),
    ]
    const [first, second, third] = accounts as [Made, Made, Made]
    expect(await ask(first, 7)).toEqual(limited(5, 2))
    expect(await ask(second, 5)).toEqual(limited(5, 0))
    expect(await ask(third, 2)).toEqual(limited(0, 2))
    expect((await third.boss.call('POST', third.path, { email: newEmail() })).status).toBe(201)
    await app.database.pool.query(`update mail_outbox set queued_at = queued_at - interval '1 hour'`)
    expect(await ask(third, 2)).toEqual(limited(2, 0))
    expect((await app.database.pool.query('select from mail_outbox where recipient = $1', [email])).rowCount).toBe(12)
  })

  test('is limited to 100 open invitations of an account', async () => {
    const { id, boss, path } = await createAccount()
    await app.database.pool.query(
      `insert into account_invitation
         (document_id, account, email, roles, token_hash, invited_by, expires_at, created_at, updated_at)
       select gen_random_uuid(), $1::uuid, 'many-' || n || '@example.com', '{}', sha256((n || ($1::uuid)::text)::bytea), $2::uuid,
         $3::timestamptz + interval '1 day', $3::timestamptz - interval '2 days', $3::timestamptz
       from generate_series(1, $4::int) n`,
      [id, boss.userId, new Date(app.clock.now()), OPEN_LIMIT],
    )
    expect((await boss.call('POST', path, { email: newEmail() })).body.code).toBe('limit_reached')
    expect((await boss.call('POST', path, { email: 'many-1@example.com' })).status).toBe(201)
  })

  test('shows no token in its answers, and records an event of the account for each step', async () => {
    const { id, boss, path } = await createAccount()
    const { token } = await invite(boss.call, path, newEmail())
    expect(JSON.stringify((await boss.call('GET', path)).body)).not.toContain(token)
    await accept(token, { password: PASSWORD })
    const gone = await invite(boss.call, path, newEmail())
    await boss.call('DELETE', `${path}/${gone.id}`)
    const { rows } = await app.database.pool.query(
      `select event from event_occurrence where account = $1 and event like 'account-invitation.%' order by created_at, document_id`,
      [id],
    )
    expect(rows.map(({ event }) => event)).toEqual([
      'account-invitation.create',
      'account-invitation.accept',
      'account-invitation.create',
      'account-invitation.delete',
    ])
  })
})

describe('a second invitation to an address', () => {
  test('replaces an earlier one of its own account to the address, and none of another account', async () => {
    const [first, second] = [await createAccount(), await createAccount()]
    const email = newEmail()
    const replaced = await invite(first.boss.call, first.path, email)
    const elsewhere = await invite(second.boss.call, second.path, email)
    const latest = await invite(first.boss.call, first.path, email)
    expect(await accept(replaced.token, { password: PASSWORD })).toMatchObject(invalid)
    expect(await accept(latest.token, { password: PASSWORD })).toMatchObject({ status: 200 })
    expect((await app.anonymous('POST', ACCEPT, { token: elsewhere.token })).body.code).not.toBe('link_invalid')
  })
})
