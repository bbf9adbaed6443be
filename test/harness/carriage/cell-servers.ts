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

/** PostgreSQL servers: one for home, one for cells, or more. Each has the migrated database `signalbox`. */
export interface CellServers extends AsyncDisposable {
  /** The connection string of home. */
  home: string
  /** That of a migrated, empty database on the other server. */
  cell: string
  /** The same of each server of cells, that one first. */
  all: readonly string[]
  /** A pool on a database; closed with the servers. */
  open(connectionString: string): TestDatabase
  /** Makes an empty database on the server of cells. Returns its connection string. */
  create(name: string): Promise<string>
  /** Resets the connections to the server of home or of `cell`, and refuses new ones; or lets them pass again. */
  setAway(which: 'home' | 'cell', isAway: boolean): void
  /** `DatabaseProxy.holdAnswer`, at the server of home or of `cell`. */
  holdAnswer(which: 'home' | 'cell', text: string): Promise<void>
}

const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  wal_level: 'logical',
  max_wal_senders: '10',
  max_connections: '200',
}

/** Settings of home, and how many servers of cells there are. */
export interface CellServersOptions {
  settings?: Record<string, string>
  cells?: number
}

/** Starts home and, by default, one server of cells. */
export async function startCellServers({ settings = {}, cells = 1 }: CellServersOptions = {}): Promise<CellServers> {
  const root = await mkdtemp(join(await findDataRoot(), 'signalbox cells '))
  const launch = async (name: string, own: Record<string, string>) => {
    const dataDir = join(root, name)
    await seedDataDir(dataDir)
    const given = { random: systemRandom, log: () => {}, settings: { ...SETTINGS, ...own } }
    const server = await startEmbeddedPostgres({ dataDir, ...given })
    return { ...server, proxy: await startDatabaseProxy(server.connectionString) }
  }
  const names = Array.from({ length: cells }, (_, index) => `cell ${index + 1}`)
  const [home, ...others] = await Promise.all([launch('home', settings), ...names.map((name) => launch(name, {}))])
  const [cell] = others
  if (!cell) throw new RangeError('one server of cells at least')
  const pools: TestDatabase[] = []
  return {
    home: home.proxy.connectionString,
    cell: cell.proxy.connectionString,
    all: others.map(({ proxy }) => proxy.connectionString),
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
      return withDatabaseName(cell.proxy.connectionString, name)
    },
    setAway: (which, isAway) => (which === 'home' ? home : cell).proxy.set(isAway ? 'refusing' : 'open'),
    holdAnswer: (which, text) => (which === 'home' ? home : cell).proxy.holdAnswer(text),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(pools.map((pool) => pool.close()))
      const servers = [home, ...others]
      await Promise.all(servers.map(({ proxy }) => proxy[Symbol.asyncDispose]()))
      await Promise.all(servers.map((server) => server.stop()))
      await rm(root, { recursive: true, force: true })
    },
  }
}
