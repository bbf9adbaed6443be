import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { bundleProgram } from '../../../test/harness/process/bundled-program.ts'
import { runToEnd } from '../../../test/harness/process/process.ts'
import { buildServiceEnvironment } from '../../../test/harness/process/service-process.ts'
import {
  checkVersionNumber,
  type Migration,
  migrate,
  migrateSchema,
  parseMigration,
  planMigrations,
  readMigrations,
  readSchemaPlan,
} from './migrate.ts'
import { MigrationError } from './migration-error.ts'

const write = parseMigration

/** The migration as `schema_migration` has it. */
const record = ({ name, hash, isAdditive }: Migration) => ({ name, hash, isAdditive })

const FIRST = write('0001_first', 'create table first (n int)')
const SECOND = write('0002_second', 'create table second (n int); insert into second values (1)')
const THIRD = write('0003_third', 'create table third (n int)')

const listTables = async ({ pool }: TestDatabase) =>
  (
    await pool.query(
      `select table_name from information_schema.tables where table_schema = 'public' order by table_name`,
    )
  ).rows.map((row) => row.table_name)

const listDone = async ({ pool }: TestDatabase) =>
  (await pool.query('select name from schema_migration order by name')).rows.map((row) => row.name)

describe('the plan', () => {
  const done = [FIRST, SECOND].map(record)

  test('contains the migrations that have not run, in the order of the files', () => {
    expect(planMigrations([FIRST, SECOND, THIRD], []).pending).toEqual([FIRST, SECOND, THIRD])
    expect(planMigrations([FIRST, SECOND, THIRD], done)).toEqual({ pending: [THIRD], ahead: [], isNew: false })
    expect(planMigrations([FIRST, SECOND], done)).toEqual({ pending: [], ahead: [], isNew: false })
  })

  test('ends with upTo, inclusive', () => {
    expect(planMigrations([FIRST, SECOND, THIRD], [], '0002_second').pending).toEqual([FIRST, SECOND])
    expect(planMigrations([FIRST, SECOND, THIRD], done, '0002_second').pending).toEqual([])
  })

  test('names additive migrations of a newer release and is not refused for them', () => {
    const newer = [SECOND, THIRD].map((migration) => ({ ...record(migration), isAdditive: true }))
    expect(planMigrations([FIRST], [record(FIRST), ...newer])).toEqual({
      isNew: false,
      pending: [],
      ahead: [SECOND.name, THIRD.name],
    })
  })

  test('is refused for one migration of a newer release that is not additive', () => {
    const newer = [
      { ...record(SECOND), isAdditive: true },
      { ...record(THIRD), isAdditive: false },
    ]
    expect(() => planMigrations([FIRST], [record(FIRST), ...newer])).toThrow(
      expect.objectContaining({
        code: 'schema_ahead',
        message: expect.stringMatching(/has migration 0003_third.*Run the newer release, or restore the backup/),
      }),
    )
  })

  test('is refused when a migration is pending although a newer one ran', () => {
    const newer = { ...record(THIRD), isAdditive: true }
    expect(() => planMigrations([FIRST, SECOND], [record(FIRST), newer])).toThrow(
      expect.objectContaining({ code: 'schema_diverged' }),
    )
  })

  test('is refused with the name of a migration that was edited after it ran', () => {
    const edited = write('0001_first', `${FIRST.sql} `)
    expect(() => planMigrations([edited, SECOND], done)).toThrow(/0001_first was edited after it ran/)
  })
})

test('the files are read in the order of their numbers, which start at 1 without gaps', async () => {
  const names = (await readMigrations()).map((migration) => migration.name)
  expect(names.map((name) => Number(name.slice(0, 4)))).toEqual(names.map((_, n) => n + 1))
})

test('every migration says whether it is additive', async () => {
  const unsaid = (await readMigrations()).filter(({ sql }) => !/^-- (additive|not additive: \S.*)\n/.test(sql))
  expect(unsaid.map(({ name }) => name)).toEqual([])
})

test('the mark of a migration decides whether it is additive, and is no part of its hash', async () => {
  const sql = 'select 1;\n'
  const marked = parseMigration('0001_a', `-- additive\n${sql}`)
  expect(marked).toMatchObject({ isAdditive: true, hash: parseMigration('0001_a', sql).hash })
  expect(parseMigration('0001_a', `-- not additive: it drops a table\n${sql}`).isAdditive).toBe(false)
  // No mark, a mark without its reason, and one that is not the first line.
  for (const text of [sql, `-- not additive:\n${sql}`, `-- additive too\n${sql}`, `${sql}-- additive\n`])
    expect(parseMigration('0001_a', text).isAdditive, text).toBe(false)
  // The hash under which databases record the first migration: another one would refuse their next start.
  expect((await readMigrations())[0]?.hash).toBe('296a2c2166984ce104706c109eef4ccdfb327d764643b28d0136ab1b03014ff1')
})

test('a release before starts on additive migrations of a newer one and changes nothing, and the newer one goes on', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const { connectionString } = database
  const additive = write('0003_third', `-- additive\n${THIRD.sql}`)
  const newer = [FIRST, SECOND, additive]
  expect(await migrateSchema(connectionString, { migrations: newer })).toMatchObject({ ahead: [] })
  expect(await migrateSchema(connectionString, { migrations: [FIRST, SECOND] })).toEqual({
    ran: [],
    ahead: ['0003_third'],
  })
  expect(await migrateSchema(connectionString, { migrations: newer })).toEqual({ ran: [], ahead: [] })
  expect(await listDone(database)).toEqual(['0001_first', '0002_second', '0003_third'])
})

test('a mark that a file got later is recorded, and counts from then on', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const { connectionString, pool } = database
  const additive = write('0002_second', `-- additive\n${SECOND.sql}`)
  await migrate(connectionString, { migrations: [FIRST, additive] })
  await pool.query('update schema_migration set is_additive = false')
  await expect(migrate(connectionString, { migrations: [FIRST] })).rejects.toMatchObject({ code: 'schema_ahead' })
  expect(await migrate(connectionString, { migrations: [FIRST, additive] })).toEqual([])
  const { rows } = await pool.query('select is_additive from schema_migration order by name')
  expect(rows).toEqual([{ is_additive: false }, { is_additive: true }])
})

test('the plan of a database is read without a change, also of an empty one', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const { connectionString } = database
  const migrations = [FIRST, SECOND]
  expect((await readSchemaPlan(connectionString, { migrations })).pending).toEqual(migrations)
  expect(await listTables(database)).toEqual([])
  await migrate(connectionString, { migrations: [FIRST] })
  expect((await readSchemaPlan(connectionString, { migrations })).pending).toEqual([SECOND])
})

test('a stop that is asked for ends the migrations before the next one', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const stop = AbortSignal.abort()
  expect(await migrate(database.connectionString, { migrations: [FIRST], stop })).toEqual([])
  expect(await migrate(database.connectionString, { migrations: [FIRST] })).toEqual(['0001_first'])
})

test('a stop ends the wait for another process, and its session ends while that one still migrates', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const { connectionString, pool } = database
  const other = await pool.connect()
  await other.query('select pg_advisory_lock(7320114)')
  const stop = new AbortController()
  const waiting = migrate(connectionString, { migrations: [FIRST], stop: stop.signal })
  const listSessions = async () =>
    (
      await pool.query(
        `select wait_event from pg_stat_activity
         where datname = current_database() and application_name = 'signalbox migrate'`,
      )
    ).rows
  await expect.poll(listSessions).toEqual([{ wait_event: 'advisory' }])
  stop.abort()
  expect(await waiting).toEqual([])
  await expect.poll(listSessions).toEqual([])
  expect(await listTables(database)).toEqual([])
  other.release(true)
})

test('PostgreSQL 15 is supported and 14 is not, in any minor version', () => {
  expect(() => checkVersionNumber(150_000)).not.toThrow()
  expect(() => checkVersionNumber(180_001)).not.toThrow()
  expect(() => checkVersionNumber(140_019)).toThrow(
    new MigrationError('postgres_too_old', 'DATABASE_URL is PostgreSQL 14; Signalbox needs 15 or newer.'),
  )
  expect(() => checkVersionNumber(90_624)).toThrow('PostgreSQL 9;')
  expect(() => checkVersionNumber(Number.NaN)).toThrow(MigrationError)
})

test('an empty database gets the schema, and a repeat runs no migration', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const all = (await readMigrations()).map((migration) => migration.name)
  const now = new Date('2026-09-11T12:00:00.123Z')
  expect(await migrate(database.connectionString, { now })).toEqual(all)
  expect(await migrate(database.connectionString)).toEqual([])
  expect(await listDone(database)).toEqual(all)
  const { rows } = await database.pool.query('select distinct ran_at from schema_migration')
  expect(rows).toEqual([{ ran_at: now }])
})

test('upTo stops after that migration, and the rest runs later', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const migrations = [FIRST, SECOND, THIRD]
  const { connectionString } = database
  expect(await migrate(connectionString, { migrations, upTo: '0002_second' })).toEqual(['0001_first', '0002_second'])
  expect(await listTables(database)).toEqual(['first', 'schema_migration', 'second'])
  expect(await migrate(connectionString, { migrations })).toEqual(['0003_third'])
})

test('a failed migration is rolled back and named, earlier ones stay, and it runs once fixed', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const { connectionString } = database
  const broken = write(
    '0002_second',
    'create table half (n int); insert into half values (1 / 0); create table rest ()',
  )
  const failed = migrate(connectionString, { migrations: [FIRST, broken, THIRD] })
  await expect(failed).rejects.toThrow(MigrationError)
  await expect(failed).rejects.toThrow(
    /0002_second failed and was rolled back: division by zero. \(migration_failed: see docs/,
  )
  expect(await listTables(database)).toEqual(['first', 'schema_migration'])
  expect(await listDone(database)).toEqual(['0001_first'])
  expect(await migrate(connectionString, { migrations: [FIRST, SECOND, THIRD] })).toEqual(['0002_second', '0003_third'])
})

test('a migration that was edited after it ran is an error, and nothing changes', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const { connectionString } = database
  await migrate(connectionString, { migrations: [FIRST] })
  const edited = write('0001_first', 'create table first (n bigint)')
  await expect(migrate(connectionString, { migrations: [edited, SECOND] })).rejects.toThrow(/was edited/)
  await expect(migrate(connectionString, { migrations: [SECOND] })).rejects.toMatchObject({ code: 'schema_ahead' })
  expect(await listTables(database)).toEqual(['first', 'schema_migration'])
})

test('concurrent calls run each migration once, and all succeed', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const migrations = [FIRST, SECOND, THIRD]
  const results = await Promise.all(Array.from({ length: 6 }, () => migrate(database.connectionString, { migrations })))
  expect(results.flat()).toEqual(['0001_first', '0002_second', '0003_third'])
  expect((await database.pool.query('select * from second')).rows).toEqual([{ n: 1 }])
})

test('two concurrent processes migrate one database', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const all = (await readMigrations()).map((migration) => migration.name)
  const program = await bundleProgram()
  const start = () =>
    runToEnd({
      args: [program, 'migrate'],
      env: buildServiceEnvironment(database.connectionString),
    })
  const endings = await Promise.all([start(), start()])
  for (const { code, stdout, stderr } of endings) expect(code, stdout + stderr).toBe(0)
  expect(await listDone(database)).toEqual(all)
})

test('a lost connection fails the migration, not the process, and the next call runs it', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const { connectionString, pool } = database
  const slow = write('0001_slow', `create table slow (n int); select pg_sleep(60)`)
  const cut = migrate(connectionString, { migrations: [slow] }).catch((error: unknown) => error)
  const terminate = async () => {
    const { rows } = await pool.query(
      `select pg_terminate_backend(pid) as done from pg_stat_activity
       where datname = current_database() and application_name = 'signalbox migrate' and query like '%pg_sleep%'`,
    )
    return rows.length
  }
  await expect.poll(terminate).toBe(1)
  expect(await cut).toBeInstanceOf(MigrationError)
  expect(await listTables(database)).toEqual(['schema_migration'])
  expect(await migrate(connectionString, { migrations: [FIRST] })).toEqual(['0001_first'])
})

test('a process that waits for another one continues when that one ends, and leaves no connection open', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const { connectionString, pool } = database
  const other = new pg.Client({ connectionString })
  await other.connect()
  await other.query('select pg_advisory_lock(7320114)')
  const waiting = migrate(connectionString, { migrations: [FIRST] })
  const countWaiting = async () =>
    (
      await pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'
           and application_name = 'signalbox migrate'`,
      )
    ).rowCount
  await expect.poll(countWaiting).toBe(1)
  expect(await listTables(database)).toEqual([])
  await other.end()
  expect(await waiting).toEqual(['0001_first'])
  const left = () =>
    pool.query(
      `select from pg_stat_activity where datname = current_database() and application_name = 'signalbox migrate'`,
    )
  await expect.poll(async () => (await left()).rowCount).toBe(0)
})
