import type { Logger } from 'pino'
import type { AccountId } from '../../base/id.ts'
import { listSubscribedTypes } from '../../event/occurrence/event.store.ts'
import { buildReadSubscriptions, type ReadSubscriptions } from '../../event/occurrence/read-subscriptions.ts'
import { buildPublicationBatch, type PublicationBatchDeps } from '../../event/recording/publication-batch.ts'
import { buildCellAway } from '../../http/pipeline/ask-databases.ts'
import type { Pipeline, Place, Places } from '../../http/pipeline/pipeline-deps.ts'
import { type CellDatabase, type Cells, CellUnknownError, type FoundAccount } from '../../postgres/cell/cells.ts'
import { readDirectory } from '../../postgres/cell/directory.store.ts'
import type { Invalidation } from '../../postgres/connection/invalidated-cache.ts'
import type { BuiltPipeline } from '../feature/app-pipeline.ts'
import type { FeatureParts } from '../feature/feature.ts'
import type { CellWatch } from './cell-watch.ts'
import type { CellWorkers } from './cell-workers.ts'

type CellParts = Required<Pick<FeatureParts, 'pulls' | 'publications' | 'homeDb'>>

/** The databases of requests. */
export interface AppPlaces extends Places {
  invalidate(change: Invalidation): void
}

interface CellPlace {
  place: Place
  reads: ReadSubscriptions
}

/** Builds the databases of requests. The parts of a cell are built with its first request. */
export function buildAppPlaces(deps: {
  cells: Cells
  watch: CellWatch
  home: Pipeline
  pipelineIn: BuiltPipeline['pipelineIn']
  /** The subscriptions to reads in home: of global webhooks, and of the accounts there. */
  reads: ReadSubscriptions
  logger: Logger
  onEvents: PublicationBatchDeps['onEvents']
}): AppPlaces {
  const { cells, watch } = deps
  const built = new WeakMap<CellDatabase, CellPlace>()

  function buildCellPlace(at: CellDatabase, workers: CellWorkers): CellPlace {
    const reads = buildReadSubscriptions({
      isLive: () => workers.isLive(),
      list: () => listSubscribedTypes(at.database.db),
    })
    const pipeline = deps.pipelineIn({
      ...{ db: at.database.db, readDb: at.readDatabase.db, notify: workers.notify },
      isReadSubscribed: async (type) => (await deps.reads.has(type)) || reads.has(type),
    })
    const publications = buildPublicationBatch({
      ...{ logger: deps.logger, db: at.database.db, workerDb: at.workerDatabase.db, onEvents: deps.onEvents },
      takeInline: () => workers.router.takeInline(),
      onRecorded: (isQueued) => (isQueued ? workers.notify() : workers.relay?.notify()),
    })
    const parts: CellParts = { pulls: workers.pulls, publications, homeDb: deps.home.db }
    return { place: { cell: at.name, pipeline, parts }, reads }
  }

  /** Undefined for a cell that was closed meanwhile. */
  function findCellPlace(at: CellDatabase): CellPlace | undefined {
    const known = built.get(at)
    if (known) return known
    const workers = at.name === null ? undefined : watch.workersOf(at.name)
    if (!workers) return undefined
    const cell = buildCellPlace(at, workers)
    built.set(at, cell)
    return cell
  }

  const home: Place = { cell: null, pipeline: deps.home, parts: undefined }

  function placeOf(found: FoundAccount | CellUnknownError): Place | { missing: string } {
    if (found instanceof CellUnknownError) return { missing: found.cell }
    const { at } = found
    return at.name === null ? home : (findCellPlace(at)?.place ?? { missing: at.name })
  }

  const locateAll: Places['locateAll'] = async (accounts) =>
    new Map([...(await cells.findAll(accounts))].map(([account, found]) => [account, placeOf(found)]))

  async function findAll(accounts: readonly AccountId[]): Promise<ReadonlyMap<AccountId, Place>> {
    const located = await locateAll(accounts)
    const missing = new Set([...located.values()].flatMap((place) => ('missing' in place ? [place.missing] : [])))
    if (missing.size > 0) throw buildCellAway([...missing])
    return located as ReadonlyMap<AccountId, Place>
  }

  return {
    home,
    list: async () => {
      await watch.ready()
      const opened = cells.list().flatMap((at) => findCellPlace(at)?.place ?? [])
      return { places: [...opened, home], missing: watch.missing() }
    },
    ...{ findAll, locateAll },
    find: async (account) => (await findAll([account])).get(account) as Place,
    forget: cells.forget,
    readDirectory: (known, withMoving) => readDirectory(deps.home.db, { known, withMoving }),
    invalidate: (change) => {
      for (const at of cells.list()) built.get(at)?.reads.invalidate(change)
    },
  }
}
