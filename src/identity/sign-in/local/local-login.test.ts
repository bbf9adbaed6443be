import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../../test/harness/database/identity-rows.ts'
import { buildManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { buildIdMaker, type UserId } from '../../../base/id.ts'
import { systemRandom } from '../../../base/random.ts'
import { Problem } from '../../../http/problem/problem.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import type { PasswordHashing } from '../../password/password.ts'
import { enrolTotp, type TotpFactorId, takeTotpStep } from '../second-factor/totp-factor.store.ts'
import { checkLocalLogin, logInLocally } from './local-login.ts'

const login = {
  ...{ email: 'nobody@example.test', password: 'a password', address: '10.0.0.1', userAgent: null },
  now: madeAfter(1),
}
const failuresOf = async ({ db }: TestDatabase) =>
  (await db.selectFrom('login_throttle').select('failures').execute()).map((row) => row.failures)

test.each([
  ['is not counted where the password was not admitted to be checked', new Problem('overloaded', 'Too much waits.'), 0],
  ['is counted where the check failed otherwise', new Error('a fault'), 1],
])('a sign-in %s', async (_name, error, failures) => {
  await using database = await createTestDatabase()
  const passwords = { judgePlace: () => {}, isCorrect: () => Promise.reject(error) } as unknown as PasswordHashing
  await expect(checkLocalLogin({ passwords }, database.db, login)).rejects.toBe(error)
  expect(await failuresOf(database)).toEqual([failures, failures, failures])
})

describe('a correct password', () => {
  const deps = {
    ...{ ids: buildIdMaker(buildManualClock(), systemRandom), random: systemRandom },
    keys: { secrets: ['the secret that signs sessions in tests'], issuer: () => 'https://service.test' },
  }
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase()
  })
  afterAll(() => database[Symbol.asyncDispose]())

  /** The password of a new user, checked; its hash is one of another cost where `freshHash` is given. */
  async function check(freshHash?: string, hasFactor = true) {
    const { db, pool } = database
    const userId = await buildIdentityRows(db).user({ password_hash: 'kept' })
    const id = newId<TotpFactorId>()
    if (hasFactor) {
      await enrolTotp(db, { id, userId, secretEncrypted: 'sealed', now: MADE_AT })
      await takeTotpStep(db, { id, step: 1, confirms: true, now: MADE_AT })
    }
    await pool.query('delete from login_throttle')
    const passwords = {
      ...{ judgePlace: () => {}, isCorrect: async () => true, isStale: () => freshHash !== undefined },
      hash: async () => freshHash,
    } as unknown as PasswordHashing
    const given = { ...login, email: `${userId}@b.test` }
    const checked = await checkLocalLogin({ passwords }, db, given)
    return { userId, logIn: () => inTransaction(db, (tx) => logInLocally(deps, tx, { login: given, checked })) }
  }
  const readUser = async (id: UserId) =>
    database.db.selectFrom('user').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()
  const isAsked = { problem: { code: 'second_factor_required' }, secondStep: { methods: ['totp'] } }

  test('opens the second step of a user with a factor in place of a session, and is no failure', async () => {
    const { userId, logIn } = await check()
    expect(await failuresOf(database)).toEqual([1, 1, 1])
    const before = await readUser(userId)
    expect(await logIn()).toMatchObject({ ...isAsked, userId })
    expect(await failuresOf(database)).toEqual([0, 0, 0])
    expect(await readUser(userId)).toEqual(before)
    const { rows } = await database.pool.query('select from session where "user" = $1', [userId])
    expect(rows).toEqual([])
  })

  test('beside a second step replaces its hash of another cost, unless it was changed since the check', async () => {
    const [same, changed] = [await check('fresh'), await check('fresh')]
    expect(await same.logIn()).toMatchObject(isAsked)
    expect((await readUser(same.userId)).password_hash).toBe('fresh')
    await buildIdentityRows(database.db).set('user', changed.userId, { password_hash: 'changed' })
    await changed.logIn()
    expect((await readUser(changed.userId)).password_hash).toBe('changed')
  })

  test('opens the session of a user without a factor, is no failure, and replaces a hash of another cost alone', async () => {
    const [same, stale] = [await check(undefined, false), await check('fresh', false)]
    const before = await readUser(same.userId)
    for (const { userId, logIn } of [stale, same]) expect(await logIn()).toMatchObject({ user: { id: userId } })
    expect(await failuresOf(database)).toEqual([0, 0, 0])
    expect((await readUser(stale.userId)).password_hash).toBe('fresh')
    expect(await readUser(same.userId)).toEqual({ ...before, last_sign_in_at: login.now })
  })

  test('of a user who was disabled since the check stays a failure, and changes nothing', async () => {
    const { userId, logIn } = await check('fresh', false)
    await buildIdentityRows(database.db).set('user', userId, { is_actived: false })
    const before = await readUser(userId)
    expect(await logIn()).toMatchObject({ problem: { code: 'login_failed', reason: 'disabled' }, userId })
    expect(await failuresOf(database)).toEqual([1, 1, 1])
    expect(await readUser(userId)).toEqual(before)
  })
})
