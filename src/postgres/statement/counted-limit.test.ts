import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { type FunctionBodies, listLocks, readFunctions } from '../../../test/harness/plan/lock-order.ts'
// With the app all modules are loaded, and every limit is defined.
import '../../app/app.ts'
import { type CountedLimit, countBehindLock, listCountedLimits } from './counted-limit.ts'
import { type Database, inTransaction } from './database.ts'
import { statement } from './statement.ts'

const SOURCE = join(import.meta.dirname, '..', '..')
const DEFINED = [...listCountedLimits()]

/** Functions of the database that count something else, each with the reason. */
const NO_LIMITS: Record<string, string> = {
  other_holders: 'whether there is another administrator, behind the lock of the role',
  lock_ways_in: 'whether there is another way in, behind the lock of the user',
  claims_of_others: 'the slots of a webhook, behind the lock of claims',
  queue_provisioning: 'how many rows it wrote',
}

/** Where a text begins to count: at the function that it calls for it, or where it counts itself. */
function findCount(text: string, functions: FunctionBodies): number {
  const counting = [...functions].filter(([, body]) => /\bcount\(/.test(body)).map(([name]) => name)
  return text.search(new RegExp(`\\b(?:${counting.join('|')})\\(|count\\(\\*\\) filter|select count\\(\\*\\)::int`))
}

/**
 * Steps of a limit before it counts. A function may count before its lock too, so that it does not wait when the limit
 * is reached.
 */
function readTextToCount({ counting, texts }: CountedLimit, functions: FunctionBodies): string {
  if ('by' in counting) return functions.get(counting.by) ?? ''
  const text = texts.join(';\n')
  return text.slice(0, Math.max(0, findCount(text, functions)))
}

describe('the limits of the service', () => {
  let database: TestDatabase
  let functions: FunctionBodies
  beforeAll(async () => {
    database = await createTestDatabase({ content: 'prepared' })
    functions = await readFunctions(database.pool)
  })
  afterAll(() => database?.[Symbol.asyncDispose]())

  test.each(DEFINED.map((limit) => [limit.counts, limit] as const))(
    '%s wait for their lock before they are counted',
    (_counts, limit) => {
      const locks = listLocks(readTextToCount(limit, functions), functions)
      expect(locks).toContainEqual({ name: limit.lock, waits: true })
    },
  )

  test('count in one statement by volatile functions only, which read behind the lock of their statement', async () => {
    const { rows } = await database.pool.query<{ name: string }>(
      `select proname as name from pg_proc where pronamespace = 'public'::regnamespace and provolatile = 'v'`,
    )
    const isVolatile = new Set(rows.map(({ name }) => name))
    const reads = DEFINED.flatMap(({ counting }) => ('read' in counting ? [counting.read] : []))
    expect(reads.length).toBeGreaterThan(0)
    for (const read of reads) {
      expect(read).not.toMatch(/\bcount\(/)
      const called = [...read.matchAll(/\b(\w+)\(/g)].flatMap(([, name = '']) => (functions.has(name) ? [name] : []))
      expect(called.filter((name) => /\bcount\(/.test(functions.get(name) ?? '')).length).toBeGreaterThan(0)
      expect(called.filter((name) => !isVolatile.has(name))).toEqual([])
    }
  })

  test('are counted nowhere else: what counts in the database is called by a limit, or is none', async () => {
    const counting = [...functions].filter(([, body]) => /\bcount\(/.test(body)).map(([name]) => name)
    const called = counting.filter((name) =>
      DEFINED.some(({ texts }) => texts.some((text) => text.includes(`${name}(`))),
    )
    expect(counting.filter((name) => !called.includes(name)).sort()).toEqual(Object.keys(NO_LIMITS).sort())
    const files = (await readdir(SOURCE, { recursive: true })).filter((file) => file.endsWith('.store.ts'))
    for (const file of files) {
      const text = await readFile(join(SOURCE, file), 'utf8')
      if (called.some((name) => new RegExp(`\\b${name}\\(`).test(text))) expect(text, file).toContain('countBehindLock')
    }
  })
})

describe('countBehindLock', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase({ content: 'empty' })
    await database.pool.query(`
      create table account (document_id int primary key);
      create table kept (account int);
      insert into account values (1);
      create function kept_of(asked int) returns int language plpgsql volatile as $$
        begin return (select count(*)::int from kept where account = asked); end $$;
      create function lock_kept_of(asked int) returns int language plpgsql volatile as $$
        begin perform from account where document_id = asked for no key update; return kept_of(asked); end $$`)
  })
  afterAll(() => database?.[Symbol.asyncDispose]())

  const WAYS: Record<string, (db: Database, params: { account: number }) => Promise<{ kept: number }[]>> = {
    'a lock and a volatile function in one statement': countBehindLock({
      counts: 'kept rows',
      lock: 'account',
      rows: 'select document_id from account where document_id = $account',
      read: 'select kept_of(document_id) as kept from locked',
    }),
    'two statements': countBehindLock({
      counts: 'kept rows',
      lock: 'account',
      take: 'select from account where document_id = $account for no key update',
      count: 'select count(*)::int as kept from kept where account = $account',
    }),
    'a function that locks': countBehindLock({
      counts: 'kept rows',
      lock: 'account',
      by: 'lock_kept_of',
      call: 'select lock_kept_of($account) as kept',
    }),
  }
  const keep = statement<never, { account: number }>('insert into kept values ($account)')

  test.each(Object.keys(WAYS))('by %s lets parallel transactions pass a limit by none', async (way) => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 2, max: 9 }), async (limit, parallel) => {
        await database.pool.query('truncate kept')
        const add = () =>
          inTransaction(database.db, async (tx) => {
            const [row] = (await WAYS[way]?.(tx, { account: 1 })) ?? []
            if (row && row.kept < limit) await keep(tx, { account: 1 })
          })
        await Promise.all(Array.from({ length: parallel }, add))
        const { rows } = await database.pool.query('select count(*)::int as kept from kept')
        expect(rows).toEqual([{ kept: Math.min(limit, parallel) }])
      }),
      { numRuns: 20 },
    )
  })

  test.each(Object.keys(WAYS))('by %s is refused outside a transaction, where no lock is kept', async (way) => {
    await expect(WAYS[way]?.(database.db, { account: 1 })).rejects.toThrow('kept rows are counted in a transaction')
  })

  test('takes locks of the register only', () => {
    const lock = 'kept' as CountedLimit['lock']
    expect(() => countBehindLock({ counts: 'kept rows', lock, by: 'f', call: 'select f()' })).toThrow('locks.ts')
  })
})
