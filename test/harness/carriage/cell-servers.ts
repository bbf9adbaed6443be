import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { systemRandom } from '../../../src/base/random.ts'
import { startEmbeddedPostgres } from '../../../src/postgres/embedded/embedded.ts'
import { openDatabase } from '../../../src/postgres/statement/database.ts'
import type { TestDatabase } from '../database/database.ts'
import { withDatabaseName } from '../database/database-url.ts'
import { startDatabaseProxy } from '../fakes/proxy.ts'
import { findDataRoot } from '../process/data-root.ts'
import { seedDataDir } from '../process/seeded-data-dir.ts'

/** Two PostgreSQL servers: one for home, one for cells. Each has the migrated database `signalbox`. */
export interface CellServers extends AsyncDisposable {
  /** The connection string of home. */
  home: string
  /** That of a migrated, empty database on the other server. */
  cell: string
  /** A pool on a database; closed with the servers. */
  open(connectionString: string): TestDatabase
  /** Makes an empty database on the server of cells. Returns its connection string. */
  create(name: string): Promise<string>
  /** Resets the connections to the server of home or of the cells, and refuses new ones; or lets them pass again. */
  setAway(which: 'home' | 'cell', isAway: boolean): void
}

const SETTINGS = { fsync: 'off', full_page_writes: 'off', wal_level: 'logical', max_wal_senders: '10' }

/** Starts both. `settings` are those of home. */
export async function startCellServers(settings: Record<string, string> = {}): Promise<CellServers> {
  const root = await mkdtemp(join(await findDataRoot(), 'signalbox cells '))
  const dirs = { home: join(root, 'home'), cell: join(root, 'cell') }
  const of = { home: { ...SETTINGS, ...settings }, cell: SETTINGS }
  await Promise.all(Object.values(dirs).map(seedDataDir))
  const launch = (which: 'home' | 'cell') =>
    startEmbeddedPostgres({ dataDir: dirs[which], random: systemRandom, log: () => {}, settings: of[which] })
  const [home, cell] = await Promise.all([launch('home'), launch('cell')])
  const proxies = {
    home: await startDatabaseProxy(home.connectionString),
    cell: await startDatabaseProxy(cell.connectionString),
  }
  const pools: TestDatabase[] = []
  return {
    home: proxies.home.connectionString,
    cell: proxies.cell.connectionString,
    open: (connectionString) => {
      const opened = openDatabase({ connectionString, size: 4, applicationName: 'signalbox test', onError: () => {} })
      const pool = { ...opened, connectionString, [Symbol.asyncDispose]: () => opened.close() }
      pools.push(pool)
      return pool
    },
    create: async (name) => {
      const client = new pg.Client({ connectionString: cell.connectionString })
      await client.connect()
      await client.query(`create database ${name} template template0`)
      await client.end()
      return withDatabaseName(proxies.cell.connectionString, name)
    },
    setAway: (which, isAway) => proxies[which].set(isAway ? 'refusing' : 'open'),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(pools.map((pool) => pool.close()))
      await Promise.all(Object.values(proxies).map((proxy) => proxy[Symbol.asyncDispose]()))
      await Promise.all([home, cell].map((server) => server.stop()))
      await rm(root, { recursive: true, force: true })
    },
  }
}
