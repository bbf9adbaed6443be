import { listCells } from '../../postgres/cell/cell.store.ts'
import { buildCells, buildHomeAlone, type CellDatabase, type Cells } from '../../postgres/cell/cells.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { OpenedCell } from '../prepare/cell-pools.ts'
import type { WorkerParts } from '../work/worker-parts.ts'
import type { Workers } from '../work/workers.ts'
import { buildAppIntake } from './app-intake.ts'
import { buildCellWatch, type CellWatch } from './cell-watch.ts'
import { buildCellWorkers } from './cell-workers.ts'

/** The cells of this process. */
export interface AppCells {
  cells: Cells
  /** Opens them, and says which are open; undefined without an event log. */
  watch: CellWatch | undefined
  /** The watch, or, without an event log, a single look that refuses. */
  running: Pick<CellWatch, 'run' | 'stop'>
}

/** Builds the databases that hold accounts. Nothing runs before `running.run`. */
export function buildAppCells(parts: WorkerParts, workers: Pick<Workers, 'metrics' | 'notify' | 'isLive'>): AppCells {
  const { config, logger, keyring } = parts
  const { db } = parts.requestDatabase
  const home: CellDatabase = {
    ...{ name: null, connectionString: parts.connectionString },
    ...{ database: parts.requestDatabase, readDatabase: parts.readDatabase ?? parts.requestDatabase },
    ...{ workerDatabase: parts.database, leaseDatabase: parts.leaseDatabase ?? parts.database },
    maintenanceDatabase: parts.maintenanceDatabase ?? parts.database,
  }
  const { eventLog } = config
  const { metrics } = workers
  const counts = metrics.intake
  if (!eventLog || !counts)
    return { cells: buildHomeAlone(home), watch: undefined, running: buildCellRefusal({ logger, db }) }
  const watch = buildCellWatch({
    ...{ config, logger, keyring, db },
    buildWorkers: (opened, homeId) =>
      buildCellWorkers(partsOf(parts, opened), {
        ...{ metrics, eventLog, home: homeId, cell: opened.name, counts },
        homeDb: parts.database.db,
      }),
    buildHomeIntake: (homeId) => {
      if (!config.roles.includes('dispatcher')) return undefined
      return buildAppIntake(parts, { ...{ eventLog, home: homeId, self: 'home', counts }, onQueued: workers.notify })
    },
  })
  const cells = buildCells({ home, db, isLive: workers.isLive, opened: watch.opened, open: watch.look })
  return { cells, watch, running: watch }
}

/** Logs that a process without EVENT_LOG_URL serves no cell; the fence refuses its writes for their accounts. */
function buildCellRefusal({ logger, db }: Pick<WorkerParts, 'logger'> & { db: Database }): AppCells['running'] {
  return {
    run: async () => {
      const cells = await listCells(db).catch((err: unknown) => {
        logger.warn({ err }, 'cells not looked up: see docs/operations.md, database')
        return []
      })
      if (cells.length > 0)
        logger.error(
          { cells: cells.map(({ name }) => name) },
          'cells are not served by this process, since EVENT_LOG_URL is not set: set it in every process, see docs/operations/cells.md, needs',
        )
    },
    stop: async () => {},
  }
}

/** The parts of workers with the pools of a cell. Its log lines have its name. */
function partsOf(parts: WorkerParts, opened: OpenedCell): Omit<WorkerParts, 'time'> {
  const { time: _time, ...rest } = parts
  return {
    ...rest,
    logger: parts.logger.child({ cell: opened.name }),
    database: opened.workerDatabase,
    requestDatabase: opened.database,
    readDatabase: opened.readDatabase,
    leaseDatabase: opened.leaseDatabase,
    maintenanceDatabase: opened.maintenanceDatabase,
    replicaDatabase: undefined,
    connectionString: opened.connectionString,
  }
}
