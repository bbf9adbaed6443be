import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { countTraffic } from '../../../test/harness/plan/round-trips.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { type Database, inTransaction, isGivenUp } from './database.ts'
import { buildStatementNames, markLast, PREPARED_PER_CONNECTION, runDetached } from './dialect.ts'
import { aheadStatement, statement } from './statement.ts'

const database = await openForFile(createTestDatabase({ poolSize: 1 }))
await sql`create table kept (id int primary key)`.execute(database.db)

const insert = (id: number) => sql`insert into kept values (${id}) returning id`
const listKept = async () =>
  (await database.pool.query<{ id: number }>('select id from kept order by id')).rows.map(({ id }) => id)
const listPrepared = async () =>
  (await database.pool.query<{ statement: string }>('select statement from pg_prepared_statements')).rows.map(
    (row) => row.statement,
  )

describe('a statement', () => {
  test('is prepared once for each connection, under a name derived from its text', async () => {
    const read = statement<{ one: number }, { value: number }>('select $value::int as one')
    for (const value of [1, 2, 3]) expect(await read(database.db, { value })).toEqual([{ one: value }])
    expect((await listPrepared()).filter((text) => text === 'select $1::int as one')).toHaveLength(1)
  })

  test('has a name that depends only on its text, also after the cache of names was cleared', () => {
    const nameOf = buildStatementNames(2)
    const first = nameOf('select 1')
    expect(nameOf('select 2')).not.toBe(first)
    for (const text of ['a', 'b', 'c']) nameOf(text)
    expect(nameOf('select 1')).toBe(first)
    // PostgreSQL truncates names at 63 bytes, which must not make two names equal.
    expect(first.length).toBeLessThanOrEqual(63)
  })

  test('that a migration invalidated fails once as retryable, and its connection is replaced', async () => {
    await sql`create table changing (a int)`.execute(database.db)
    const read = statement('select * from changing')
    await read(database.db)
    await database.pool.query('alter table changing add column b int')
    const failed = await read(database.db).catch((error: unknown) => error)
    expect(isGivenUp(failed)).toBe(true)
    expect(await read(database.db)).toEqual([])
  })

  test('beyond the limit of texts replaces the connection, which bounds the plans on the server', async () => {
    const backend = async () => (await database.pool.query('select pg_backend_pid() as pid')).rows[0].pid
    const before = await backend()
    for (let at = 0; at <= PREPARED_PER_CONNECTION; at += 1) await statement(`select ${at} as n`)(database.db)
    expect(await backend()).not.toBe(before)
    expect((await listPrepared()).length).toBeLessThan(10)
  })
})

describe('a transaction', () => {
  test('sends begin with its first statement and commit with its last: two statements take two round trips', async () => {
    const traffic = countTraffic(database.pool)
    await inTransaction(database.db, async (tx) => {
      await insert(1).execute(tx)
      await tx.executeQuery(markLast(insert(2).compile(tx)))
    })
    expect(traffic.stop()).toEqual({ statements: 4, roundTrips: 2 })
    expect(await listKept()).toEqual([1, 2])
  })

  test('without a statement sends nothing, on return and on throw', async () => {
    const traffic = countTraffic(database.pool)
    await inTransaction(database.db, async () => {})
    await expect(inTransaction(database.db, () => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
    expect(traffic.stop()).toEqual({ statements: 0, roundTrips: 0 })
  })

  test('whose last statement fails is rolled back, although commit was sent with it', async () => {
    const work = inTransaction(database.db, async (tx) => {
      await insert(3).execute(tx)
      await tx.executeQuery(markLast(insert(1).compile(tx)))
    })
    await expect(work).rejects.toMatchObject({ code: '23505' })
    expect(await listKept()).toEqual([1, 2])
  })

  test('that was aborted by a statement whose error was caught is not reported as committed', async () => {
    const work = inTransaction(database.db, async (tx) => {
      await insert(4).execute(tx)
      await insert(1)
        .execute(tx)
        .catch(() => {})
    })
    await expect(work).rejects.toThrow('aborted')
    expect(await listKept()).toEqual([1, 2])
  })

  test('leaves a usable connection after success, failure and a failed last statement', async () => {
    for (const id of [5, 1, 6]) {
      await inTransaction(database.db, (tx) => tx.executeQuery(markLast(insert(id).compile(tx)))).catch(() => {})
      await inTransaction(database.db, (tx) => insert(id + 100).execute(tx))
    }
    expect(await listKept()).toEqual([1, 2, 5, 6, 101, 105, 106])
  })
})

describe('a statement without a result', () => {
  const insertAhead = aheadStatement<{ id: number }>('insert into kept values ($id)')

  test('shares the round trip of the next statement, which sees its writes', async () => {
    const traffic = countTraffic(database.pool)
    const { rows } = await inTransaction(database.db, async (tx) => {
      await insertAhead(tx, { id: 7 })
      return sql<{ n: number }>`select count(*)::int as n from kept where id = 7`.execute(tx)
    })
    expect(rows).toEqual([{ n: 1 }])
    expect(traffic.stop()).toEqual({ statements: 4, roundTrips: 2 })
  })

  test('fails the next statement with its own error, and the transaction is rolled back', async () => {
    const work = inTransaction(database.db, async (tx) => {
      await insertAhead(tx, { id: 8 })
      await insertAhead(tx, { id: 1 })
      await insertAhead(tx, { id: 9 })
      await insert(10).execute(tx)
    })
    await expect(work).rejects.toMatchObject({ code: '23505', constraint: 'kept_pkey' })
    expect(await listKept()).not.toContain(8)
  })

  test('fails the commit with its own error when no statement follows', async () => {
    await expect(inTransaction(database.db, (tx) => insertAhead(tx, { id: 1 }))).rejects.toMatchObject({
      code: '23505',
    })
    const closed = inTransaction(database.db, async (tx) => {
      await insertAhead(tx, { id: 1 })
      await tx.executeQuery(markLast(insert(11).compile(tx)))
    })
    await expect(closed).rejects.toMatchObject({ code: '23505' })
    expect(await listKept()).not.toContain(11)
  })

  test('is awaited outside a transaction', async () => {
    await insertAhead(database.db, { id: 12 })
    await expect(insertAhead(database.db, { id: 12 })).rejects.toMatchObject({ code: '23505' })
    expect(await listKept()).toContain(12)
  })
})

describe('a detached statement', () => {
  const insertDetached = (db: Database, id: number) => runDetached(db, insert(id).compile(database.db))

  test('shares the first round trip of its transaction, and holds although that rolls back', async () => {
    const traffic = countTraffic(database.pool)
    let detached: Promise<unknown> | undefined
    const work = inTransaction(database.db, async (tx) => {
      detached = insertDetached(tx, 20)
      await insert(21).execute(tx)
      throw new Error('refused')
    })
    await expect(work).rejects.toThrow('refused')
    expect(await detached).toEqual([{ id: 20 }])
    expect(traffic.stop()).toEqual({ statements: 4, roundTrips: 2 })
    expect(await listKept()).toContain(20)
    expect(await listKept()).not.toContain(21)
  })

  test('fails alone: the transaction goes on', async () => {
    const detached: Promise<unknown>[] = []
    await inTransaction(database.db, async (tx) => {
      detached.push(insertDetached(tx, 20).catch((error: unknown) => error))
      await insert(22).execute(tx)
    })
    expect(await detached[0]).toMatchObject({ code: '23505' })
    expect(await listKept()).toContain(22)
  })

  test('is sent although no statement follows it', async () => {
    let detached: Promise<unknown> | undefined
    await inTransaction(database.db, async (tx) => {
      detached = insertDetached(tx, 23)
      await detached
    })
    expect(await listKept()).toContain(23)
  })

  test('is refused behind another statement of its transaction, which would undo it', async () => {
    const work = inTransaction(database.db, async (tx) => {
      await insert(24).execute(tx)
      await insertDetached(tx, 25)
    })
    await expect(work).rejects.toThrow('first of its transaction')
    expect(await listKept()).not.toContain(25)
  })
})
