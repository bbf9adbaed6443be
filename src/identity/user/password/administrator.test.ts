import { describe, expect, test } from 'vitest'
import { buildIdentityApp } from '../../../../test/harness/app/identity-app.ts'
import { testPasswords } from '../../../../test/harness/app/small-hash.ts'
import { buildCommitGate } from '../../../../test/harness/database/commit-gate.ts'
import { systemRandom } from '../../../base/random.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import { issueSession } from '../../session/session.ts'
import { createAdministrator, hasAdministrator, resetPassword } from './administrator.ts'

describe('the first administrator', () => {
  test('can sign in and holds every permission', async () => {
    await using app = await buildIdentityApp()
    const now = new Date(app.clock.now())
    const deps = { ids: app.ids, passwords: testPasswords }
    expect(await hasAdministrator(app.db)).toBe(false)
    const made = await createAdministrator(deps, app.db, {
      email: 'admin@signalbox.localhost',
      password: 'first password',
      now,
    })
    expect(made).toMatchObject({ ok: true, user: { email: 'admin@signalbox.localhost', emailVerifiedAt: now } })
    expect(await hasAdministrator(app.db)).toBe(true)
    const body = { email: 'admin@signalbox.localhost', password: 'first password' }
    const { jwt } = (await app.call('POST', '/api/v3/auth/login/local', { body })).body.data
    const users = await app.call('GET', '/api/v3/identity/user', { token: jwt })
    expect(users.body.data).toHaveLength(1)
  })

  test('is not created for an e-mail address in use, whose user is not promoted', async () => {
    await using app = await buildIdentityApp()
    const now = new Date(app.clock.now())
    const deps = { ids: app.ids, passwords: testPasswords }
    const { user } = await app.user('someone', [], 'their password')
    const result = await createAdministrator(deps, app.db, {
      email: user.email.toUpperCase(),
      password: 'my own phrase',
      now,
    })
    expect(result).toMatchObject({ ok: false, error: expect.stringContaining('exists already') })
    expect(await hasAdministrator(app.db)).toBe(false)
    expect(
      (await app.call('POST', '/api/v3/auth/login/local', { body: { email: user.email, password: 'their password' } }))
        .status,
    ).toBe(200)
  })

  test.each([
    ['nobody', 'long enough', 'e-mail'],
    ['two words@example.test', 'long enough', 'e-mail'],
    ['a@example.test', 'short', 'password'],
    ['a@example.test', 'Password123!', 'password'],
  ])('is refused for %s with the password "%s": the sentence names the %s', async (email, password, word) => {
    await using app = await buildIdentityApp()
    const deps = { ids: app.ids, passwords: testPasswords }
    const result = await createAdministrator(deps, app.db, { email, password, now: new Date(app.clock.now()) })
    expect(result).toMatchObject({ ok: false, error: expect.stringContaining(word) })
    expect(await hasAdministrator(app.db)).toBe(false)
  })
})

test('a reset of a password also ends the session of a sign-in that is under way', async () => {
  await using app = await buildIdentityApp()
  await using gate = await buildCommitGate(app.database, ['session'])
  const { user } = await app.user('signing in')
  const now = new Date(app.clock.now())
  const deps = { ids: app.ids, random: systemRandom, keys: app.keys }
  const origin = { address: null, userAgent: null }
  const [session, reset] = await gate.interleave(
    (gated) => inTransaction(gated, (tx) => issueSession(deps, tx, { userId: user.id, origin, now })),
    (free) =>
      resetPassword({ passwords: testPasswords }, free, { email: user.email, password: 'another password', now }),
  )
  expect(reset).toEqual({ ok: true })
  expect((await app.call('GET', '/api/v3/auth/session', { token: session!.jwt })).status).toBe(401)
})
