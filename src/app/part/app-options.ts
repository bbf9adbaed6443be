import type { Provider } from 'oidc-provider'
import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { DatabaseClock } from '../../base/database-clock.ts'
import type { Random } from '../../base/random.ts'
import type { HashingSemaphore } from '../../identity/password/hashing-semaphore.ts'
import type { Lookup } from '../../outbound/guard/dns.ts'
import type { ResolveTxt } from '../../outbound/guard/dns-text.ts'
import type { GuardedFetch } from '../../outbound/guarded-fetch.ts'
import type { DatabasePools } from '../../postgres/cell/cells.ts'
import type { ReplicaPool } from '../../postgres/replica-pool.ts'
import type { Config, ServiceSecrets } from '../config/config.ts'

/** Reads the number of lines that are not in the log. */
export type LogCounts = () => { dropped: number; summed: number }

type HomePools = Pick<DatabasePools, 'database' | 'connectionString'> & Partial<DatabasePools>

/**
 * The configuration and the dependencies of the app. Without a pool of their own the reads and the workers have that of
 * requests, the lease and the maintenance that of the workers.
 */
export interface AppOptions extends HomePools {
  config: Config
  secrets: ServiceSecrets
  /** The pool of reads on a replica. Default: none. */
  replicaDatabase?: ReplicaPool | undefined
  clock: Clock
  /** The clock, where it follows the database's: in the service, and not in tests that set the time. */
  time?: DatabaseClock
  random: Random
  lookup: Lookup
  resolveTxt: ResolveTxt
  logger: Logger
  /** Lines that the log lost, and lines that it summed up. Default: none. */
  logCounts?: LogCounts
  /** Whether the start has finished, for `/readyz`. Default: always. */
  hasStarted?: () => boolean
  /** Certificate authorities that deliveries trust in place of the system's; for tests. */
  ca?: string
  /** Limits the passwords hashed at once, in place of the semaphore of the process; for tests. */
  hashingSemaphore?: HashingSemaphore
  /** Answers the requests to sign-in providers in place of the network; for tests. */
  fetchProvider?: GuardedFetch
  /** Reads the public keys of an issuer (a JWK set) in place of the provider's; for tests. Its tokens are not kept. */
  loadProviderKeys?: () => Promise<unknown>
  /** Receives the built OAuth provider; for tests that break it. */
  onProviderBuilt?: (provider: Provider) => void
  /** The folder of the built console. Default: that of the repository. */
  consoleFolder?: string
  /** The folder of the documentation site. Default: that of the repository. */
  siteFolder?: string
  /** Kills the process at a named point; for crash tests (`SIGNALBOX_CRASH_POINT`). */
  onCrashPoint?: (point: NonNullable<Config['crashPoint']>) => void
}
