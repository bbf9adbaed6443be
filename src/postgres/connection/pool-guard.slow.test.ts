import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { startDatabaseProxy } from '../../../test/harness/fakes/proxy.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { isDatabaseUnavailable, openDatabase, SHORT_LIMITS, type StatementLimits } from '../statement/database.ts'
import type { Siblings } from './pool-guard.ts'

const database = await openForFile(createTestDatabase({ content: 'empty' }))

const ask = (opened: { db: TestDatabase['db'] }) => sql`select 1`.execute(opened.db)

function open(
  connectionString: string,
  options: { size?: number; limits?: Partial<StatementLimits>; siblings?: Siblings; connectLimitMs?: number } = {},
) {
  const opened = openDatabase({
    ...{ connectionString, size: 3, applicationName: 'guard test', onError: () => {} },
    ...options,
  })
  return { ...opened, [Symbol.asyncDispose]: () => opened.close() }
}

describe('the breaker', () => {
  test('opens with the third failure in a row, not before, and lets one caller at a time try', async () => {
    await using proxy = await startDatabaseProxy(database.connectionString)
    await using opened = open(proxy.connectionString)
    proxy.set('refusing')
    for (let failure = 1; failure <= 3; failure += 1) {
      expect(opened.state()).toMatchObject({ isOpen: false, refused: 0 })
      await expect(ask(opened)).rejects.toThrow()
    }
    expect(opened.state()).toMatchObject({ isOpen: true, refused: 0 })
    const answers = await Promise.allSettled([ask(opened), ask(opened), ask(opened)])
    for (const answer of answers)
      expect(answer.status === 'rejected' && isDatabaseUnavailable(answer.reason)).toBe(true)
    expect(opened.state()).toMatchObject({ isOpen: true, refused: 2 })
    proxy.set('open')
    await ask(opened)
    expect(opened.state().isOpen).toBe(false)
    await Promise.all([ask(opened), ask(opened), ask(opened)])
    expect(opened.state().refused).toBe(2)
  })

  test('counts failures in a row: one that works in between begins anew', async () => {
    await using proxy = await startDatabaseProxy(database.connectionString)
    await using opened = open(proxy.connectionString)
    for (let round = 0; round < 3; round += 1) {
      proxy.set('refusing')
      for (let failure = 0; failure < 2; failure += 1) await expect(ask(opened)).rejects.toThrow()
      proxy.set('open')
      await ask(opened)
    }
    expect(opened.state()).toMatchObject({ isOpen: false, refused: 0 })
  })

  test('does not count statements that fail: the database answers', async () => {
    await using opened = open(database.connectionString)
    for (let failure = 0; failure < 5; failure += 1)
      await expect(sql`select 1 / 0`.execute(opened.db)).rejects.toMatchObject({ code: '22012' })
    expect(opened.state()).toMatchObject({ isOpen: false, refused: 0 })
  })
})

test('callers that wait for a connection are bounded: the next one is refused at once, and none of the others', async () => {
  await using opened = open(database.connectionString, { size: 1, connectLimitMs: 60_000 })
  const held = Promise.withResolvers<void>()
  const holding = opened.db.connection().execute(async (db) => {
    await sql`select 1`.execute(db)
    await held.promise
  })
  await waitFor('the connection in use', () => opened.state().connections === 1)
  const waiting = Array.from({ length: 1_000 }, () => ask(opened))
  await waitFor('those that wait', () => opened.state().waiting === 1_000)
  const refusal = await ask(opened).catch((error: unknown) => error)
  expect(isDatabaseUnavailable(refusal)).toBe(true)
  expect(opened.state().refused).toBe(1)
  held.resolve()
  await Promise.all([holding, ...waiting])
})

describe('a connection that is found dead', () => {
  test('takes with it those that said nothing since before, of every pool of the same path, and leaves younger ones', async () => {
    await using proxy = await startDatabaseProxy(database.connectionString)
    const siblings: Siblings = new Set()
    const limits = { silenceMs: 300 }
    await using first = open(proxy.connectionString, { siblings, limits })
    await using second = open(proxy.connectionString, { siblings, limits: { silenceMs: 60_000 } })
    await Promise.all([ask(first), ask(first), ask(first), ask(second), ask(second)])
    const stuck = second.db.connection().execute((db) => sql`select pg_sleep(60)`.execute(db))
    stuck.catch(() => {})
    proxy.swallowOpen()
    await expect(ask(first)).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    await expect(stuck).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    await waitFor('the end of the others', () => first.state().connections + second.state().connections === 0)
    expect(first.state().silent).toBe(1)
    expect(second.state().silent).toBe(0)
    // Neither waits for the limit again.
    const startedAt = performance.now()
    await Promise.all([ask(first), ask(second)])
    expect(performance.now() - startedAt).toBeLessThan(5_000)
  })
})

test('the row locks of a session whose path is cut end within 10 s', async () => {
  await database.pool.query('create table held (id int primary key); insert into held values (1)')
  await using proxy = await startDatabaseProxy(database.connectionString)
  // The client gives up soon: the limits of the session are those that free the lock.
  await using opened = open(proxy.connectionString, { limits: { ...SHORT_LIMITS, silenceMs: 500 } })
  await using patient = open(database.connectionString)
  const cut = Promise.withResolvers<void>()
  const lost = opened.db.transaction().execute(async (tx) => {
    await sql`select from held for update`.execute(tx)
    await cut.promise
  })
  lost.catch(() => {})
  await waitFor('the lock', async () => {
    const { rows } = await database.pool.query("select 1 from pg_locks where relation = 'held'::regclass")
    return rows.length > 0
  })
  proxy.swallowOpen()
  const startedAt = performance.now()
  await patient.pool.query('select from held for update').finally(cut.resolve)
  expect(performance.now() - startedAt).toBeLessThan(10_500)
  await expect(lost).rejects.toThrow()
})
