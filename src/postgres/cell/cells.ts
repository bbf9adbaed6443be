import type { AccountId } from '../../base/id.ts'
import { buildInvalidatedCache, type Invalidation } from '../connection/invalidated-cache.ts'
import type { Database, DatabasePool } from '../statement/database.ts'
import { type AccountPlace, findPlaces } from './cell.store.ts'

/** The pools of a process on one database, separate so that no work takes the connections of another. */
export interface DatabasePools {
  /** A connection string to PostgreSQL itself, for LISTEN and migrations. */
  connectionString: string
  /** The pool of requests and commands. */
  database: DatabasePool
  /** The pool of lists and other long reads. */
  readDatabase: DatabasePool
  /** The pool of the workers; one connection for their lease, which must not wait behind their statements. */
  workerDatabase: DatabasePool
  leaseDatabase: DatabasePool
  /** The pool of maintenance, whose statements may take longer. */
  maintenanceDatabase: DatabasePool
}

/** A database that holds accounts. */
export interface CellDatabase extends DatabasePools {
  /** The name of the cell; null for home. */
  name: string | null
}

/** Where an account is: its database, and the version of the directory that says so. */
export interface FoundAccount {
  place: AccountPlace
  at: CellDatabase
}

/** The databases that hold accounts (docs/decisions/0062-cells.md). Without cells home is not asked. */
export interface Cells {
  home: CellDatabase
  /** The cells that this process has opened, without home, by name. */
  list(): readonly CellDatabase[]
  /** The cell of this name; undefined when this process has not opened it. */
  get(name: string): CellDatabase | undefined
  /**
   * The database of an account, from the cache or the directory. Opens a cell that this process does not know yet. Throws
   * a `CellUnknownError` for a cell that the directory names and that cannot be opened.
   */
  find(account: AccountId): Promise<FoundAccount>
  /** The same of several accounts, with one read of the directory; the error of an account in place of its database. */
  findAll(accounts: readonly AccountId[]): Promise<ReadonlyMap<AccountId, FoundAccount | CellUnknownError>>
  /** Forgets what is cached of an account: the fence of a database refused it. */
  forget(account: AccountId): void
  invalidate(change: Invalidation): void
}

/** The directory names a cell that this process cannot open. */
export class CellUnknownError extends Error {
  readonly cell: string

  constructor(cell: string, options?: ErrorOptions) {
    super(`The cell ${cell} is not open in this process.`, options)
    this.name = 'CellUnknownError'
    this.cell = cell
  }
}

const ACCOUNTS_LIMIT = 20_000

/** Every account is in home. */
const AT_HOME: AccountPlace = { cell: null, version: 0 }

/** Options of `buildCells`. */
export interface CellsOptions {
  home: CellDatabase
  /** Where the directory is read: home. */
  db: Database
  /** Whether the connection that reports changes is live; without it nothing is cached. */
  isLive: () => boolean
  /** The cells now, by name. */
  opened: () => ReadonlyMap<string, CellDatabase>
  /** Opens the cells that were added since. */
  open: () => Promise<void>
}

/** The databases of a service without cells. */
export function buildHomeAlone(home: CellDatabase): Cells {
  const found = { place: AT_HOME, at: home }
  return {
    home,
    list: () => [],
    get: () => undefined,
    find: async () => found,
    findAll: async (accounts) => new Map(accounts.map((account) => [account, found])),
    forget: () => {},
    invalidate: () => {},
  }
}

/** The databases of a service that may have cells. */
export function buildCells({ home, db, isLive, opened, open }: CellsOptions): Cells {
  const places = buildInvalidatedCache<AccountPlace>({
    limit: ACCOUNTS_LIMIT,
    isLive,
    changesOf: (account) => [`a:${account}`],
  })

  async function findAll(accounts: readonly AccountId[]): ReturnType<Cells['findAll']> {
    const found = await places.readAll(accounts, (missing) => findPlaces(db, missing as AccountId[]))
    const isNew = [...found.values()].some(({ cell }) => cell !== null && !opened().has(cell))
    if (isNew) await open()
    return new Map(
      [...found].map(([account, place]) => {
        const at = place.cell === null ? home : opened().get(place.cell)
        return [account as AccountId, at ? { place, at } : new CellUnknownError(place.cell ?? '')]
      }),
    )
  }

  return {
    home,
    list: () => [...opened().values()],
    get: (name) => opened().get(name),
    find: async (account) => {
      const found = (await findAll([account])).get(account)
      if (!found || found instanceof CellUnknownError) throw found
      return found
    },
    findAll,
    forget: (account) => places.invalidate(`a:${account}`),
    invalidate: places.invalidate,
  }
}
