import { randomUUID } from 'node:crypto'
import { readMonotonicMs, systemClock } from '../../../src/base/clock.ts'
import { buildKeyring } from '../../../src/base/keyring.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { type AddCellDeps, type AddCellInput, addCell } from '../../../src/carriage/cell/add-cell.ts'
import { openOutbox } from '../../../src/carriage/relay/outbox.store.ts'
import { migrate } from '../../../src/postgres/migration/migrate.ts'
import { openDatabase } from '../../../src/postgres/statement/database.ts'
import type { TestDatabase } from '../database/database.ts'
import { type CellServers, type CellServersOptions, startCellServers } from './cell-servers.ts'

export const keyring = buildKeyring(['a secret of at least thirty-two characters'], systemRandom)

/** The servers, home with an open event log, and what adds cells to it. */
export interface CellsUnderTest extends CellServers {
  homeDb: TestDatabase
  /** Audit entries that were written. */
  recorded: Record<string, unknown>[]
  deps(over?: Partial<AddCellDeps>): AddCellDeps
  /** Adds a cell: by default the migrated database of the other server, named `one`. */
  add(input?: Partial<AddCellInput>, over?: Partial<AddCellDeps>): Promise<void>
}

/** Starts them. */
export async function startCellsUnderTest(options: CellServersOptions = {}): Promise<CellsUnderTest> {
  const servers = await startCellServers(options)
  const homeDb = servers.open(servers.home)
  await openOutbox(homeDb.db)
  const recorded: Record<string, unknown>[] = []
  const deps = (over: Partial<AddCellDeps> = {}): AddCellDeps => ({
    ...{ home: homeDb.db, keyring, migrate, newId: randomUUID, now: () => new Date() },
    open: (connectionString) =>
      openDatabase({ connectionString, size: 2, applicationName: 'signalbox cell', onError: () => {} }),
    ...{ monotonicMs: readMonotonicMs, rest: systemClock.sleep },
    record: async (_tx, detail) => void recorded.push(detail),
    ...over,
  })
  return {
    ...servers,
    ...{ homeDb, recorded, deps },
    add: (input = {}, over = {}) =>
      addCell(deps(over), { name: 'one', url: servers.cell, source: servers.home, ...input }),
  }
}
