import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'

/** The folder of the numbered SQL files. */
const MIGRATIONS_DIRECTORY = join(import.meta.dirname, '..', '..', 'migrations')

/** The key of the advisory lock under which one process migrates while the others wait. An arbitrary constant. */
const MIGRATION_LOCK = 7_320_114

/** One numbered file of `migrations/`. */
export interface Migration {
  /** `0002_outbound_webhooks` */
  name: string
  sql: string
  /** SHA-256 of the file, hex. Detects edits of a migration that ran. */
  hash: string
}

/** A migration that cannot run; the message names it and the remedy. */
export class MigrationError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'MigrationError'
  }
}

/** Reads the migrations in the order of their numbers. */
export async function readMigrations(directory: string = MIGRATIONS_DIRECTORY): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort()
  return Promise.all(
    files.map(async (file) => {
      const sql = await readFile(join(directory, file), 'utf8')
      return { name: file.slice(0, -4), sql, hash: createHash('sha256').update(sql).digest('hex') }
    }),
  )
}

/**
 * Migrates the database and returns the names of the migrations that ran now. Forward only; each runs in a transaction of
 * its own. Safe in concurrent processes: one migrates, the others wait for it.
 * `upTo` stops after that migration (tests of old schemas). Throws a `MigrationError` when the database is older than
 * PostgreSQL 15, was migrated by a newer Signalbox, or holds an edited migration.
 */
export async function migrate(
  connectionString: string,
  options: { migrations?: Migration[]; upTo?: string; now?: Date } = {},
): Promise<string[]> {
  const migrations = options.migrations ?? (await readMigrations())
  const client = new pg.Client({
    connectionString,
    application_name: 'signalbox migrate',
    connectionTimeoutMillis: 5000,
  })
  // pg reports a broken connection through the failing query; an unhandled error event would end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    await checkServerVersion(client)
    await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK])
    await client.query(
      `create table if not exists schema_migration (
         name text primary key, hash text not null, ran_at timestamptz(3) not null)`,
    )
    const done = await client.query<{ name: string; hash: string }>('select name, hash from schema_migration')
    const todo = planMigrations(migrations, done.rows, options.upTo)
    for (const migration of todo) await runMigration(client, migration, options.now ?? new Date())
    return todo.map((migration) => migration.name)
  } finally {
    await client.end()
  }
}

async function checkServerVersion(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ server_version_num: string }>('show server_version_num')
  checkVersionNumber(Number(rows[0]?.server_version_num))
}

/** Checks a `server_version_num` of PostgreSQL, such as 150004 for 15.4. Throws a `MigrationError` below 15. */
export function checkVersionNumber(versionNumber: number): void {
  const major = Math.floor(versionNumber / 10_000)
  if (!(major >= 15)) throw new MigrationError(`DATABASE_URL is PostgreSQL ${major}; Signalbox needs 15 or newer.`)
}

/** The pending migrations, in order. Throws when the migrations that ran differ from the files. */
export function planMigrations(
  migrations: Migration[],
  done: { name: string; hash: string }[],
  upTo?: string,
): Migration[] {
  const known = new Map(migrations.map((migration) => [migration.name, migration]))
  for (const { name, hash } of done) {
    const migration = known.get(name)
    if (!migration)
      throw new MigrationError(
        `The database has migration ${name}, which this version does not contain. Run the newer Signalbox.`,
      )
    if (migration.hash !== hash)
      throw new MigrationError(
        `Migration ${name} was edited after it ran. Restore the file; put changes into a new one.`,
      )
  }
  const ran = new Set(done.map(({ name }) => name))
  return migrations.filter(({ name }) => !ran.has(name) && (upTo === undefined || name <= upTo))
}

async function runMigration(client: pg.Client, migration: Migration, now: Date): Promise<void> {
  try {
    await client.query('begin')
    await client.query(migration.sql)
    await client.query('insert into schema_migration (name, hash, ran_at) values ($1, $2, $3)', [
      migration.name,
      migration.hash,
      now,
    ])
    await client.query('commit')
  } catch (error) {
    // The server also rolls back a lost connection; the first error is the cause.
    await client.query('rollback').catch(() => {})
    throw new MigrationError(`Migration ${migration.name} failed and was rolled back: ${(error as Error).message}`, {
      cause: error,
    })
  }
}
