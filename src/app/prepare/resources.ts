import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { DatabaseClock } from '../../base/database-clock.ts'
import type { Random } from '../../base/random.ts'
import type { DatabasePools } from '../../postgres/cell/cells.ts'
import { findPrimaryChoice } from '../../postgres/connection/host-client.ts'
import type { Siblings } from '../../postgres/connection/pool-guard.ts'
import type { EmbeddedPostgres } from '../../postgres/embedded/embedded.ts'
import { openReplica, type ReplicaPool } from '../../postgres/replica-pool.ts'
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
import type { Config, ServiceSecrets } from '../config/config.ts'
import { loadServiceSecrets } from '../secret/service-secrets.ts'

/** Resources of a command: the open database and the service's secrets. */
export interface Resources extends DatabasePools {
  config: Config
  /** The pool of reads on the replica of DATABASE_READ_URL, whose connections lead to the primary where it lacks something. */
  replicaDatabase: ReplicaPool | undefined
  secrets: ServiceSecrets
  /** The embedded server, when DATABASE_URL is not set and no running service has started it. */
  postgres: EmbeddedPostgres | undefined
  /** Closes the pools, and stops the embedded server. */
  close(): Promise<void>
}

export interface ResourcesOptions {
  config: Config
  clock: Clock
  /** The clock, where it follows the database's: set by it before anything is written. */
  time?: DatabaseClock
  random: Random
  logger: Logger
  /** Aborts the opening of the embedded database, and migrations after the running one. */
  stop?: AbortSignal
  /** Uses the embedded database of a service that runs on the same data directory. Default: it is refused. */
  joinsRunning?: boolean
}

/** Opens DATABASE_URL, starts the embedded database or joins a running one (docs/contract/configuration.md#reader). */
export async function openResources(options: ResourcesOptions): Promise<Resources> {
  const { config, random, logger } = options
  const secrets = await loadServiceSecrets(config, random)
  const given = { connectionString: config.databaseUrl ?? '', postgres: undefined }
  const { connectionString, postgres } = config.databaseUrl ? given : await openEmbedded(options)
  let isClosing = false
  const onError = (error: Error) => {
    // Closing a pool does not wait for its connections, and the embedded server may close them first.
    if (!isClosing) logger.error({ err: error }, 'database connection lost: see docs/operations.md, database')
  }
  const settings = config.enableApiEventQueue ? '' : EVENT_QUEUE_OFF
  const direct = config.databaseListenUrl ?? connectionString
  const siblings: Siblings = new Set()
  const database = openDatabase({
    connectionString,
    settings: `${INDEX_PLANS} ${settings}`,
    size: config.databasePoolSize,
    applicationName: 'signalbox',
    lockTimeoutMs: REQUEST_LOCK_LIMIT_MS,
    limits: SHORT_LIMITS,
    siblings,
    onError,
  })
  const ofWorkers = {
    connectionString: direct,
    settings: `${INDEX_ONLY_PLANS} ${settings}`,
    lockTimeoutMs: WORKER_LOCK_LIMIT_MS,
    siblings,
    onError,
  }
  const workers = { ...ofWorkers, size: config.databaseWorkerPoolSize, limits: SHORT_LIMITS }
  const workerDatabase = openDatabase({ ...workers, applicationName: 'signalbox worker' })
  const leaseDatabase = openDatabase({ ...workers, size: 1, applicationName: 'signalbox lease' })
  const maintenanceDatabase = openDatabase({ ...ofWorkers, size: 2, applicationName: 'signalbox maintenance' })
  // A pooler in transaction mode would not forward its settings and its timeout.
  const readDatabase = openDatabase({
    connectionString: direct,
    settings: `${READ_PLANS} ${settings}`,
    size: config.databaseReadPoolSize,
    applicationName: 'signalbox reads',
    limits: READ_LIMITS,
    siblings,
    onError,
  })
  const replicaDatabase =
    config.databaseReadUrl === undefined
      ? undefined
      : openReplica({
          ...{ database, readDatabase, logger, settings: `${READ_PLANS} ${settings}` },
          ...{ connectionString: config.databaseReadUrl, size: config.databaseReadPoolSize },
          ...{ lagLimitMs: config.databaseReadLagMs, onError },
        })
  const pools = [database, readDatabase, workerDatabase, leaseDatabase, maintenanceDatabase]
  if (replicaDatabase) pools.push(replicaDatabase)
  const onSwitch = () => logger.warn('another server is the primary now: see docs/operations.md, database')
  const unlisten = findPrimaryChoice(direct)?.onSwitch(onSwitch)
  const close = async () => {
    isClosing = true
    unlisten?.()
    await Promise.all(pools.map((pool) => pool.close()))
    await postgres?.stop()
  }
  const databases = { database, readDatabase, replicaDatabase, workerDatabase, leaseDatabase, maintenanceDatabase }
  return { config, connectionString: direct, ...databases, secrets, postgres, close }
}

/** Starts the embedded server, or joins a running one, which is not stopped here. */
async function openEmbedded(
  options: ResourcesOptions,
): Promise<{ connectionString: string; postgres: EmbeddedPostgres | undefined }> {
  try {
    const postgres = await startEmbedded(options)
    return { connectionString: postgres.connectionString, postgres }
  } catch (error) {
    if (!options.joinsRunning || (error as { code?: unknown }).code !== 'data_dir_in_use') throw error
    const { findRunningPostgres } = await import('../../postgres/embedded/embedded-join.ts')
    const running = await findRunningPostgres(options.config.dataDir)
    if (running === undefined) throw error
    return { connectionString: running, postgres: undefined }
  }
}

async function startEmbedded({ config, random, logger, stop }: ResourcesOptions): Promise<EmbeddedPostgres> {
  const { startEmbeddedPostgres } = await import('../../postgres/embedded/embedded.ts')
  const log = (line: string) => logger.info(line)
  return startEmbeddedPostgres({ dataDir: config.dataDir, random, log, ...(stop && { stop }) })
}
