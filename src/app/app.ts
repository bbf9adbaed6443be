import { hostname } from 'node:os'
import type { FastifyInstance } from 'fastify'
import type { Provider } from 'oidc-provider'
import type { Logger } from 'pino'
import { buildAccountLimiter } from '../account/account-limit.ts'
import { buildEqualEntries, type EqualEntries } from '../audit/equal-entries.ts'
import { buildCatalogue, type CatalogueEntry } from '../catalogue/catalogue.ts'
import type { Clock } from '../clock.ts'
import type { DatabaseClock } from '../database-clock.ts'
import { buildRateLimiter, type RateLimiter } from '../http/rate-limit.ts'
import { buildServer, type ServerOptions } from '../http/server.ts'
import { buildUpgradeRouter, type UpgradeRouter } from '../http/upgrade.ts'
import { buildIdMaker, type IdMaker, type UserId } from '../id.ts'
import { buildKeyring, type Keyring } from '../keyring.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { CallbackRules } from '../outbound/callback-url.ts'
import type { Lookup } from '../outbound/dns.ts'
import { buildGuardedFetch, type GuardedFetch } from '../outbound/guarded-fetch.ts'
import { buildHttpSender } from '../outbound/http-sender.ts'
import { type Brand, loadBrand } from '../pages/brand.ts'
import { mountPageFiles } from '../pages/page-file.ts'
import { buildProblemRenderer } from '../pages/problem-page.ts'
import { mountStartPage } from '../pages/start-page.ts'
import type { DatabasePool } from '../postgres/database.ts'
import type { Random } from '../random.ts'
import { openTracing } from '../tracing/tracing.ts'
import { VERSION } from '../version.ts'
import { buildHeld, buildPipeline, type Held } from './app-pipeline.ts'
import { buildBaseUrl, buildSinkUrl, readPort } from './base-url.ts'
import type { Config, ServiceSecrets } from './config.ts'
import { describeDevelopment, mountDevelopmentRoutes } from './development-routes.ts'
import { type BuiltParts, buildFeatureParts } from './feature-parts.ts'
import { FEATURES, type FeatureParts } from './features.ts'
import { buildLifecycle, buildStopAnnouncement, warnOfCounts } from './lifecycle.ts'
import { mountOauthProvider } from './oauth.ts'
import { listPageFiles, PAGES } from './pages.ts'
import { buildAppChannelFeed, type MountedRealtime, prepareEmbeddedRealtime } from './realtime-server.ts'
import { ROUTE_TREE } from './route-tree.ts'
import { decideMetricsAccess, mountServiceRoutes, type ServiceRouteDeps } from './service-routes.ts'
import { buildWorkers, type Workers } from './workers.ts'

/** Reads how many lines are not in the log. */
export type LogCounts = () => { dropped: number; summed: number }

/** The configuration and the dependencies of the app. */
export interface AppOptions {
  config: Config
  secrets: ServiceSecrets
  /** The pool of requests. */
  database: DatabasePool
  /** The pool of lists and other reads that may be long. Default: that of requests. */
  readDatabase?: DatabasePool
  /** The pool of the workers. Default: that of requests. */
  workerDatabase?: DatabasePool
  /** The connection of the workers' lease, and the pool of maintenance. Default: that of the workers. */
  leaseDatabase?: DatabasePool
  maintenanceDatabase?: DatabasePool
  /** A connection string to PostgreSQL itself, for LISTEN. */
  connectionString: string
  clock: Clock
  /** The clock, where it follows the database's: in the service, and not in tests that set the time. */
  time?: DatabaseClock
  random: Random
  lookup: Lookup
  logger: Logger
  /** Lines that the log lost, and lines that it summed up. Default: none. */
  logCounts?: LogCounts
  /** Whether the start has finished, for `/readyz`. Default: always. */
  hasStarted?: () => boolean
  /** Certificate authorities that deliveries trust in place of the system's; for tests. */
  ca?: string
  /** Answers the requests to sign-in providers in place of the network; for tests. */
  fetchProvider?: GuardedFetch
  /**
   * Reads the public keys of an issuer in place of the service's own provider, as a JWK set; for tests. The database does not
   * keep its tokens.
   */
  loadProviderKeys?: () => Promise<unknown>
  /** Gets the OAuth provider when it is built; for tests that break it. */
  onProviderBuilt?: (provider: Provider) => void
  /** Ends the process at a named point; for crash tests (`SIGNALBOX_CRASH_POINT`). */
  onCrashPoint?: (point: NonNullable<Config['crashPoint']>) => void
}

/** The running parts of one process. */
export interface App extends Omit<Workers, 'start' | 'notify'> {
  server: FastifyInstance
  limiter: RateLimiter
  equalEntries: EqualEntries
  ids: IdMaker
  catalogue: readonly CatalogueEntry[]
  keyring: Keyring
  callbackRules: CallbackRules
  workerId: string
  /** The embedded realtime server, where the settings ask for one. */
  realtimeServer: MountedRealtime | undefined
  baseUrl(): string
  /** The actual port of METRICS_PORT, once started. */
  metricsPort(): number | undefined
  /** Listens on the port (a process of any role has health and metrics), and starts the workers of its roles. */
  start(): Promise<void>
  /** Announces the stop: from now on `/readyz` is 503, and each answer closes its connection. Requests are still taken. */
  announceStop(): void
  /** Stops in order: no new requests, POSTs in flight end or are released, workers end. The database stays open. */
  stop(): Promise<void>
}

/** Builds and wires all parts. Nothing runs before `start`. */
export async function buildApp(options: AppOptions): Promise<App> {
  const { config, secrets, database, clock, random, logger } = options
  const { db } = database
  const ids = buildIdMaker(clock, random)
  const workerId = `${hostname()}:${process.pid}:${random.bytes(3).toString('hex')}`
  const keyring = buildKeyring(secrets.secretKey, random)
  const catalogue = buildCatalogue(ROUTE_TREE)
  const endpoint = config.otlpEndpoint
  const tracing = await openTracing({ endpoint, instanceId: workerId, version: VERSION, clock, random, logger })
  const { tracer, startTrace } = tracing
  const upgrades = buildUpgradeRouter()
  const limiter = buildAppLimiter(options)
  const equalEntries = buildEqualEntries({ db, clock, onError: warnOfCounts(logger) })
  const brand = loadBrand({ name: config.brandName, logoPath: config.brandLogoPath, color: config.brandColor })
  const { server, baseUrl } = await buildAppServer(options, { ids, startTrace, upgrades, brand, limiter })
  const sinkUrl = buildSinkUrl(config, { baseUrl, findPort: () => readPort(server) })
  const callbackRules = buildCallbackRules(config, sinkUrl)
  const { lookup, ca } = options
  const sender = buildHttpSender({ lookup, rules: callbackRules, ...(ca && { ca }) })
  const isApi = config.roles.includes('api')
  const known = buildHeld(db, () => workers.isProven())
  const applyNote = (note: string) => {
    known.apply(note)
    workers.realtime.guard?.apply(note)
  }
  const held = { ...known, apply: applyNote }
  const embedded = prepareEmbeddedRealtime(config, { keyring, baseUrl, findPort: () => readPort(server) })
  const workers: Workers = buildWorkers({
    ...options,
    database: options.workerDatabase ?? database,
    requestDatabase: database,
    ids,
    workerId,
    keyring,
    ...{ sender, baseUrl },
    fetchTarget: buildGuardedFetch({ lookup, rules: callbackRules, ...(ca && { ca }) }),
    tracer,
    embeddedRealtime: embedded?.publishing,
    ...(isApi && { onChange: held.apply }),
  })
  const { metrics } = workers
  const announcement = buildStopAnnouncement(server)
  await mountServiceRoutes(server, buildServiceRouteDeps(options, { metrics, catalogue, limiter, ...announcement }))
  const parts = {
    ids,
    keyring,
    catalogue,
    callbackRules,
    workerId,
    brand,
    baseUrl,
    workers,
    held,
    limiter,
    equalEntries,
    sinkUrl,
  }
  const api = isApi ? await mountApi(server, options, parts) : undefined
  const onGrant = (userId: UserId, token?: string) => workers.realtime.guard?.noteGrant(userId, token)
  const feed = buildAppChannelFeed(options, workerId, metrics)
  const realtimeServer = await embedded?.mount(server, {
    ...{ options, upgrades, limiter, ids, onGrant, onChannelEvent: feed.note },
  })
  await server.ready()
  return {
    ...workers,
    ...{ server, ids, catalogue, keyring, callbackRules, workerId, baseUrl, limiter, equalEntries, realtimeServer },
    ...buildLifecycle(options, {
      ...{ server, workers, limiter, equalEntries, realtimeServer, feed, upgrades, sender, tracing },
      checkEngine: api?.checkEngine,
      announceStop: announcement.announceStop,
    }),
  }
}

/** Builds the server without routes, and the base URL, which names the port that it listens on. */
async function buildAppServer(
  { config, logger, clock }: AppOptions,
  parts: Pick<ServerOptions, 'ids' | 'startTrace'> & { upgrades: UpgradeRouter; brand: Brand; limiter: RateLimiter },
): Promise<{ server: FastifyInstance; baseUrl: () => string }> {
  const { brand, limiter, ...rest } = parts
  const server: FastifyInstance = await buildServer({
    ...rest,
    logger,
    clock,
    trustProxy: config.trustProxy,
    maxConnections: config.httpMaxConnections,
    corsOrigins: config.corsAllowedOrigins,
    corsAllowsLoopback: config.appEnv === 'development',
    baseUrl: () => baseUrl(),
    renderProblem: buildProblemRenderer(brand),
    limitUnknown: limiter.limitVisit,
  })
  const baseUrl = buildBaseUrl(config, () => readPort(server))
  return { server, baseUrl }
}

/** Mounts what a process with the role `api` serves. */
async function mountApi(
  server: FastifyInstance,
  options: AppOptions,
  parts: Omit<BuiltParts, 'authenticate' | 'accountLimits'> & {
    held: Held
    limiter: RateLimiter
    equalEntries: EqualEntries
    sinkUrl: () => string
  },
): Promise<Pick<FeatureParts, 'checkEngine'>> {
  const { held, limiter, equalEntries, sinkUrl, ...built } = parts
  const { ids, baseUrl, keyring, brand } = built
  const { notify, metrics, realtime } = built.workers
  const { config, logger } = options
  const { db } = options.database
  const onRecorded = realtime.noteUnpublished
  const pipeline = buildPipeline({ options, ids, baseUrl, held, limiter, equalEntries, notify, onRecorded })
  const limits = { defaults: config.accountLimits, cache: held.limits, limiter }
  const accountLimits = buildAccountLimiter(limits)
  const features = buildFeatureParts(options, { ...built, accountLimits, authenticate: pipeline.authenticate })
  countRequests(server, metrics)
  for (const feature of [...FEATURES, ...PAGES]) feature.mount(server, pipeline, features)
  mountPageFiles(server, listPageFiles(brand), limiter.limitVisit)
  mountStartPage(server, { brand, development: describeDevelopment(config), limit: limiter.limitVisit })
  await mountOauthProvider(server, options, { parts: features, limiter, clients: held.clients })
  const { webhookSinkSecret: sinkSecret } = config
  const sink = { db, logger, keyring, sinkSecret, sinkUrl }
  mountDevelopmentRoutes(server, { config, pipeline, brand, sink, features, limiter, clock: options.clock })
  return features
}

function buildServiceRouteDeps(
  { config, database, clock, time, hasStarted = () => true }: AppOptions,
  parts: { metrics: Metrics; catalogue: readonly CatalogueEntry[]; limiter: RateLimiter; isStopping: () => boolean },
): ServiceRouteDeps {
  const { metrics, catalogue, limiter, isStopping } = parts
  const metricsAccess = decideMetricsAccess(config)
  const limit = limiter.limitVisit
  return { db: database.db, clock, time, metrics, catalogue, limit, hasStarted, isStopping, metricsAccess }
}

function buildAppLimiter({ config, database, clock, logger }: AppOptions): RateLimiter {
  return buildRateLimiter({
    db: database.db,
    clock,
    perMinute: config.rateLimitPerMinute,
    strictPerMinute: config.rateLimitStrictPerMinute,
    onError: (error) =>
      logger.warn(
        { err: error },
        'rate limits not exchanged, each process counts alone: see docs/operations.md, database',
      ),
  })
}

/** Counts every answered request of the v3 tree, by its declared path. */
function countRequests(server: FastifyInstance, metrics: Metrics): void {
  server.addHook('onResponse', (request, reply, done) => {
    const route = request.routePath ?? request.routeOptions.config.route?.path
    if (route)
      metrics.countRequest({ route, method: request.method, status: reply.statusCode, durationMs: reply.elapsedTime })
    done()
  })
}

function buildCallbackRules(config: Config, sinkUrl: () => string): CallbackRules {
  const hasSink = config.appEnv === 'development' || config.appEnv === 'certification'
  return {
    allowHttp: config.appEnv === 'development',
    allowedPrivateTargets: config.webhookAllowedPrivateTargets,
    get sinkUrl() {
      return hasSink ? sinkUrl() : undefined
    },
  }
}
