import { buildCells, buildHomeAlone, type CellDatabase, type Cells } from '../../postgres/cell/cells.ts'
import type { OpenedCell } from '../prepare/cell-pools.ts'
import type { WorkerParts } from '../work/worker-parts.ts'
import type { Workers } from '../work/workers.ts'
import { buildAppIntake } from './app-intake.ts'
import { buildCellWatch, type CellWatch } from './cell-watch.ts'
import { buildCellWorkers } from './cell-workers.ts'

/** The cells of this process, and what opens them; `watch` is undefined without an event log: nothing is asked. */
export interface AppCells {
  cells: Cells
  watch: CellWatch | undefined
}

/** Builds the databases that hold accounts. Nothing runs before `watch.run`. */
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
  if (!eventLog || !counts) return { cells: buildHomeAlone(home), watch: undefined }
  const watch = buildCellWatch({
    ...{ config, logger, keyring, db },
    buildWorkers: (opened, homeId) =>
      buildCellWorkers(partsOf(parts, opened), { metrics, eventLog, home: homeId, cell: opened.name, counts }),
    buildHomeIntake: (homeId) => {
      if (!config.roles.includes('dispatcher')) return undefined
      return buildAppIntake(parts, { ...{ eventLog, home: homeId, self: 'home', counts }, onQueued: workers.notify })
    },
  })
  const cells = buildCells({ home, db, isLive: workers.isLive, opened: watch.opened, open: watch.look })
  return { cells, watch }
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
