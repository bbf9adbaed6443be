import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { buildIdentityApp } from '../../../test/harness/app/identity-app.ts'
import { createUserWithPassword } from '../../../test/harness/app/known-password.ts'
import { enrolUser } from '../../../test/harness/browser/factor-user.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { systemRandom } from '../../base/random.ts'
import { Problem } from '../../http/problem/problem.ts'
import { buildHashingSemaphore } from './hashing-semaphore.ts'
import { buildPasswordHashing } from './password.ts'

const LOGIN = '/api/v3/auth/login/local'
const PASSWORD = 'correct horse battery'

test('a right password signs in where there is no place to hash it at a new cost, which the next sign-in does', async () => {
  const semaphore = buildHashingSemaphore({ atOnce: 1, queueLimit: 1, waitMs: 5_000, clock: buildManualClock() })
  let left = 1
  const run = <Result>(work: () => Promise<Result>) => {
    left -= 1
    return left < 0 ? Promise.reject(new Problem('overloaded', 'Too much waits.')) : semaphore(work)
  }
  const hashingSemaphore = Object.assign(run, { admit: semaphore.admit, judgePlace: semaphore.judgePlace })
  await using app = await createTestApp({ hashingSemaphore })
  const email = 'stale@example.com'
  const id = await createUserWithPassword(app, { email }, PASSWORD)
  const stale = await buildPasswordHashing({ memory: 8, passes: 1 }, systemRandom).hash(PASSWORD)
  await app.database.pool.query('update "user" set password_hash = $2 where document_id = $1', [id, stale])
  const readHash = async () =>
    (await app.database.pool.query('select password_hash from "user" where document_id = $1', [id])).rows[0]

  expect((await app.anonymous('POST', LOGIN, { email, password: PASSWORD })).status).toBe(200)
  expect(await readHash()).toEqual({ password_hash: stale })
  left = 2
  expect((await app.anonymous('POST', LOGIN, { email, password: PASSWORD })).status).toBe(200)
  expect(await readHash()).toEqual({ password_hash: expect.stringContaining('m=64,') })
})

test('the right password of a user with a second factor is hashed at the new cost before the second step', async () => {
  await using app = await buildIdentityApp()
  const address = '10.0.0.1'
  const { user } = await enrolUser(app, 'stale', { password: PASSWORD, address })
  const stale = await buildPasswordHashing({ memory: 8, passes: 1 }, systemRandom).hash(PASSWORD)
  const ofUser = 'where document_id = $1'
  await app.database.pool.query(`update "user" set password_hash = $2 ${ofUser}`, [user.id, stale])
  const reply = await app.call('POST', LOGIN, { address, body: { email: user.email, password: PASSWORD } })
  expect(reply.body.code).toBe('second_factor_required')
  const { rows } = await app.database.pool.query(`select password_hash from "user" ${ofUser}`, [user.id])
  expect(rows).toEqual([{ password_hash: expect.stringContaining('m=64,') }])
})
