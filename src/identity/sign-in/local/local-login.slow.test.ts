import { Piscina } from 'piscina'
import { describe, expect, test, vi } from 'vitest'
import { buildIdentityApp } from '../../../../test/harness/app/identity-app.ts'
import { SMALL_HASH_COST } from '../../../../test/harness/app/small-hash.ts'
import { untilWaiting } from '../../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { systemRandom } from '../../../base/random.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import type { HashWork } from '../../password/hash-thread.ts'
import { buildPasswordHashing } from '../../password/password.ts'
import { issueSession } from '../../session/session.ts'
import { verifySessionToken } from '../../session/token/session-token.ts'

const LOGIN = '/api/v3/auth/login/local'
const PASSWORD = 'correct horse'

const app = await openForFile(buildIdentityApp())
const root = await app.administrator()

let count = 0
/** A new user with an e-mail and a network address of its own, so that tests do not throttle each other. */
async function newcomer() {
  count += 1
  const { user } = await app.user(`person-${count}`, [], PASSWORD)
  return { user, address: `10.1.${count}.1` }
}
const logIn = (email: string, password: string, address = '10.0.0.1') =>
  app.call('POST', LOGIN, { body: { email, password }, address })
const failed = { status: 401, body: { code: 'login_failed' } }
const auditOf = async (address: string) =>
  (await app.call('GET', `/api/v3/audit/log?filters=address|eq|${address}&sort=created_at`, { token: root.token })).body
    .data

describe('a sign-in with the correct password', () => {
  test('answers the login payload with a valid session and no-store', async () => {
    const { user, address } = await newcomer()
    const reply = await logIn(user.email, PASSWORD, address)
    expect(reply.status).toBe(200)
    expect(reply.headers['cache-control']).toBe('no-store')
    const { data } = reply.body
    expect(data).toEqual({
      jwt: expect.any(String),
      token_type: 'Bearer',
      expires_in: 3600,
      refresh_token: expect.stringMatching(/^sbr_/),
      user: { document_id: user.id, email: user.email, name: user.name, avatar_url: null },
      account: null,
      is_new_user: false,
      redirect_url: null,
    })
    const verified = verifySessionToken(app.keys, data.jwt, new Date(app.clock.now()))
    expect(verified).toMatchObject({ ok: true, claims: { userId: user.id } })
    expect((await app.call('GET', '/api/v3/auth/session', { token: data.jwt })).status).toBe(200)
    const refresh = { body: { refresh_token: data.refresh_token } }
    expect((await app.call('POST', '/api/v3/auth/session/refresh', refresh)).status).toBe(200)
  })

  test('ignores the case of the address, and names the current account', async () => {
    const { user, address } = await newcomer()
    const account = await app.call('POST', '/api/v3/identity/account', { token: root.token, body: { name: 'Home' } })
    const { document_id } = account.body.data
    const path = `/api/v3/identity/account/${document_id}/member`
    await app.call('POST', path, { token: root.token, body: { user: user.id } })
    const reply = await logIn(user.email.toUpperCase(), PASSWORD, address)
    expect(reply.body.data.account).toEqual({ document_id, name: 'Home' })
  })

  test('is audited with its session and without the password', async () => {
    const { user, address } = await newcomer()
    await logIn(user.email, PASSWORD, address)
    const log = await auditOf(address)
    expect(log).toMatchObject([{ action: 'login.local', outcome: 'success', user: user.id }])
    expect(log[0].session).toBe(log[0].target)
    expect(JSON.stringify(await app.db.selectFrom('audit_log').selectAll().execute())).not.toContain(PASSWORD)
  })

  test.each([
    ['lower', { memory: 8, passes: 1 }],
    ['higher', { memory: 8192, passes: 3 }],
  ])('replaces a hash of a %s cost by one of the present cost, and keeps that one', async (_name, former) => {
    const { user, address } = await newcomer()
    const password_hash = await buildPasswordHashing(former, systemRandom).hash(PASSWORD)
    await app.db.updateTable('user').set({ password_hash }).where('document_id', '=', user.id).execute()
    const readHash = async () => {
      const rows = app.db.selectFrom('user').select('password_hash').where('document_id', '=', user.id)
      return (await rows.executeTakeFirstOrThrow()).password_hash
    }
    expect(await logIn(user.email, 'wrong horse', address)).toMatchObject(failed)
    expect(await readHash()).toBe(password_hash)
    expect((await logIn(user.email, PASSWORD, address)).status).toBe(200)
    const present = await readHash()
    expect(present).toMatch(/^\$argon2id\$v=19\$m=64,t=1,p=1\$/)
    expect((await logIn(user.email, PASSWORD, address)).status).toBe(200)
    expect(await readHash()).toBe(present)
  })
})

describe('a refused sign-in', () => {
  test('has the same answer for an unknown address, a wrong password, no password and a disabled user', async () => {
    const [known, disabled] = [await newcomer(), await newcomer()]
    const social = await app.user('social-only')
    await app.db.updateTable('user').set({ is_actived: false }).where('document_id', '=', disabled.user.id).execute()
    const replies = [
      await logIn('nobody@example.test', PASSWORD, known.address),
      await logIn(known.user.email, 'wrong horse', known.address),
      await logIn(social.user.email, PASSWORD, known.address),
      await logIn(disabled.user.email, PASSWORD, known.address),
    ]
    for (const reply of replies) expect(reply).toMatchObject(failed)
    const visible = replies.map(({ body: { request_id: _id, ...body }, headers }) => [
      body,
      Object.keys(headers).sort(),
    ])
    for (const answer of visible) expect(answer).toEqual(visible[0])
    const log = await auditOf(known.address)
    expect(log.map((entry: { detail: unknown }) => entry.detail)).toEqual([
      { reason: 'unknown_email' },
      { reason: 'wrong_password' },
      { reason: 'no_password' },
      { reason: 'disabled' },
    ])
    expect(log.map((entry: { outcome: string }) => entry.outcome)).toEqual(Array(4).fill('failure'))
  })

  test('costs a password check at the configured cost for an unknown address too', async () => {
    const { user, address } = await newcomer()
    // Argon2id is computed by threads: what they are asked for is what a sign-in costs.
    const asked = vi.spyOn(Piscina.prototype, 'run')
    const measure = async (email: string) => {
      asked.mockClear()
      expect(await logIn(email, 'wrong horse', address)).toMatchObject(failed)
      return asked.mock.calls.map(([work]) => {
        const { memory, passes, parallelism, tagLength } = work as HashWork
        return { memory, passes, parallelism, tagLength }
      })
    }
    try {
      const known = await measure(user.email)
      expect(known).toEqual([{ ...SMALL_HASH_COST, parallelism: 1, tagLength: 32 }])
      expect(await measure('nobody@x.test')).toEqual(known)
    } finally {
      asked.mockRestore()
    }
  })

  test.each([
    ['no body', undefined],
    ['no password', { email: 'a@b.test' }],
    ['an empty password', { email: 'a@b.test', password: '' }],
    ['a password that is no text', { email: 'a@b.test', password: 7 }],
    ['an unknown member', { email: 'a@b.test', password: 'x', otp: '1' }],
  ])('with %s is a 422 and not counted as an attempt', async (_name, body) => {
    const countRows = async () => (await app.db.selectFrom('login_throttle').selectAll().execute()).length
    const before = await countRows()
    expect((await app.call('POST', LOGIN, { body, address: '10.9.9.9' })).status).toBe(422)
    expect(await countRows()).toBe(before)
  })
})

describe('a sign-in concurrent with a change of the user', () => {
  const now = () => new Date(app.clock.now())

  test('is refused when the user is disabled after the password check', async () => {
    const { user, address } = await newcomer()
    const disabled = Promise.withResolvers<void>()
    const mayCommit = Promise.withResolvers<void>()
    const disabling = inTransaction(app.db, async (tx) => {
      await tx.updateTable('user').set({ is_actived: false }).where('document_id', '=', user.id).execute()
      disabled.resolve()
      await mayCommit.promise
    })
    await disabled.promise
    const signingIn = logIn(user.email, PASSWORD, address)
    await untilWaiting(app.db, 1)
    mayCommit.resolve()
    await disabling
    expect(await signingIn).toMatchObject(failed)
  })

  test('is revoked with the other sessions when the password changes while its session is being opened', async () => {
    const { user } = await newcomer()
    const opened = Promise.withResolvers<string>()
    const mayCommit = Promise.withResolvers<void>()
    const deps = { ids: app.ids, random: systemRandom, keys: app.keys }
    const opening = inTransaction(app.db, async (tx) => {
      const origin = { address: null, userAgent: null }
      const session = await issueSession(deps, tx, { userId: user.id, origin, now: now() })
      opened.resolve(session?.jwt ?? '')
      await mayCommit.promise
    })
    const jwt = await opened.promise
    const path = `/api/v3/identity/user/${user.id}`
    const changing = app.call('PATCH', path, { token: root.token, body: { password: 'another password' } })
    await untilWaiting(app.db, 1)
    mayCommit.resolve()
    await opening
    expect((await changing).status).toBe(200)
    expect((await app.call('GET', '/api/v3/auth/session', { token: jwt })).status).toBe(401)
  })
})
