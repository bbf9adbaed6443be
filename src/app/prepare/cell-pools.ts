import type { Logger } from 'pino'
import type { CellDatabase } from '../../postgres/cell/cells.ts'
import {
  EVENT_QUEUE_OFF,
  INDEX_ONLY_PLANS,
  INDEX_PLANS,
  openDatabase,
  READ_LIMITS,
  READ_PLANS,
  REQUEST_LOCK_LIMIT_MS,
  SHORT_LIMITS,
  WORKER_LOCK_LIMIT_MS,
} from '../../postgres/statement/database.ts'
import type { Config } from '../config/config.ts'

/** The pools of this process on a cell. */
export interface OpenedCell extends CellDatabase {
  name: string
  close(): Promise<void>
}

/** Opens the pools on a cell, of the sizes of those on home. No connection is made yet. */
export function openCellPools(
  { name, connectionString }: { name: string; connectionString: string },
  { config, logger }: { config: Config; logger: Logger },
): OpenedCell {
  let isClosing = false
  const onError = (error: Error) => {
    if (!isClosing)
      logger.error(
        { err: error, cell: name },
        'connection to a cell lost: see docs/operations/cells.md, a cell that is away',
      )
  }
  const settings = config.enableApiEventQueue ? '' : EVENT_QUEUE_OFF
  const shared = { connectionString, onError, siblings: new Set<never>() }
  const ofWorkers = { ...shared, settings: `${INDEX_ONLY_PLANS} ${settings}`, lockTimeoutMs: WORKER_LOCK_LIMIT_MS }
  const workers = { ...ofWorkers, limits: SHORT_LIMITS }
  const pools = {
    database: openDatabase({
      ...{ ...shared, settings: `${INDEX_PLANS} ${settings}`, size: config.databasePoolSize },
      ...{ applicationName: 'signalbox', lockTimeoutMs: REQUEST_LOCK_LIMIT_MS, limits: SHORT_LIMITS },
    }),
    readDatabase: openDatabase({
      ...{ ...shared, settings: `${READ_PLANS} ${settings}`, size: config.databaseReadPoolSize },
      ...{ applicationName: 'signalbox reads', limits: READ_LIMITS },
    }),
    workerDatabase: openDatabase({
      ...{ ...workers, size: config.databaseWorkerPoolSize, applicationName: 'signalbox worker' },
    }),
    leaseDatabase: openDatabase({ ...workers, size: 1, applicationName: 'signalbox lease' }),
    maintenanceDatabase: openDatabase({ ...ofWorkers, size: 2, applicationName: 'signalbox maintenance' }),
  }
  return {
    ...{ name, connectionString, ...pools },
    close: async () => {
      isClosing = true
      await Promise.all(Object.values(pools).map((pool) => pool.close()))
    },
  }
}
