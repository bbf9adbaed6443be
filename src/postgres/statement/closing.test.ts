import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { countTraffic } from '../../../test/harness/plan/round-trips.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { takeWrites, writeAtEnd } from './closing.ts'
import { type Database, inTransaction, isUniqueViolation } from './database.ts'
import { closingStatement } from './statement.ts'

const database = await openForFile(createTestDatabase())
const { db } = database
await sql`create table note_of_test (name text primary key, text text not null)`.execute(db)
beforeEach(() => sql`truncate note_of_test`.execute(db))

/** A row of the table; a text that is null is refused. */
interface Note {
  name: string
  text: string | null
}

const insert = closingStatement<Note>('inserted as (insert into note_of_test values ($name, $text))')
const insertOther = closingStatement<Note>('inserted_other as (insert into note_of_test values ($name, $text))')

async function readNames(on: Database): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`select name from note_of_test order by name`.execute(on)
  return rows.map((row) => row.name)
}

test('writes of a transaction are made together, in its last statement, and one that is theirs alone is the transaction', async () => {
  const count = countTraffic(database.pool)
  await inTransaction(db, async (tx) => {
    await insert(tx, { name: 'one', text: 'x' })
    await insertOther(tx, { name: 'other', text: 'x' })
  })
  expect(count.stop()).toEqual({ statements: 1, roundTrips: 1 })
  expect(await readNames(db)).toEqual(['one', 'other'])
})

test('an earlier statement of the transaction does not see a write, and commit shares its round trip', async () => {
  const count = countTraffic(database.pool)
  await inTransaction(db, async (tx) => {
    await insert(tx, { name: 'one', text: 'x' })
    expect(await readNames(tx)).toEqual([])
  })
  expect(count.stop()).toEqual({ statements: 4, roundTrips: 2 })
  expect(await readNames(db)).toEqual(['one'])
})

test('outside a transaction a write is made at once', async () => {
  await insert(db, { name: 'one', text: 'x' })
  expect(await readNames(db)).toEqual(['one'])
})

test('of two equal writes the first one is made before the second one waits', async () => {
  await inTransaction(db, async (tx) => {
    await insert(tx, { name: 'one', text: 'x' })
    await insert(tx, { name: 'two', text: 'x' })
    expect(await readNames(tx)).toEqual(['one'])
  })
  expect(await readNames(db)).toEqual(['one', 'two'])
})

test('writes of a transaction that fails are not made', async () => {
  const failing = inTransaction(db, async (tx) => {
    await insert(tx, { name: 'one', text: 'x' })
    throw new Error('given up')
  })
  await expect(failing).rejects.toThrow('given up')
  expect(await readNames(db)).toEqual([])
})

test('writes that another statement takes are its own to make', async () => {
  await inTransaction(db, async (tx) => {
    await insert(tx, { name: 'one', text: 'x' })
    expect(takeWrites(tx)).toHaveLength(1)
  })
  expect(await readNames(db)).toEqual([])
})

test('a failed write is the problem that it explains, and the transaction is rolled back', async () => {
  await insert(db, { name: 'taken', text: 'x' })
  const explain = (error: unknown) => (isUniqueViolation(error, 'note_of_test_pkey') ? new Error('taken') : error)
  const parts = {
    name: 'explained',
    text: 'explained as (insert into note_of_test values ($1, $2))',
    values: ['taken', 'x'],
  }
  const failing = inTransaction(db, async (tx) => {
    await insertOther(tx, { name: 'other', text: 'x' })
    await writeAtEnd(tx, { parts, explain })
  })
  await expect(failing).rejects.toThrow('taken')
  expect(await readNames(db)).toEqual(['taken'])
})

test('an error that no write explains is thrown as it is', async () => {
  const failing = inTransaction(db, (tx) => insert(tx, { name: 'one', text: null }, { explain: (error) => error }))
  await expect(failing).rejects.toMatchObject({ code: '23502' })
})
