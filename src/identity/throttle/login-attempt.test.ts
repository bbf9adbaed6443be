import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { untilWaiting } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { UserId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import {
  chargeAttempt,
  chargeFactorAttempt,
  chargeOwnAttempt,
  clearFactorThrottle,
  clearLoginThrottle,
  dropAttempt,
  forgiveAttempt,
  forgiveFactorAttempt,
} from './login-attempt.ts'
import { deleteForgottenThrottles, deleteThrottlesOfEmails, lockAttempt } from './login-throttle.store.ts'

const START = new Date('2026-09-11T12:00:00.000Z')
const inMs = (ms: number) => new Date(START.getTime() + ms)

const database = await openForFile(createTestDatabase())

let names = 0
/** An attempt with a network address that no other test has: with an e-mail address of nobody. */
const newAttempt = () => {
  names += 1
  return { email: `person-${names}@example.test`, address: `10.0.${names}.1`, now: START }
}
/** An attempt of a user, from a network address that no other test has. */
const newOwnAttempt = () => {
  const { address, now } = newAttempt()
  return { userId: randomUUID() as string as UserId, address, now }
}
const otherUser = () => newOwnAttempt().userId

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
  const attempt = newOwnAttempt()
  for (let step = 0; step < 4; step += 1) await chargeOwnAttempt(database.db, { ...attempt, now: inMs(step) })
  const last = { ...attempt, now: inMs(4) }
  expect(await chargeOwnAttempt(database.db, last)).toBeUndefined()
  await forgiveAttempt(database.db, last)
  const [, ...cleared] = await readRows()
  const clear = { failures: 0, last_failure_at: inMs(4), wait_until: null }
  expect(cleared.map(({ subject, ...row }) => row)).toEqual([clear, clear])
})

test.each([0, 18, 19, 60])(
  'a correct password after %i failures reverts exactly its own failure and delay of the network address',
  async (failures) => {
    const attempt = newOwnAttempt()
    await chargeOwnAttempt(database.db, attempt)
    await setAddressFailures(failures)
    const last = { ...attempt, userId: otherUser(), now: inMs(1000) }
    await chargeOwnAttempt(database.db, last)
    await forgiveAttempt(database.db, last)
    expect((await readRows())[0]).toMatchObject({ subject: 'address', failures, wait_until: null })
  },
)

test('a correct password leaves a later delay of the network address by other failures', async () => {
  const attempt = newOwnAttempt()
  await chargeOwnAttempt(database.db, attempt)
  await setAddressFailures(18)
  const correct = { ...attempt, userId: otherUser(), now: inMs(1000) }
  await chargeOwnAttempt(database.db, correct)
  await chargeOwnAttempt(database.db, { ...attempt, userId: otherUser(), now: inMs(2000) })
  await forgiveAttempt(database.db, correct)
  const [address] = await readRows()
  expect(address).toMatchObject({ failures: 19, last_failure_at: inMs(2000), wait_until: inMs(3000) })
})

test('an attempt after a correct password is a first one again', async () => {
  const attempt = newOwnAttempt()
  for (let step = 0; step < 5; step += 1) await chargeOwnAttempt(database.db, { ...attempt, now: inMs(step) })
  expect(await chargeOwnAttempt(database.db, { ...attempt, now: inMs(5) })).toBeInstanceOf(Date)
  await forgiveAttempt(database.db, { ...attempt, now: inMs(4) })
  expect(await chargeOwnAttempt(database.db, { ...attempt, now: inMs(6) })).toBeUndefined()
  await readRows()
})

test('an address of nobody is counted however its letters A to Z are written, and no other letter is one of them', async () => {
  const { address } = newAttempt()
  const spellings = ['kim@example.test', 'KIM@EXAMPLE.test', 'Kim@Example.Test', 'kIm@example.test', 'KiM@example.test']
  for (const email of spellings)
    expect(await chargeAttempt(database.db, { email, address, now: START })).toMatchObject({ kind: 'made' })
  expect(await chargeAttempt(database.db, { email: spellings[0]!, address, now: START })).toMatchObject({
    kind: 'waits',
  })
  // U+212A, the sign of Kelvin, and U+0130.
  for (const email of ['\u212aim@example.test', 'k\u0130m@example.test'])
    expect(await chargeAttempt(database.db, { email, address, now: START })).toMatchObject({ kind: 'made' })
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

test('what is known of an address is deleted in the order in which attempts lock it', async () => {
  const { db } = database
  const hashOf = (name: string) => Buffer.from(name)
  for (const address of ['b', 'a'])
    await sql`insert into login_throttle (email_hash, address_hash, failures, last_failure_at)
      values (${hashOf('email')}, ${hashOf(address)}, 1, ${START})`.execute(db)
  const lock = (tx: Database, address: string) =>
    sql`select from login_throttle where address_hash = ${hashOf(address)} for update`.execute(tx)
  const { deleted } = await inTransaction(db, async (tx) => {
    await lock(tx, 'a')
    const deletion = inTransaction(db, (other) => deleteThrottlesOfEmails(other, { emailHashes: [hashOf('email')] }))
    await untilWaiting(db, 1)
    await lock(tx, 'b')
    return { deleted: deletion }
  })
  await deleted
  expect(await readRows()).toEqual([])
})

test('an attempt whose password was not checked is not counted, and no earlier one is forgotten', async () => {
  const attempt = newAttempt()
  const charge = async (ms: number) => {
    const charged = await chargeAttempt(database.db, { ...attempt, now: inMs(ms) })
    if (charged.kind !== 'made') throw new Error('the attempt waits')
    return charged
  }
  for (let ms = 0; ms < 3; ms += 1) await charge(ms)
  const beside = newAttempt()
  await chargeAttempt(database.db, beside)
  const countsOf = async ({ key }: Awaited<ReturnType<typeof charge>>) => {
    const of = 'select failures, wait_until from login_throttle where email_hash = $1 or address_hash = $2'
    return (await database.pool.query(of, [key.emailHash, key.addressHash])).rows
  }
  const [fourth, fifth] = [await charge(3), await charge(4)]
  expect((await countsOf(fifth)).map((row) => row.failures)).toEqual([5, 5, 5])
  // A wait that a later failure began stays.
  await dropAttempt(database.db, fourth, inMs(3))
  expect((await countsOf(fifth)).map((row) => row.wait_until !== null).toSorted()).toEqual([false, true, true])
  await dropAttempt(database.db, fifth, inMs(4))
  expect(await countsOf(fifth)).toEqual(Array(3).fill({ failures: 3, wait_until: null }))
  for (let count = 0; count < 4; count += 1) await dropAttempt(database.db, fifth, inMs(4))
  expect((await countsOf(fifth)).map((row) => row.failures)).toEqual([0, 0, 0])
  const rows = await readRows()
  expect(rows.filter(({ failures }) => failures === 1)).toHaveLength(3)
})

test('failures with passwords and with codes are cleared apart, of one user from every address', async () => {
  const [one, other] = [newOwnAttempt(), newOwnAttempt()]
  for (const attempt of [one, other, { ...one, address: '10.1.0.1' }])
    for (const charge of [chargeOwnAttempt, chargeFactorAttempt]) await charge(database.db, attempt)
  const subjects = async () => {
    const { rows } = await database.pool.query<{ count: number }>(
      `select count(*)::int as count from login_throttle where email_hash <> ''`,
    )
    return rows[0]?.count
  }
  expect(await subjects()).toBe(10)
  await inTransaction(database.db, (tx) => clearLoginThrottle(tx, one.userId))
  expect(await subjects()).toBe(7)
  await inTransaction(database.db, (tx) => clearFactorThrottle(tx, one.userId))
  expect(await subjects()).toBe(4)
  const rows = await readRows()
  // Those of network addresses stay.
  expect(rows.map(({ subject }) => subject).filter((subject) => subject === 'address')).toHaveLength(3)
})

test('a correct code reverts what it was counted, as a correct password does, and no turn is left to its pair', async () => {
  const attempt = newOwnAttempt()
  for (let ms = 0; ms < 2; ms += 1) await chargeFactorAttempt(database.db, { ...attempt, now: inMs(ms) })
  await database.pool.query('update login_throttle set turn_at = $1', [START])
  await inTransaction(database.db, (tx) => forgiveFactorAttempt(tx, { ...attempt, now: inMs(1) }))
  const { rows } = await database.pool.query(
    'select failures, last_failure_at, turn_at from login_throttle order by email_hash, address_hash',
  )
  expect(rows[0]).toEqual({ failures: 1, last_failure_at: inMs(1), turn_at: START })
  expect(rows.slice(1)).toEqual(Array(2).fill({ failures: 0, last_failure_at: inMs(1), turn_at: null }))
  await readRows()
})

test('subjects are forgotten once their last failure is older than an instant', async () => {
  await chargeAttempt(database.db, newAttempt())
  expect(await deleteForgottenThrottles(database.db, START, 10)).toBe(0)
  expect(await deleteForgottenThrottles(database.db, inMs(1), 10)).toBe(3)
  expect(await readRows()).toEqual([])
})

test('subjects are forgotten in batches, without a wait for those that an attempt holds', async () => {
  const attempt = newAttempt()
  await chargeAttempt(database.db, attempt)
  await inTransaction(database.db, async (tx) => {
    await tx.selectFrom('login_throttle').selectAll().limit(1).forUpdate().execute()
    const forget = () => deleteForgottenThrottles(database.db, inMs(1), 1)
    expect([await forget(), await forget(), await forget()]).toEqual([1, 1, 0])
  })
  expect(await deleteForgottenThrottles(database.db, inMs(1), 10)).toBe(1)
})
