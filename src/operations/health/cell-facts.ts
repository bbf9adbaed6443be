import { cacheFor } from '../../base/cached.ts'
import type { Clock } from '../../base/clock.ts'
import { type CellStatus, type CellUse, findStatus } from '../../carriage/cell/cell-status.ts'
import { withinAnswerLimit } from '../../postgres/cell/answer-limit.ts'
import type { Cells } from '../../postgres/cell/cells.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { readRealtimeWork } from '../../realtime/realtime-health.ts'
import { readStorageForecast, type StorageForecast, type StorageRetention } from '../storage/storage.ts'
import { readSecretFacts, type SecretFacts } from '../stored-secret/secret-health.ts'
import { readWebhookOutFacts } from './health.store.ts'
import { FACTS_LIFETIME_MS, type WebhookOutFacts } from './webhook-out.ts'

/** How long a cell may be joining: its first copy of the reference rows ends within minutes. */
const JOINING_LIMIT_MS = 1_800_000

/** Known facts of home and its cells, at most 5 s old. */
export interface CellFacts {
  status: CellStatus
  /** The figures of each cell that answers, by name. */
  figures: ReadonlyMap<string, CellFigures>
}

/** Figures that home adds to those of a cell. */
export interface CellFigures {
  webhookOut: WebhookOutFacts
  secrets: SecretFacts
  /** Realtime messages that wait. */
  realtime: { backlog: number; oldestPendingS: number }
  /** Deliveries that reached each status. */
  totals: ReadonlyMap<string, number>
  /** The size of the database and where it leads; at most some minutes old, undefined while it is not known. */
  storage: StorageForecast | undefined
}

/** The figures of cells, and the names of those that are away: theirs are missing. */
export function listFigures(facts: CellFacts | undefined): { figures: CellFigures[]; missing: string[] } {
  const databases = (facts?.status.databases ?? []).filter(({ state }) => state !== 'home' && state !== 'joining')
  const figures = databases.flatMap(({ name }) => facts?.figures.get(name) ?? [])
  return { figures, missing: databases.filter(({ name }) => !facts?.figures.has(name)).map(({ name }) => name) }
}

/** Reads the facts; undefined without cells. */
export type ReadCellFacts = () => Promise<CellFacts | undefined>

/** Builds the reader of a process with an event log. All cells are asked at once, by the pools of the process. */
export function buildCellFacts(deps: {
  findCells: () => Pick<Cells, 'get'>
  /** Home. */
  db: Database
  clock: Pick<Clock, 'now'>
  /** The key ids of SECRET_KEY. */
  keyIds: readonly string[]
  /** Reads how many deliveries of a database reached each status. */
  readTotals: (db: Database) => Promise<ReadonlyMap<string, number>>
  /** `CELL_DISK_BYTES`: space available to the database of a cell, by its name. */
  diskBytes: ReadonlyMap<string, number> | undefined
  retention: StorageRetention
}): ReadCellFacts {
  const { findCells, db, clock, keyIds } = deps
  const findStorage = buildStorageReader(deps)
  return cacheFor(clock, FACTS_LIFETIME_MS, async () => {
    const now = new Date(clock.now())
    const figures = new Map<string, CellFigures>()
    const use: CellUse = async ({ name }, read) => {
      const at = findCells().get(name)
      if (!at) throw new Error(`The cell ${name} is not open in this process.`)
      const reading = (async () => {
        const { db: cell } = at.database
        const webhookOut = await readWebhookOutFacts(cell, now)
        const found = await read(cell)
        figures.set(name, {
          ...{ webhookOut, secrets: await readSecretFacts(cell, keyIds), realtime: await readRealtimeWork(cell, now) },
          ...{ totals: await deps.readTotals(cell), storage: findStorage(name, cell) },
        })
        return found
      })()
      return withinAnswerLimit(reading)
    }
    const status = await findStatus({ home: db, use, now, hasLog: true, joiningMs: JOINING_LIMIT_MS })
    return status && { status, figures }
  })
}

/** PostgreSQL looks at every file of the database for its size. */
const STORAGE_LIFETIME_MS = 60_000

/** The last known forecast: it is read beside the other figures, which do not wait for it. */
function buildStorageReader({
  clock,
  diskBytes,
  retention,
}: Pick<Parameters<typeof buildCellFacts>[0], 'clock' | 'diskBytes' | 'retention'>) {
  const known = new Map<string, { storage: StorageForecast | undefined; untilMs: number }>()
  return (cell: string, db: Database): StorageForecast | undefined => {
    const { storage, untilMs } = known.get(cell) ?? { storage: undefined, untilMs: 0 }
    if (untilMs <= clock.now()) {
      known.set(cell, { storage, untilMs: clock.now() + STORAGE_LIFETIME_MS })
      const disk = { dataDir: undefined, diskBytes: diskBytes?.get(cell) }
      readStorageForecast(db, { now: new Date(clock.now()), disk, retention }).then(
        (read) => known.set(cell, { storage: read, untilMs: clock.now() + STORAGE_LIFETIME_MS }),
        () => known.delete(cell),
      )
    }
    return storage
  }
}
