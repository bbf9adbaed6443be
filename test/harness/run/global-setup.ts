import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import type { UserId } from '../../../src/base/id.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { startEmbeddedPostgres } from '../../../src/postgres/embedded/embedded.ts'
import { migrate } from '../../../src/postgres/migration/migrate.ts'
import { openDatabase } from '../../../src/postgres/statement/database.ts'
import { prepareForTest } from '../app/prepared-database.ts'
import { copyCluster } from '../database/cluster.ts'
import { listTemplates, nameKeptTemplate, nameTemplate, withDatabaseName } from '../database/database-url.ts'
import { TEST_CONNECT_LIMIT_MS } from '../database/kept-pool.ts'
import { keepRows } from '../database/restorable-database.ts'
import { readFunctions } from '../plan/lock-order.ts'
import { findDataRoot } from '../process/data-root.ts'
import { buildManualClock } from './manual-clock.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The server all tests share, as its superuser. */
    databaseServerUrl: string
    /** The folder of the server's Unix-domain socket; absent with TEST_DATABASE_URL and on Windows. */
    databaseSocket: string | undefined
    /** The administrator in every prepared database. */
    administrator: UserId
    /** The functions of a prepared database: names and bodies. */
    databaseFunctions: readonly (readonly [name: string, body: string])[]
    /** The folder of a stopped cluster of the embedded server whose database is migrated; absent with TEST_DATABASE_URL. */
    cluster: string | undefined
  }
}

/**
 * Starts one PostgreSQL for the whole run, or uses that of TEST_DATABASE_URL, and creates the templates of the test
 * databases.
 */
export default async function setup(project: TestProject) {
  const given = process.env.TEST_DATABASE_URL
  const server = given ? await prepareGivenServer(given) : await startThrowawayServer()
  const prepared = nameTemplate(server.url, 'prepared')
  await copyDatabase(server.url, nameTemplate(server.url, 'migrated'), prepared)
  const administrator = await prepareTemplate(withDatabaseName(server.url, prepared))
  await keepTemplates(server.url)
  project.provide('databaseServerUrl', server.url)
  project.provide('databaseSocket', server.socketDir)
  project.provide('administrator', administrator)
  project.provide('databaseFunctions', await listFunctions(withDatabaseName(server.url, prepared)))
  project.provide('cluster', server.cluster)
  return () => server.stop()
}

/** Each clone would take twice its own work to keep a copy of its rows. */
async function keepTemplates(serverUrl: string): Promise<void> {
  for (const content of ['migrated', 'prepared'] as const) {
    const name = nameKeptTemplate(serverUrl, content)
    await copyDatabase(serverUrl, nameTemplate(serverUrl, content), name)
    await keepRows(withDatabaseName(serverUrl, name))
  }
}

function copyDatabase(serverUrl: string, template: string, name: string): Promise<void> {
  return runOnServer(serverUrl, [`create database "${name}" template "${template}" strategy file_copy`])
}

async function runOnServer(url: string, statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}

async function listFunctions(connectionString: string): Promise<[string, string][]> {
  const pool = new pg.Pool({ connectionString, max: 1 })
  try {
    return [...(await readFunctions(pool))]
  } finally {
    await pool.end()
  }
}

/** Fills the prepared template, at the start time of the manual clocks. */
async function prepareTemplate(connectionString: string): Promise<UserId> {
  const database = openDatabase({
    connectionString,
    size: 2,
    applicationName: 'signalbox test',
    connectLimitMs: TEST_CONNECT_LIMIT_MS,
    onError: () => {},
  })
  const administrator = await prepareForTest({ ...database, connectionString }, buildManualClock())
  await database.close()
  return administrator
}

/**
 * Without durability: crash tests kill processes, not the machine. Without autovacuum: what a plan depends on is what a test
 * made, not what was analysed meanwhile.
 */
const THROWAWAY_SETTINGS = {
  autovacuum: 'off',
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '256MB',
  max_connections: '400',
}

async function prepareGivenServer(url: string) {
  const migrated = nameTemplate(url, 'migrated')
  await runOnServer(url, [
    ...listTemplates(url).map((name) => `drop database if exists "${name}"`),
    `create database "${migrated}"`,
  ])
  await migrate(withDatabaseName(url, migrated))
  return { url, socketDir: undefined, cluster: undefined, stop: async () => {} }
}

/** A folder for a socket, open to the user of the server, who is another one where tests run as root. */
async function makeSocketDir(): Promise<string | undefined> {
  if (process.platform === 'win32') return undefined
  const folder = await mkdtemp(join(await findDataRoot(), 'signalbox socket '))
  await chmod(folder, 0o1777)
  return folder
}

async function startThrowawayServer() {
  const dataDir = await mkdtemp(join(await findDataRoot(), 'signalbox test '))
  const socketDir = await makeSocketDir()
  const settings = THROWAWAY_SETTINGS
  const start = () =>
    startEmbeddedPostgres({ dataDir, random: systemRandom, log: () => {}, settings, ...(socketDir && { socketDir }) })
  const first = await start()
  await migrate(first.connectionString)
  await first.stop()
  const cluster = join(dataDir, 'copied')
  await copyCluster(join(dataDir, 'postgres'), cluster)
  const postgres = await start()
  const { password, pathname } = new URL(postgres.connectionString)
  await runOnServer(withDatabaseName(postgres.connectionString, 'postgres'), [
    `alter database ${pathname.slice(1)} rename to ${nameTemplate(postgres.connectionString, 'migrated')}`,
    `create database ${pathname.slice(1)}`,
    // Each test app opens several connections; with the default of 4,096 iterations each costs milliseconds of hashing.
    'set scram_iterations = 1',
    `alter role current_user password ${pg.escapeLiteral(decodeURIComponent(password))}`,
  ])
  return {
    url: postgres.connectionString,
    socketDir,
    cluster,
    stop: async () => {
      await postgres.stop()
      await rm(dataDir, { recursive: true, force: true })
      if (socketDir) await rm(socketDir, { recursive: true, force: true })
    },
  }
}
