import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { PasswordHashing } from '../../password/password.ts'
import { checkLocalLogin } from './local-login.ts'

const login = {
  ...{ email: 'nobody@example.test', password: 'a password', address: '10.0.0.1', userAgent: null },
  now: new Date('2026-09-11T12:00:00.000Z'),
}

test.each([
  ['is not counted where the password was not admitted to be checked', new Problem('overloaded', 'Too much waits.'), 0],
  ['is counted where the check failed otherwise', new Error('a fault'), 1],
])('a sign-in %s', async (_name, error, failures) => {
  await using database = await createTestDatabase()
  const passwords = { judgePlace: () => {}, isCorrect: () => Promise.reject(error) } as unknown as PasswordHashing
  await expect(checkLocalLogin({ passwords }, database.db, login)).rejects.toBe(error)
  const rows = await database.db.selectFrom('login_throttle').select('failures').execute()
  expect(rows.map((row) => row.failures)).toEqual([failures, failures, failures])
})
