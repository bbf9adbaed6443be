import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemRandom } from '../../../src/base/random.ts'
import { startEmbeddedPostgres } from '../../../src/postgres/embedded/embedded.ts'
import { openDatabase } from '../../../src/postgres/statement/database.ts'
import { findDataRoot } from '../process/data-root.ts'
import { seedDataDir } from '../process/seeded-data-dir.ts'
import { copyCluster } from './cluster.ts'
import type { TestDatabase } from './database.ts'

/** A primary server and a standby of it, which has what the primary had at its start and gets nothing more. */
export interface PrimaryAndStandby extends AsyncDisposable {
  primary: TestDatabase
  /** The connection string of the standby: `pg_is_in_recovery()` is true, and it takes no changes. */
  standby: string
}

const start = (dataDir: string) =>
  startEmbeddedPostgres({
    dataDir,
    random: systemRandom,
    log: () => {},
    // The machine stays up, so what was written outlives the server without being forced to disk.
    settings: { fsync: 'off', full_page_writes: 'off', wal_level: 'replica' },
  })

/** Starts both. `fill` runs on the primary before the standby is made of a copy of its files. */
export async function startPrimaryAndStandby(
  fill: (primary: TestDatabase) => Promise<void> = async () => {},
): Promise<PrimaryAndStandby> {
  const root = await mkdtemp(join(await findDataRoot(), 'signalbox standby '))
  const [primaryDir, standbyDir] = [join(root, 'primary'), join(root, 'standby')]
  await seedDataDir(primaryDir)
  const first = await start(primaryDir)
  const filled = openTestDatabase(first.connectionString)
  await fill(filled)
  await filled[Symbol.asyncDispose]()
  await first.stop()
  await copyCluster(primaryDir, standbyDir)
  await writeFile(join(standbyDir, 'postgres', 'data', 'standby.signal'), '')
  const [primary, standby] = await Promise.all([start(primaryDir), start(standbyDir)])
  const database = openTestDatabase(primary.connectionString)
  return {
    primary: database,
    standby: standby.connectionString,
    [Symbol.asyncDispose]: async () => {
      await database[Symbol.asyncDispose]()
      await Promise.all([primary.stop(), standby.stop()])
      await rm(root, { recursive: true, force: true })
    },
  }
}

function openTestDatabase(connectionString: string): TestDatabase {
  const opened = openDatabase({ connectionString, size: 4, applicationName: 'signalbox test', onError: () => {} })
  return { ...opened, connectionString, [Symbol.asyncDispose]: () => opened.close() }
}
