import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import { systemRandom } from '../src/base/random.ts'
import { startEmbeddedPostgres } from '../src/postgres/embedded/embedded.ts'

/** The one PostgreSQL that both sides of a comparison use. */
export interface DatabaseServer {
  /** Version and durability settings, for the head of a report. */
  description: string
  /** Makes a database and returns its connection string; with `template`, a copy of that one, which nobody may use meanwhile. */
  createDatabase(purpose: string, template?: string): Promise<string>
  /** Drops a database made here and ends its connections. */
  dropDatabase(connectionString: string): Promise<void>
  /** Drops the databases made here, and stops the server when it was started here. */
  close(): Promise<void>
}

/**
 * Opens the server of `DATABASE_URL`, or starts the embedded one under `dataDir` with durable settings and, where its
 * library is there, pg_stat_statements.
 */
export async function openDatabaseServer(dataDir: string): Promise<DatabaseServer> {
  const given = process.env.DATABASE_URL
  const embedded = given ? undefined : await startEmbedded(dataDir)
  const connectionString = given ?? embedded?.connectionString ?? ''
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  const suffix = randomBytes(4).toString('hex')
  const names: string[] = []
  const createDatabase = async (purpose: string, template?: string) => {
    const name = `signalbox_bench_${purpose}_${suffix}`
    const copied = template === undefined ? '' : ` template ${nameOf(template)}`
    await client.query(`create database ${name}${copied}`)
    names.push(name)
    const url = new URL(connectionString)
    url.pathname = `/${name}`
    return url.href
  }
  const drop = (name: string) => client.query(`drop database if exists ${name} with (force)`)
  const dropDatabase = async (made: string) => void (await drop(nameOf(made)))
  const close = async () => {
    for (const name of names) await drop(name)
    await client.end()
    await embedded?.stop()
  }
  return { description: await describe(client), createDatabase, dropDatabase, close }
}

/** The database that a connection string names. */
export function nameOf(connectionString: string): string {
  return new URL(connectionString).pathname.slice(1)
}

async function startEmbedded(dataDir: string) {
  const durable = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' }
  // Settings of a dedicated server: the defaults of the embedded one are for a small machine.
  const size = { shared_buffers: '512MB', max_wal_size: '4GB', wal_level: 'replica' }
  const start = (name: string, settings: Record<string, string>) =>
    startEmbeddedPostgres({ dataDir: join(dataDir, name), random: systemRandom, log: () => {}, settings })
  try {
    return await start('counting', { ...durable, ...size, shared_preload_libraries: 'pg_stat_statements' })
  } catch {
    return await start('plain', { ...durable, ...size })
  }
}

async function describe(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ name: string; setting: string }>(
    `select name, setting from pg_settings where name in ('server_version', 'fsync', 'synchronous_commit', 'shared_buffers')`,
  )
  const setting = (name: string) => rows.find((row) => row.name === name)?.setting ?? 'unknown'
  const durability = `fsync ${setting('fsync')}, synchronous_commit ${setting('synchronous_commit')}`
  // The setting is in pages of 8 KiB.
  return `PostgreSQL ${setting('server_version')}, ${durability}, shared_buffers ${Number(setting('shared_buffers')) / 128} MB`
}
