import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/harness/database.ts'
import { inTransaction } from '../postgres/database.ts'
import { chargeAttempt, forgiveAttempt } from './login-attempt.ts'
import { lockAttempt } from './login-throttle.store.ts'

const START = new Date('2026-09-11T12:00:00.000Z')
const inMs = (ms: number) => new Date(START.getTime() + ms)

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

let names = 0
/** An attempt with an e-mail and a network address that no other test has. */
const newAttempt = () => {
  names += 1
  return { email: `person-${names}@example.test`, address: `10.0.${names}.1`, now: START }
}

interface Row {
  subject: 'address' | 'email' | 'pair'
  failures: number
  last_failure_at: Date
  wait_until: Date | null
}

/** The rows of the last attempts, in the order in which they are locked. */
async function readRows(): Promise<Row[]> {
  const { rows } = await database.pool.query(`
    select case when email_hash = '' then 'address' when address_hash = '' then 'email' else 'pair' end as subject,
      failures, last_failure_at, wait_until
    from login_throttle order by email_hash, address_hash`)
  await database.pool.query('delete from login_throttle')
  return rows
}

/** Sets what is known of the network address before the attempts of a test. */
async function setAddressFailures(failures: number): Promise<void> {
  await database.pool.query(`update login_throttle set failures = $1 where email_hash = ''`, [failures])
}

test('a correct password clears the pair and the e-mail address', async () => {
  const attempt = newAttempt()
  for (let step = 0; step < 4; step += 1) await chargeAttempt(database.db, { ...attempt, now: inMs(step) })
  const last = { ...attempt, now: inMs(4) }
  expect(await chargeAttempt(database.db, last)).toEqual({ kind: 'made', credentials: undefined, hasFactor: false })
  await forgiveAttempt(database.db, last)
  const [, ...cleared] = await readRows()
  const clear = { failures: 0, last_failure_at: inMs(4), wait_until: null }
  expect(cleared.map(({ subject, ...row }) => row)).toEqual([clear, clear])
})

test.each([0, 18, 19, 60])(
  'a correct password after %i failures reverts exactly its own failure and delay of the network address',
  async (failures) => {
    const attempt = newAttempt()
    await chargeAttempt(database.db, attempt)
    await setAddressFailures(failures)
    const last = { ...attempt, email: newAttempt().email, now: inMs(1000) }
    await chargeAttempt(database.db, last)
    await forgiveAttempt(database.db, last)
    expect((await readRows())[0]).toMatchObject({ subject: 'address', failures, wait_until: null })
  },
)

test('a correct password leaves a later delay of the network address by other failures', async () => {
  const attempt = newAttempt()
  await chargeAttempt(database.db, attempt)
  await setAddressFailures(18)
  const correct = { ...attempt, email: newAttempt().email, now: inMs(1000) }
  await chargeAttempt(database.db, correct)
  await chargeAttempt(database.db, { ...attempt, email: newAttempt().email, now: inMs(2000) })
  await forgiveAttempt(database.db, correct)
  const [address] = await readRows()
  expect(address).toMatchObject({ failures: 19, last_failure_at: inMs(2000), wait_until: inMs(3000) })
})

test('an attempt after a correct password is a first one again', async () => {
  const attempt = newAttempt()
  for (let step = 0; step < 5; step += 1) await chargeAttempt(database.db, { ...attempt, now: inMs(step) })
  expect(await chargeAttempt(database.db, { ...attempt, now: inMs(5) })).toMatchObject({ kind: 'waits' })
  await forgiveAttempt(database.db, { ...attempt, now: inMs(4) })
  expect(await chargeAttempt(database.db, { ...attempt, now: inMs(6) })).toMatchObject({ kind: 'made' })
  await readRows()
})

test('the count of an attempt does not wait for the disk, and leaves the durability of its connection as it is', async () => {
  await using single = await createTestDatabase({ poolSize: 1 })
  const readSetting = async () => (await single.pool.query('show synchronous_commit')).rows[0].synchronous_commit
  // The server of the tests has it off.
  await single.pool.query('set synchronous_commit = on')
  const attempt = newAttempt()
  const key = { emailHash: Buffer.from('email'), addressHash: Buffer.from('address') }
  const inside = await inTransaction(single.db, async (tx) => {
    await lockAttempt(tx, { key, email: attempt.email, now: attempt.now })
    const { rows } = await sql<{ at: string }>`select current_setting('synchronous_commit') as at`.execute(tx)
    return rows[0]?.at
  })
  expect(inside).toBe('off')
  expect(await readSetting()).toBe('on')
})
