import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { DatabaseClock } from '../../base/database-clock.ts'
import type { IdMaker } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { Random } from '../../base/random.ts'
import type { ReadCellFacts } from '../../operations/health/cell-facts.ts'
import type { Lookup } from '../../outbound/guard/dns.ts'
import type { GuardedFetch } from '../../outbound/guarded-fetch.ts'
import type { HttpSender } from '../../outbound/send/http-sender.ts'
import type { Cells } from '../../postgres/cell/cells.ts'
import type { Invalidation } from '../../postgres/connection/invalidated-cache.ts'
import type { ReplicaPool } from '../../postgres/replica-pool.ts'
import type { DatabasePool } from '../../postgres/statement/database.ts'
import type { Tracer } from '../../tracing/tracer.ts'
import type { Config } from '../config/config.ts'
import type { EmbeddedRealtime } from '../part/realtime-parts.ts'

export interface WorkerParts {
  config: Config
  database: DatabasePool
  connectionString: string
  clock: Clock
  time?: DatabaseClock
  random: Random
  logger: Logger
  /** Lines that the log lost, and lines that it summed up. */
  logCounts?: () => { dropped: number; summed: number }
  ids: IdMaker
  workerId: string
  keyring: Keyring
  sender: HttpSender
  fetchTarget: GuardedFetch
  lookup: Lookup
  baseUrl: () => string
  tracer: Tracer
  /** Runs for each invalidation of cached values; without it nothing is cached. */
  onChange?: (change: Invalidation) => void
  requestDatabase: DatabasePool
  /** The pool of long reads, for metrics. Default: that of requests. */
  readDatabase?: DatabasePool
  /** The pool of reads on a replica, for metrics. Default: none. */
  replicaDatabase?: ReplicaPool | undefined
  /** The connection of the lease. Default: a connection of `database`. */
  leaseDatabase?: DatabasePool
  /** The pool of maintenance. Default: `database`. */
  maintenanceDatabase?: DatabasePool
  /** The databases that hold accounts. Not before the app is built. */
  findCells: () => Cells
  /** Known facts of the cells; undefined without any. Not before the app is built. */
  readCellFacts: ReadCellFacts
  embeddedRealtime?: EmbeddedRealtime | undefined
  /** Certificate authorities that the realtime provider is trusted by, in place of the system's; for tests. */
  ca?: string | undefined
  /** Kills the process at a named point; for crash tests. */
  onCrashPoint?: ((point: NonNullable<Config['crashPoint']>) => void) | undefined
}
