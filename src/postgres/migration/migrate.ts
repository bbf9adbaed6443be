import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { isLockTimeout } from '../statement/database.ts'
import { ADVISORY_LOCKS } from '../statement/locks.ts'
import { openMigrationClient } from './migration-client.ts'
import { MigrationError, type MigrationErrorCode } from './migration-error.ts'

const MIGRATIONS_DIRECTORY = join(import.meta.dirname, '..', '..', '..', 'migrations')

/** Wait for the lock of migrations before a log line. */
const LOCK_STEP_MS = 5_000

/** One numbered file of `migrations/`. */
export interface Migration {
  /** `0002_base` */
  name: string
  sql: string
  /** SHA-256 of the file without its mark, hex. Detects edits of a migration that ran. */
  hash: string
  /** Whether code without the migration runs on the new schema, without loss of data: `-- additive`. */
  isAdditive: boolean
}

/** A row of `schema_migration`: a migration that ran. */
export interface DoneMigration {
  name: string
  hash: string
  /** As declared in the applied file. */
  isAdditive: boolean
}

/** The state of a schema against the files of this program. */
export interface SchemaPlan {
  /** The migrations that have not run, in order. */
  pending: Migration[]
  /** The additive migrations of a newer release, which this program does not contain. */
  ahead: string[]
  /** Whether no migration has run: no release uses the database. */
  isNew: boolean
}

/** The first line of a migration says whether it is additive, and if not, what breaks. */
const MARK = /^-- (additive|not additive: \S.*)\n/

/** Builds a migration from the text of its file. Without a mark it counts as not additive. */
export function parseMigration(name: string, text: string): Migration {
  const mark = MARK.exec(text)
  // Without the mark: files that ran before there were marks keep their hash.
  const hash = createHash('sha256')
    .update(text.slice(mark?.[0].length ?? 0))
    .digest('hex')
  return { name, sql: text, hash, isAdditive: mark?.[1] === 'additive' }
}

/** Reads the migrations in the order of their numbers. */
export async function readMigrations(directory: string = MIGRATIONS_DIRECTORY): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort()
  return Promise.all(
    files.map(async (file) => {
      return parseMigration(file.slice(0, -4), await readFile(join(directory, file), 'utf8'))
    }),
  )
}

export interface MigrateOptions {
  migrations?: Migration[]
  /** Stops after that migration (tests of old schemas). */
  upTo?: string
  now?: Date
  /** Ends the wait for another process, and runs no further migration after the running one. */
  stop?: AbortSignal | undefined
  /** Runs every few seconds while another process migrates. */
  onWait?: (() => void) | undefined
}

/**
 * Migrates the database. Returns the migrations applied now, and those of a newer release (`ahead`), which are
 * additive. Forward only; each runs in a transaction of its own. Safe in concurrent processes: one migrates, the others
 * wait for it. Throws a `MigrationError` when the database is older than PostgreSQL 15, has an edited migration, or one
 * that this program lacks and that is not additive.
 */
export async function migrateSchema(
  connectionString: string,
  options: MigrateOptions = {},
): Promise<{ ran: string[]; ahead: string[] }> {
  const migrations = options.migrations ?? (await readMigrations())
  return withMigrationClient(connectionString, async (client) => {
    if (!(await takeLock(client, options))) return { ran: [], ahead: [] }
    await ensureTable(client)
    const { pending, ahead } = planMigrations(migrations, await readDone(client), options.upTo)
    await recordMarks(client, migrations)
    const ran: string[] = []
    for (const migration of pending) {
      if (options.stop?.aborted) break
      await runMigration(client, migration, options.now ?? new Date())
      ran.push(migration.name)
    }
    return { ran, ahead }
  })
}

/** Migrates the database like `migrateSchema`, and returns the names of the migrations that ran now. */
export async function migrate(connectionString: string, options: MigrateOptions = {}): Promise<string[]> {
  return (await migrateSchema(connectionString, options)).ran
}

/** Plan of `migrateSchema`. Changes nothing and takes no lock. Throws as `migrateSchema` does. */
export async function readSchemaPlan(
  connectionString: string,
  options: Pick<MigrateOptions, 'migrations'> = {},
): Promise<SchemaPlan> {
  const migrations = options.migrations ?? (await readMigrations())
  return withMigrationClient(connectionString, async (client) => planMigrations(migrations, await readDone(client)))
}

async function withMigrationClient<Result>(
  connectionString: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const { client, end } = await openMigrationClient(connectionString)
  try {
    await checkServerVersion(client)
    return await work(client)
  } finally {
    await end()
  }
}

/** Waits until no other process migrates. False when the stop comes first; the end of the connection then ends the wait. */
async function takeLock(client: pg.Client, { stop, onWait }: MigrateOptions): Promise<boolean> {
  // A session whose process has ended would be the next to get the lock. Not every server can detect that.
  await client.query(`set client_connection_check_interval = '1s'`).catch(() => {})
  const taken = takeInSteps(client, { stop, onWait })
  if (!stop) return taken
  // The query fails with the connection, when no caller waits for it.
  taken.catch(() => {})
  const { promise: stopped, resolve } = Promise.withResolvers<false>()
  const leave = () => resolve(false)
  if (stop.aborted) leave()
  stop.addEventListener('abort', leave, { once: true })
  return Promise.race([taken, stopped]).finally(() => stop.removeEventListener('abort', leave))
}

/** Waits in short statements, so that a dead server is detected and each wait is logged. */
async function takeInSteps(client: pg.Client, { stop, onWait }: MigrateOptions): Promise<boolean> {
  await client.query(`set lock_timeout = ${LOCK_STEP_MS}`)
  while (!stop?.aborted) {
    const isTaken = await client.query(`select pg_advisory_lock(${ADVISORY_LOCKS.migration.key})`).then(
      () => true,
      (error: unknown) => {
        if (!isLockTimeout(error)) throw error
        return false
      },
    )
    if (isTaken) {
      // Locks of migrations may take long.
      await client.query('set lock_timeout = 0')
      return true
    }
    onWait?.()
  }
  return false
}

async function ensureTable(client: pg.Client): Promise<void> {
  await client.query(
    `create table if not exists schema_migration (
       name text primary key, hash text not null, ran_at timestamptz(3) not null, is_additive boolean not null)`,
  )
}

async function readDone(client: pg.Client): Promise<DoneMigration[]> {
  const { rows: tables } = await client.query(`select where to_regclass('schema_migration') is not null`)
  if (tables.length === 0) return []
  const { rows } = await client.query<DoneMigration>(
    'select name, hash, is_additive as "isAdditive" from schema_migration order by name',
  )
  return rows
}

/** Updates the declarations of applied migrations whose files have changed them. */
async function recordMarks(client: pg.Client, migrations: Migration[]): Promise<void> {
  await client.query(
    `update schema_migration m set is_additive = f.is_additive
     from unnest($1::text[], $2::boolean[]) f (name, is_additive)
     where m.name = f.name and m.is_additive is distinct from f.is_additive`,
    [migrations.map(({ name }) => name), migrations.map(({ isAdditive }) => isAdditive)],
  )
}

async function checkServerVersion(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ server_version_num: string }>('show server_version_num')
  checkVersionNumber(Number(rows[0]?.server_version_num))
}

/** Checks a `server_version_num` of PostgreSQL, such as 150004 for 15.4. Throws a `MigrationError` below 15. */
export function checkVersionNumber(versionNumber: number): void {
  const major = Math.floor(versionNumber / 10_000)
  if (!(major >= 15))
    throw new MigrationError('postgres_too_old', `DATABASE_URL is PostgreSQL ${major}; Signalbox needs 15 or newer.`)
}

/**
 * Compares the migrations that ran with the files. Throws a `MigrationError` when a file was edited after it ran, when
 * a migration ran that the files lack and that is not additive, and when one ran that they lack although others of
 * theirs have not run.
 */
export function planMigrations(
  migrations: readonly Migration[],
  done: readonly DoneMigration[],
  upTo?: string,
): SchemaPlan {
  const known = new Map(migrations.map((migration) => [migration.name, migration]))
  const ahead = done.filter(({ name }) => !known.has(name))
  const breaking = ahead.find(({ isAdditive }) => !isAdditive)
  if (breaking) throw buildMigrationError('schema_ahead', breaking.name)
  const edited = done.find(({ name, hash }) => known.has(name) && known.get(name)?.hash !== hash)
  if (edited) throw buildMigrationError('migration_edited', edited.name)
  const ran = new Set(done.map(({ name }) => name))
  const pending = migrations.filter(({ name }) => !ran.has(name) && (upTo === undefined || name <= upTo))
  if (ahead[0] && pending[0]) throw buildMigrationError('schema_diverged', ahead[0].name)
  return { pending, ahead: ahead.map(({ name }) => name), isNew: done.length === 0 }
}

const MESSAGES = {
  schema_ahead: (name: string) =>
    `The database has migration ${name}, which this release does not contain and cannot run on: it is not additive. Run the newer release, or restore the backup of before the upgrade.`,
  schema_diverged: (name: string) =>
    `The database has migration ${name}, which this release does not contain, and lacks one that it contains: they are of two lines of development. Run a release that contains both.`,
  migration_edited: (name: string) =>
    `Migration ${name} was edited after it ran. Restore the file; put changes into a new one.`,
}

function buildMigrationError(code: MigrationErrorCode & keyof typeof MESSAGES, name: string): MigrationError {
  return new MigrationError(code, MESSAGES[code](name))
}

async function runMigration(client: pg.Client, migration: Migration, now: Date): Promise<void> {
  try {
    await client.query('begin')
    await client.query(migration.sql)
    await client.query('insert into schema_migration (name, hash, ran_at, is_additive) values ($1, $2, $3, $4)', [
      migration.name,
      migration.hash,
      now,
      migration.isAdditive,
    ])
    await client.query('commit')
  } catch (error) {
    // The server also rolls back a lost connection; the first error is the cause.
    await client.query('rollback').catch(() => {})
    const { message } = error as Error
    throw new MigrationError(
      'migration_failed',
      `Migration ${migration.name} failed and was rolled back: ${message}.`,
      { cause: error },
    )
  }
}
