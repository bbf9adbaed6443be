import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import {
  inTransaction,
  isDatabaseReady,
  isDatabaseUnavailable,
  isGivenUp,
  isUniqueViolation,
  openDatabase,
} from './database.ts'

const database = await openForFile(createTestDatabase())

const insertRow = (db: TestDatabase['db'], name: string) =>
  sql`insert into permission (name, created_at, updated_at) values (${name}, now(), now())`.execute(db)

const hasRow = async (name: string) =>
  (await sql`select from permission where name = ${name}`.execute(database.db)).rows.length === 1

function open(connectionString: string, silenceLimitMs?: number) {
  const errors: Error[] = []
  const opened = openDatabase({
    connectionString,
    size: 1,
    applicationName: 'database test',
    ...(silenceLimitMs !== undefined && { limits: { silenceMs: silenceLimitMs } }),
    onError: (error) => void errors.push(error),
  })
  return { ...opened, errors, [Symbol.asyncDispose]: () => opened.close() }
}

describe('a silent connection', () => {
  const openImpatient = () => open(database.connectionString, 100)

  /** The socket of the first connection. */
  const takeSocket = ({ pool }: Pick<ReturnType<typeof open>, 'pool'>): Promise<Socket> => {
    const { promise, resolve } = Promise.withResolvers<Socket>()
    pool.on('connect', (client) => resolve((client as unknown as { connection: { stream: Socket } }).connection.stream))
    return promise
  }

  test('stays open while nothing uses it', async () => {
    // On a busy machine the server may take a part of a second to answer, which must not end the connection.
    await using opened = open(database.connectionString, 1_000)
    const promise = takeSocket(opened)
    const readPid = async () => (await opened.pool.query('select pg_backend_pid() as pid')).rows[0].pid
    const pid = await readPid()
    for (let limits = 0; limits < 2; limits += 1) {
      await once(await promise, 'timeout')
      expect(await readPid()).toBe(pid)
    }
    expect(opened.errors).toEqual([])
  })

  test('ends under a statement that the server does not answer', async () => {
    await using opened = openImpatient()
    // On a busy machine the server may be silent for as long while it starts a process: then the pool tries again.
    const pass = (error: unknown) => {
      expect(error).toMatchObject({ code: 'ETIMEDOUT' })
      return undefined
    }
    const client = await waitFor('a connection', () => opened.pool.connect().catch(pass))
    await expect(client.query('select pg_sleep(30)')).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    client.release(true)
    const next = await waitFor('an answer', () => opened.pool.query('select 1 as one').catch(pass))
    expect(next.rows).toEqual([{ one: 1 }])
  })

  test('ends so too when it has rested for longer than its limit before', async () => {
    await using opened = open(database.connectionString, 1_000)
    const socket = takeSocket(opened)
    await opened.pool.query('select')
    for (let rests = 0; rests < 2; rests += 1) {
      await once(await socket, 'timeout')
      await opened.pool.query('select')
    }
    await expect(opened.pool.query('select pg_sleep(30)')).rejects.toMatchObject({ code: 'ETIMEDOUT' })
  })

  test('stays open under a statement that is sent when it has just rested for its limit', async () => {
    await using opened = open(database.connectionString, 2_000)
    const socket = takeSocket(opened)
    await opened.pool.query('select')
    await once(await socket, 'timeout')
    // Longer than the connection is read from before it is judged, and far from its limit.
    await opened.pool.query('select pg_sleep(0.3)')
    expect(opened.errors).toEqual([])
  })
})

describe('a transaction', () => {
  test('commits the writes of its work, and returns its result', async () => {
    expect(await inTransaction(database.db, (tx) => insertRow(tx, 'kept').then(() => 'done'))).toBe('done')
    expect(await hasRow('kept')).toBe(true)
  })

  test('rolls back when its work throws, and rethrows', async () => {
    const fault = new Error('refused')
    const work = inTransaction(database.db, async (tx) => {
      await insertRow(tx, 'lost')
      throw fault
    })
    await expect(work).rejects.toBe(fault)
    expect(await hasRow('lost')).toBe(false)
  })

  test('within another transaction joins it', async () => {
    const work = inTransaction(database.db, async (outer) => {
      await inTransaction(outer, async (inner) => {
        expect(inner).toBe(outer)
        await insertRow(inner, 'inner')
      })
      throw new Error('refused')
    })
    await expect(work).rejects.toThrow('refused')
    expect(await hasRow('inner')).toBe(false)
  })
})

describe('a connection', () => {
  test('returns counts as numbers, uses UTC, sets its application name, and cancels long statements', async () => {
    await using own = open(database.connectionString)
    const { rows } = await own.pool.query(
      `select count(*) as count, 9007199254740991::int8 as large, current_setting('timezone') as timezone,
         current_setting('application_name') as name, current_setting('statement_timeout') as statement,
         current_setting('idle_in_transaction_session_timeout') as idle from generate_series(1, 3)`,
    )
    expect(rows).toEqual([
      {
        count: 3,
        large: 9_007_199_254_740_991,
        timezone: 'UTC',
        name: 'database test',
        statement: '30s',
        idle: '1min',
      },
    ])
  })

  test('that is lost while idle is reported without its connection data, and replaced at the next use', async () => {
    await using own = open(database.connectionString)
    await own.pool.query('select 1')
    await database.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'database test'`,
    )
    await expect.poll(() => own.errors.length, { timeout: 10_000 }).toBe(1)
    expect(own.errors[0]).not.toHaveProperty('client')
    expect((await own.pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  })

  test('that is lost between two statements of a transaction fails only the next one', async () => {
    await using own = open(database.connectionString)
    const work = inTransaction(own.db, async (tx) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
      await insertRow(tx, 'cut')
      await database.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid])
      await insertRow(tx, 'after the cut')
    })
    const fault = await work.catch((error: unknown) => error)
    expect(isDatabaseUnavailable(fault), String(fault)).toBe(true)
    expect(await hasRow('cut')).toBe(false)
    expect(await isDatabaseReady(own.db)).toBe(true)
  })

  test('that is lost before a rollback does not hide why the work failed', async () => {
    await using own = open(database.connectionString)
    const fault = new Error('refused')
    const work = inTransaction(own.db, async (tx) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
      await insertRow(tx, 'left')
      await database.pool.query('select pg_terminate_backend($1, 5000)', [rows[0]?.pid])
      throw fault
    })
    await expect(work).rejects.toBe(fault)
    expect(await hasRow('left')).toBe(false)
    expect(await isDatabaseReady(own.db)).toBe(true)
  })
})

describe('readiness', () => {
  test('is true while the database answers', async () => {
    expect(await isDatabaseReady(database.db)).toBe(true)
    await using none = open('postgres://nobody@127.0.0.1:1/none')
    expect(await isDatabaseReady(none.db)).toBe(false)
  })

  test('is false after 2 s for a server that accepts the connection and does not answer', async () => {
    const sockets: Socket[] = []
    const server = createServer((socket) => {
      sockets.push(socket.on('error', () => {}))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    await using silent = open(`postgres://nobody@127.0.0.1:${port}/none`)
    const startedAt = performance.now()
    expect(await isDatabaseReady(silent.db)).toBe(false)
    expect(performance.now() - startedAt).toBeLessThan(4_000)
    for (const socket of sockets) socket.destroy()
    server.close()
  })
})

test('a database that takes no connections is unavailable, with the code of PostgreSQL', async () => {
  await using closed = await createTestDatabase({ content: 'empty', isOwn: true })
  const name = new URL(closed.connectionString).pathname.slice(1)
  await database.pool.query(`alter database "${name}" with allow_connections false`)
  try {
    const { db, close } = openDatabase({
      ...{ connectionString: closed.connectionString, size: 1, applicationName: 'test', onError: () => {} },
    })
    const error = await sql`select 1`.execute(db).catch((fault: unknown) => fault)
    expect(error).toMatchObject({ code: '55000' })
    expect(isDatabaseUnavailable(error)).toBe(true)
    await close()
  } finally {
    await database.pool.query(`alter database "${name}" with allow_connections true`)
  }
})

describe('the class of an error', () => {
  test.each([
    ['08006', true],
    ['08P01', true],
    ['53300', true],
    ['57P01', true],
    ['57P03', true],
    ['ECONNREFUSED', true],
    ['ECONNRESET', true],
    ['ETIMEDOUT', true],
    ['EHOSTUNREACH', true],
    ['DATABASE_REFUSED', true],
    ['25006', true],
    ['55000', true],
    ['25P03', true],
    ['25P02', false],
    ['23505', false],
    ['40001', false],
    ['42P01', false],
    ['57014', false],
    ['EACCES', false],
  ])('with the code %s: the database is unavailable %s', (code, isUnavailable) => {
    expect(isDatabaseUnavailable(Object.assign(new Error('x'), { code }))).toBe(isUnavailable)
  })

  test.each([
    ['40P01', true],
    ['40001', true],
    ['40002', false],
    ['57P01', false],
  ])('with the code %s: the transaction was aborted for a retry %s', (code, isGone) => {
    expect(isGivenUp(Object.assign(new Error('x'), { code }))).toBe(isGone)
    expect(isGivenUp(null)).toBe(false)
  })

  test('follows the texts of the driver for errors without a code', () => {
    expect(isDatabaseUnavailable(new Error('timeout exceeded when trying to connect'))).toBe(true)
    expect(isDatabaseUnavailable(new Error('Connection terminated unexpectedly'))).toBe(true)
    for (const other of [new Error('x'), null, undefined, 'ECONNREFUSED', 7, {}, { code: 8 }])
      expect(isDatabaseUnavailable(other)).toBe(false)
  })

  test('distinguishes a refused connection, a lost one, and a violated constraint', async () => {
    await using none = open('postgres://nobody@127.0.0.1:1/none')
    expect(isDatabaseUnavailable(await none.pool.query('select 1').catch((error: unknown) => error))).toBe(true)
    await using own = open(database.connectionString)
    const cut = own.pool.query('select pg_terminate_backend(pg_backend_pid())').catch((error: unknown) => error)
    expect(isDatabaseUnavailable(await cut)).toBe(true)
    await insertRow(database.db, 'twice')
    const twice = await insertRow(database.db, 'twice').catch((error: unknown) => error)
    expect(isDatabaseUnavailable(twice)).toBe(false)
    expect(isUniqueViolation(twice, 'permission_pkey')).toBe(true)
    expect(isUniqueViolation(twice, 'role_name_key')).toBe(false)
    for (const other of [new Error('x'), null, undefined, { code: '23503', constraint: 'permission_pkey' }])
      expect(isUniqueViolation(other, 'permission_pkey')).toBe(false)
  })
})

describe('an instant', () => {
  test.each([
    ['2026-09-11 12:00:00.123+00', '2026-09-11T12:00:00.123Z'],
    ['2026-09-11 12:00:00+00', '2026-09-11T12:00:00.000Z'],
    ['1970-01-01 00:00:00.5+00', '1970-01-01T00:00:00.500Z'],
    ['9999-12-31 23:59:59.999+00', '9999-12-31T23:59:59.999Z'],
    ['2026-09-11 14:00:00+02', '2026-09-11T12:00:00.000Z'],
    ['2026-09-11 12:00:00.123456+00', '2026-09-11T12:00:00.123Z'],
    ['2026-09-11 12:00:00.07+00', '2026-09-11T12:00:00.070Z'],
  ])('%s is read as %s', async (text, expected) => {
    const { rows } = await sql<{ at: Date }>`select ${text}::timestamptz as at`.execute(database.db)
    expect(rows[0]?.at.toISOString()).toBe(expected)
  })
})

test.each(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL'])(
  'a connection that fails by %s is one that may be tried again, so its request is answered 503',
  (code) => {
    expect(isDatabaseUnavailable(Object.assign(new Error('no connection'), { code }))).toBe(true)
    expect(isDatabaseUnavailable(Object.assign(new Error('no connection'), { code: `${code}X` }))).toBe(false)
  },
)
