import type { Logger } from 'pino'
import { syncPermissions } from '../access/permission.store.ts'
import { ensureSystemRoles } from '../access/system-roles.ts'
import { buildCatalogue } from '../catalogue/catalogue.ts'
import { syncCatalogue } from '../catalogue/sync.ts'
import type { Clock } from '../clock.ts'
import { buildIdMaker } from '../id.ts'
import {
  type DatabasePool,
  EVENT_QUEUE_OFF,
  INDEX_ONLY_PLANS,
  inTransaction,
  openDatabase,
  REQUEST_LOCK_LIMIT_MS,
} from '../postgres/database.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../postgres/embedded.ts'
import { migrateSchema } from '../postgres/migrate.ts'
import type { Random } from '../random.ts'
import type { Config, ServiceSecrets } from './config.ts'
import { listPermissions, ROUTE_TREE } from './route-tree.ts'
import { loadServiceSecrets } from './service-secrets.ts'

/** Resources of a command: the open database and the service's secrets. */
export interface Resources {
  config: Config
  /** A connection string to PostgreSQL itself, for migrations and LISTEN. */
  connectionString: string
  /** The pool of requests and commands. */
  database: DatabasePool
  /** The pool of the workers, separate so that a backlog does not take the connections of requests. */
  workerDatabase: DatabasePool
  secrets: ServiceSecrets
  /** The embedded server, when DATABASE_URL is not set. */
  postgres: EmbeddedPostgres | undefined
  /** Closes the pools, and stops the embedded server. */
  close(): Promise<void>
}

export interface ResourcesOptions {
  config: Config
  clock: Clock
  random: Random
  logger: Logger
  /**
   * Ends the opening of the embedded database, which then rejects with the reason of the signal, and migrations after
   * the running one.
   */
  stop?: AbortSignal
}

/**
 * Opens the database of DATABASE_URL, or starts the embedded one (docs/contract/configuration.md#reader). Does not
 * migrate.
 */
export async function openResources(options: ResourcesOptions): Promise<Resources> {
  const { config, random, logger, stop } = options
  const secrets = await loadServiceSecrets(config, random)
  const postgres = config.databaseUrl
    ? undefined
    : await startEmbeddedPostgres({
        dataDir: config.dataDir,
        random,
        log: (line) => logger.info(line),
        ...(stop && { stop }),
      })
  const connectionString = config.databaseUrl ?? postgres?.connectionString ?? ''
  let isClosing = false
  const onError = (error: Error) => {
    // Closing a pool does not wait for its connections, and the embedded server may close them first.
    if (!isClosing) logger.error({ err: error }, 'database connection lost: see docs/operations.md, database')
  }
  const settings = config.enableApiEventQueue ? '' : EVENT_QUEUE_OFF
  const database = openDatabase({
    connectionString,
    settings,
    size: config.databasePoolSize,
    applicationName: 'signalbox',
    lockTimeoutMs: REQUEST_LOCK_LIMIT_MS,
    onError,
  })
  const direct = config.databaseListenUrl ?? connectionString
  const workerDatabase = openDatabase({
    connectionString: direct,
    settings: `${INDEX_ONLY_PLANS} ${settings}`,
    size: config.databaseWorkerPoolSize,
    applicationName: 'signalbox worker',
    onError,
  })
  const close = async () => {
    isClosing = true
    await Promise.all([database.close(), workerDatabase.close()])
    await postgres?.stop()
  }
  return { config, connectionString: direct, database, workerDatabase, secrets, postgres, close }
}

/** What the preparation of a database did. */
export interface Prepared {
  /** The migrations that ran. */
  migrations: string[]
  /** Additive migrations of a newer release that ran before. */
  ahead: string[]
}

/**
 * Prepares a database for this program: migrations, then the catalogue, the permissions and the system roles, in one
 * transaction (docs/contract/events.md#catalogue-sync). Idempotent; safe in concurrent processes. Where a newer release
 * has migrated, its catalogue, permissions and roles stay: this program would take away what the processes of that
 * release need.
 */
export async function prepareDatabase(
  resources: Pick<Resources, 'connectionString' | 'database'>,
  options: ResourcesOptions,
): Promise<Prepared> {
  const { clock, random, logger, stop } = options
  const now = new Date(clock.now())
  const { ran, ahead } = await migrateSchema(resources.connectionString, { now, stop })
  if (ahead.length > 0)
    logger.warn(
      { migrations: ahead },
      'the schema is that of a newer release: see docs/operations.md, schema of a newer release',
    )
  if (ahead.length > 0 || stop?.aborted) return { migrations: ran, ahead }
  const ids = buildIdMaker(clock, random)
  await inTransaction(resources.database.db, async (tx) => {
    await syncCatalogue({ ids, catalogue: buildCatalogue(ROUTE_TREE) }, tx, now)
    await syncPermissions(tx, { permissions: listPermissions(ROUTE_TREE), now })
    await ensureSystemRoles(tx, { ids, now })
  })
  return { migrations: ran, ahead }
}
