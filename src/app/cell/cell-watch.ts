import type { Logger } from 'pino'
import { systemClock } from '../../base/clock.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { Intake } from '../../carriage/intake/intake.ts'
import { listMoves } from '../../carriage/move/move.store.ts'
import { type CellRecord, cellContextOf, findIdentity, listCells } from '../../postgres/cell/cell.store.ts'
import type { CellDatabase } from '../../postgres/cell/cells.ts'
import { migrateSchema } from '../../postgres/migration/migrate.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { Config } from '../config/config.ts'
import { type OpenedCell, openCellPools } from '../prepare/cell-pools.ts'
import type { CellWorkers } from './cell-workers.ts'

/** Interval between two looks at the cells of home. */
const LOOK_MS = 5_000

interface Served {
  opened: OpenedCell
  workers: CellWorkers
}

export interface CellWatchDeps {
  config: Config
  logger: Logger
  keyring: Keyring
  /** Home. */
  db: Database
  /** Builds the workers of this process on a cell. */
  buildWorkers: (opened: OpenedCell, home: string) => CellWorkers
  /** Builds the intake of home in this process; undefined without the role. */
  buildHomeIntake: (home: string) => Intake | undefined
}

/** The cells of this process: opened when they are added, closed when they are removed. */
export interface CellWatch {
  /** Looks once. Never throws. */
  look(): Promise<void>
  opened(): ReadonlyMap<string, CellDatabase>
  workersOf(name: string): CellWorkers | undefined
  /** The cells that this process cannot use. */
  missing(): readonly string[]
  /** Resolves when it has looked once. */
  ready(): Promise<void>
  run(): Promise<void>
  stop(): Promise<void>
}

/** Builds the watch of a process with an event log. A cell that cannot be used is tried again at each look. */
export function buildCellWatch(deps: CellWatchDeps): CellWatch {
  const { config, logger, keyring, db } = deps
  const stopping = new AbortController()
  const served = new Map<string, Served>()
  /** Cells that cannot be used, each logged once. */
  const away = new Set<string>()
  /** Moves that no process runs, each logged once. */
  let interrupted: ReadonlySet<string> = new Set()
  /** The cells that it found at the last look. */
  let names: readonly string[] = []
  let hasLooked = false
  let homeIntake: Intake | undefined
  let taking: Promise<void> | undefined
  let looking: Promise<void> | undefined

  const urlOf = ({ name, databaseUrlEncrypted: sealed }: CellRecord) => keyring.open(sealed, cellContextOf(name))

  function tell(cell: string, err: unknown): void {
    if (away.has(cell)) return
    away.add(cell)
    logger.error(
      { err, cell },
      'cell cannot be used, its accounts are not served: see docs/operations/cells.md, a cell that is away',
    )
  }

  async function open(record: CellRecord, home: string): Promise<void> {
    const { name } = record
    const connectionString = urlOf(record)
    const opened = openCellPools({ name, connectionString }, { config, logger })
    try {
      const identity = await findIdentity(opened.database.db)
      if (identity?.home !== home || identity.cell !== name)
        throw new Error(`The database is not the cell ${name} of this service: see docs/operations/cells.md, codes.`)
      await migrateSchema(connectionString, { stop: stopping.signal })
      if (stopping.signal.aborted) throw new Error('The process is stopping.')
      const workers = deps.buildWorkers(opened, home)
      served.set(name, { opened, workers })
      workers.start()
      if (away.delete(name)) logger.info({ cell: name }, 'cell is used again')
    } catch (error) {
      await opened.close()
      throw error
    }
  }

  async function close(name: string): Promise<void> {
    const gone = served.get(name)
    if (!gone) return
    served.delete(name)
    await gone.workers.stop()
    await gone.opened.close()
  }

  async function tellMoves(): Promise<void> {
    const moves = (await listMoves(db)).filter(({ isInterrupted }) => isInterrupted)
    for (const { account, step } of moves)
      if (!interrupted.has(account))
        logger.error(
          { account, step },
          'move of an account was interrupted, its changes are refused: run signalbox account move <account>, see docs/operations/account-move.md',
        )
    interrupted = new Set(moves.map(({ account }) => account))
  }

  async function lookOnce(): Promise<void> {
    const records = (await listCells(db)).filter(({ state }) => state !== 'joining')
    const wanted = new Map(records.map((record) => [record.name, record]))
    names = [...wanted.keys()]
    for (const [name, { opened }] of served) {
      const record = wanted.get(name)
      if (!record || urlOf(record) !== opened.connectionString) await close(name)
    }
    const identity = records.length > 0 ? await findIdentity(db) : undefined
    if (identity?.cell !== null) {
      names = []
      hasLooked = true
      return
    }
    if (config.roles.includes('maintenance')) await tellMoves()
    await Promise.all(
      records
        .filter(({ name }) => !served.has(name))
        .map((record) => open(record, identity.home).catch((error: unknown) => tell(record.name, error))),
    )
    hasLooked = true
    if (taking || stopping.signal.aborted) return
    homeIntake = deps.buildHomeIntake(identity.home)
    taking = homeIntake?.run() ?? Promise.resolve()
  }

  const look = () => {
    looking ??= lookOnce()
      .catch((err: unknown) => logger.warn({ err }, 'cells not looked up: see docs/operations.md, database'))
      .finally(() => {
        looking = undefined
      })
    return looking
  }

  return {
    look,
    opened: () => new Map([...served].map(([name, { opened }]) => [name, opened])),
    workersOf: (name) => served.get(name)?.workers,
    missing: () => names.filter((name) => !served.has(name)),
    ready: () => (hasLooked ? Promise.resolve() : look()),
    run: async () => {
      while (!stopping.signal.aborted) {
        await look()
        await systemClock.sleep(LOOK_MS, stopping.signal)
      }
    },
    stop: async () => {
      stopping.abort()
      homeIntake?.stop()
      await looking
      await Promise.all([taking, ...[...served.keys()].map(close)])
    },
  }
}
