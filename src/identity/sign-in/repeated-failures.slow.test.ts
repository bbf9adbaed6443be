import { describe, expect, test } from 'vitest'
import { buildIdentityApp } from '../../../test/harness/app/identity-app.ts'
import { testPasswords } from '../../../test/harness/app/small-hash.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { clearLoginThrottle } from '../throttle/login-attempt.ts'
import { deleteForgottenThrottles } from '../throttle/login-throttle.store.ts'
import { hashSubject } from '../throttle/login-throttle.ts'
import { resetPassword } from '../user/password/administrator.ts'

const LOGIN = '/api/v3/auth/login/local'
const PASSWORD = 'correct horse'

const app = await openForFile(buildIdentityApp())

let count = 0
/** A new user with an e-mail and a network address of its own, so that tests do not throttle each other. */
async function newcomer() {
  count += 1
  const { user } = await app.user(`person-${count}`, [], PASSWORD)
  return { user, address: `10.1.${count}.1` }
}
/** Every tenth is of a user, the others are of nobody. */
const guessEmail = async (step: number) =>
  step % 10 === 0 ? (await newcomer()).user.email : `guess-${step}@example.test`
const logIn = (email: string, password: string, address = '10.0.0.1') =>
  app.call('POST', LOGIN, { body: { email, password }, address })
const failed = { status: 401, body: { code: 'login_failed' } }

describe('repeated failures', () => {
  const throttled = { status: 429, body: { code: 'rate_limited' } }

  test('with one e-mail from one address delay the pair, then lock it for 15 minutes, also for the correct password', async () => {
    const { user, address } = await newcomer()
    const attempt = (password = 'wrong horse') => logIn(user.email, password, address)
    for (let step = 1; step <= 5; step += 1) expect(await attempt()).toMatchObject(failed)
    expect(await attempt(PASSWORD)).toMatchObject({ ...throttled, headers: { 'retry-after': '1' } })
    for (let step = 6; step <= 10; step += 1) {
      app.clock.advance(30_000)
      expect(await attempt()).toMatchObject(failed)
    }
    expect(await attempt(PASSWORD)).toMatchObject({ ...throttled, headers: { 'retry-after': '900' } })
    app.clock.advance(15 * 60_000 - 1)
    expect(await attempt(PASSWORD)).toMatchObject(throttled)
    app.clock.advance(1)
    expect((await attempt(PASSWORD)).status).toBe(200)
    expect(await attempt()).toMatchObject(failed)
  })

  test('of an attacker do not lock out the user, who signs in from another address within 30 s', async () => {
    const { user, address } = await newcomer()
    let bots = 0
    const fail = () => logIn(user.email, 'wrong horse', `10.40.${bots++}.1`)
    for (let step = 1; step <= 20; step += 1) {
      expect(await fail()).toMatchObject(failed)
      app.clock.advance(30_000)
    }
    expect(await fail()).toMatchObject(failed)
    expect(await logIn(user.email, PASSWORD, address)).toMatchObject({ ...throttled, headers: { 'retry-after': '30' } })
    app.clock.advance(15_000)
    expect(await fail()).toMatchObject(throttled)
    app.clock.advance(15_000)
    expect(await fail()).toMatchObject(failed)
    expect((await logIn(user.email, PASSWORD, address)).status).toBe(200)
  })

  test('of one network address do not lock the user at another one', async () => {
    const { user, address } = await newcomer()
    for (let step = 1; step <= 10; step += 1) {
      expect(await logIn(user.email, 'wrong horse', '10.41.0.1')).toMatchObject(failed)
      app.clock.advance(30_000)
    }
    expect(await logIn(user.email, PASSWORD, '10.41.0.1')).toMatchObject(throttled)
    expect((await logIn(user.email, PASSWORD, address)).status).toBe(200)
    expect(await logIn(user.email, PASSWORD, '10.41.0.1')).toMatchObject(throttled)
  })

  test('do not lock a network address: after the thousandth, the delay is one minute', async () => {
    const { user } = await newcomer()
    const address = '10.42.0.1'
    const attempt = (step: number) => logIn(`colleague-${step}@example.test`, 'wrong horse', address)
    expect(await attempt(1)).toMatchObject(failed)
    await app.db
      .updateTable('login_throttle')
      .set({ failures: 1_000 })
      .where('address_hash', '=', hashSubject('address', address))
      .where('email_hash', '=', Buffer.alloc(0))
      .execute()
    expect(await attempt(2)).toMatchObject(failed)
    expect(await attempt(3)).toMatchObject({ ...throttled, headers: { 'retry-after': '60' } })
    app.clock.advance(60_000)
    expect(await attempt(3)).toMatchObject(failed)
    app.clock.advance(60_000)
    expect((await logIn(user.email, PASSWORD, address)).status).toBe(200)
  })

  test.each([
    ['an administrator sets another password', 'patch'],
    ['the command sets another password', 'command'],
  ])('with one e-mail are cleared when %s, those of the network address are not', async (_name, by) => {
    const { user, address } = await newcomer()
    for (let step = 1; step <= 10; step += 1) {
      expect(await logIn(user.email, 'wrong horse', address)).toMatchObject(failed)
      app.clock.advance(30_000)
    }
    const password = 'a password set anew'
    expect(await logIn(user.email, PASSWORD, address)).toMatchObject(throttled)
    const path = `/api/v3/identity/user/${user.id}`
    if (by === 'patch')
      await app.call('PATCH', path, { token: (await app.administrator('resetter')).token, body: { password } })
    else {
      const now = new Date(app.clock.now())
      await resetPassword({ passwords: testPasswords }, app.db, { email: user.email.toUpperCase(), password, now })
    }
    expect((await logIn(user.email, password, address)).status).toBe(200)
    const { failures } = await app.db
      .selectFrom('login_throttle')
      .select('failures')
      .where('email_hash', '=', Buffer.alloc(0))
      .where('address_hash', '=', hashSubject('address', address))
      .executeTakeFirstOrThrow()
    expect(failures).toBe(10)
  })

  test('with an unknown address get the same answers as with a known one', async () => {
    const { user } = await newcomer()
    const statuses = async (email: string, net: number) => {
      const seen: unknown[] = []
      for (let step = 0; step < 7; step += 1) {
        const reply = await logIn(email, 'wrong horse', `10.${net}.${step}.1`)
        seen.push([reply.status, reply.body.detail, reply.headers['retry-after']])
      }
      return seen
    }
    expect(await statuses('unknown-one@example.test', 3)).toEqual(await statuses(user.email, 4))
  })

  test('from one network address delay it for all e-mail addresses and for its /64', async () => {
    for (let step = 0; step < 20; step += 1)
      expect(await logIn(await guessEmail(step), 'wrong horse', `2001:db8:5:5::${step + 1}`)).toMatchObject(failed)
    const { user } = await newcomer()
    expect(await logIn(user.email, PASSWORD, '2001:db8:5:5:ffff::1')).toMatchObject(throttled)
    expect((await logIn(user.email, PASSWORD, '2001:db8:5:6::1')).status).toBe(200)
  })

  test('are all counted when concurrent: a burst gets no more guesses than a sequence', async () => {
    const { user } = await newcomer()
    // Strangers have 19 places at least, on a machine with one core too: nobody of this burst is refused for want of one.
    const replies = await Promise.all(
      Array.from({ length: 19 }, (_, step) => logIn(user.email, 'wrong horse', `10.6.${step}.1`)),
    )
    const statuses = replies.map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).toHaveLength(5)
    expect(statuses.filter((status) => status === 429)).toHaveLength(14)
  })

  test('do not deadlock with a concurrent reset', async () => {
    const { user } = await newcomer()
    const attempts = Array.from({ length: 12 }, (_, step) => logIn(user.email, 'wrong horse', `10.43.${step % 4}.1`))
    const resets = Array.from({ length: 4 }, () => clearLoginThrottle(app.db, user.id))
    const replies = await Promise.all(attempts)
    await Promise.all(resets)
    for (const { status } of replies) expect([401, 429]).toContain(status)
  })

  test('are not counted for correct passwords from a busy office', async () => {
    const { user } = await newcomer()
    // One more than the failures after which an address is delayed.
    for (let step = 0; step < 21; step += 1) expect((await logIn(user.email, PASSWORD, '10.7.0.1')).status).toBe(200)
  })

  test('of the network address are not cleared by one known account', async () => {
    const { user } = await newcomer()
    for (let step = 0; step < 19; step += 1) await logIn(await guessEmail(step), 'wrong horse', '10.8.0.1')
    expect((await logIn(user.email, PASSWORD, '10.8.0.1')).status).toBe(200)
    expect(await logIn('other@example.test', 'wrong horse', '10.8.0.1')).toMatchObject(failed)
    expect(await logIn(user.email, PASSWORD, '10.8.0.1')).toMatchObject(throttled)
  })

  test('are stored without names, and maintenance deletes the old ones', async () => {
    const rows = await app.db.selectFrom('login_throttle').selectAll().execute()
    expect(rows.length).toBeGreaterThan(0)
    expect(JSON.stringify(rows)).not.toMatch(/example\.test|10\.\d/)
    const before = new Date(app.clock.now() + 1)
    expect(await deleteForgottenThrottles(app.db, before, 1_000)).toBe(rows.length)
  })
})
