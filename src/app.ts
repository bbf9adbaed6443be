import { hostname } from 'node:os'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { buildAuthenticate } from './access/authenticate.ts'
import { checkAccountExists, findExistingAccounts } from './account/account.ts'
import { buildCatalogue, type CatalogueEntry } from './catalogue/catalogue.ts'
import type { Clock } from './clock.ts'
import type { Config, ServiceSecrets } from './config.ts'
import { cancelWaitingDispatches } from './delivery/dispatch.store.ts'
import { buildDispatcher, type Dispatcher } from './delivery/dispatcher.ts'
import type { Lookup } from './delivery/dns.ts'
import { buildPoster, type Poster } from './delivery/post.ts'
import { buildReplayWorker, type ReplayWorker } from './delivery/replay-job-worker.ts'
import { buildRouterLoop, type RouterLoop } from './delivery/router-loop.ts'
import { sinkRoutes } from './delivery/sink.routes.ts'
import { SINK_PATH } from './delivery/sink.ts'
import { mountRoutes } from './http/mount.ts'
import { buildRateLimiter } from './http/rate-limit.ts'
import { buildServer } from './http/server.ts'
import type { Shell } from './http/shell.ts'
import { buildIdMaker, type IdMaker, type WebhookId } from './id.ts'
import { buildMaintenance, type Maintenance } from './maintenance.ts'
import { buildMetrics, type Metrics } from './metrics/metrics.ts'
import type { Database, DatabasePool } from './postgres/database.ts'
import { buildWake } from './postgres/wake.ts'
import type { Random } from './random.ts'
import { buildRecorders } from './record-success.ts'
import { listPermissions, ROUTE_TREE, type RouteDeps } from './route-tree.ts'
import { buildSecretBox, type SecretBox } from './secret-box.ts'
import { mountServiceRoutes } from './service-routes.ts'
import type { Tracer } from './tracing/tracer.ts'
import { openTracing } from './tracing/tracing.ts'
import { VERSION } from './version.ts'
import type { CallbackRules } from './webhook/callback-url.ts'

/** What the app is built from: the configuration, and the world as arguments. */
export interface AppOptions {
  config: Config
  secrets: ServiceSecrets
  database: DatabasePool
  connectionString: string
  clock: Clock
  random: Random
  lookup: Lookup
  logger: Logger
  /** Certificate authorities that deliveries trust in place of the system's; for tests. */
  ca?: string
  /** Ends the process at a named point; for crash tests (`SIGNALBOX_CRASH_POINT`). */
  onCrashPoint?: (point: NonNullable<Config['crashPoint']>) => void
}

/** The running parts of one process. */
export interface App {
  server: FastifyInstance
  ids: IdMaker
  catalogue: readonly CatalogueEntry[]
  secretBox: SecretBox
  callbackRules: CallbackRules
  dispatcher: Dispatcher
  router: RouterLoop
  replayWorker: ReplayWorker
  maintenance: Maintenance
  metrics: Metrics
  workerId: string
  baseUrl(): string
  /** Takes the port when the process has the role `api`, and starts the workers of its other roles. */
  start(): Promise<void>
  /** Stops in order: no new requests, running POSTs end or are given back, workers end. The database stays open. */
  stop(): Promise<void>
}

/** Builds everything and wires it; the only place that does. Nothing runs before `start`. */
export async function buildApp(options: AppOptions): Promise<App> {
  const { config, secrets, database, clock, random, logger } = options
  const ids = buildIdMaker(clock, random)
  const workerId = `${hostname()}:${process.pid}:${random.bytes(3).toString('hex')}`
  const secretBox = buildSecretBox(secrets.secretKey, random)
  const catalogue = buildCatalogue(ROUTE_TREE)
  const endpoint = config.otlpEndpoint
  const tracing = await openTracing({ endpoint, instanceId: workerId, version: VERSION, clock, random, logger })
  const { tracer, startTrace } = tracing
  const server = await buildServer({
    logger,
    clock,
    ids,
    trustProxy: config.trustProxy,
    baseUrl: () => baseUrl(),
    startTrace,
  })
  const baseUrl = () => config.baseUrl ?? `http://localhost:${readPort(server) ?? config.port}`
  const callbackRules = buildCallbackRules(config, () => `${baseUrl()}${SINK_PATH}`)
  const poster = buildPoster({ lookup: options.lookup, rules: callbackRules, ...(options.ca && { ca: options.ca }) })
  const metrics: Metrics = buildMetrics({ db: database.db, clock, underWay: () => dispatcher.underWay() })
  const dispatcher = buildAppDispatcher({ options, ids, workerId, secretBox, poster, metrics, tracer })
  const router = buildRouterLoop({
    ids,
    clock,
    db: database.db,
    logger,
    workerId,
    onDispatches: () => dispatcher.wake(),
  })
  const replayWorker = buildReplayWorker({
    db: database.db,
    clock,
    logger,
    workerId,
    onReplays: () => wake.announce(),
  })
  const isDispatcher = config.roles.includes('dispatcher')
  const wake = buildWake({
    connectionString: options.connectionString,
    pool: database.pool,
    clock,
    isListening: isDispatcher,
    onWork: () => {
      router.wake()
      dispatcher.wake()
    },
    onError: (error) => logger.warn({ err: error }, 'wake-up between processes failed; polling goes on'),
  })
  const maintenance = buildMaintenance({ db: database.db, clock, logger, config, secretBox, workerId })
  const deps = buildRouteDeps({ options, ids, secretBox, catalogue, callbackRules, workerId, baseUrl })
  const shell = buildShell({ options, ids, baseUrl, announce: () => wake.announce() })
  await mountServiceRoutes(server, { db: database.db, metrics, catalogue })
  if (config.roles.includes('api')) {
    server.addHook('onResponse', async (request, reply) => {
      const route = request.routeOptions.config.route?.path
      if (route)
        metrics.countRequest({ route, method: request.method, status: reply.statusCode, durationMs: reply.elapsedTime })
    })
    mountRoutes(server, shell, ROUTE_TREE as never, deps)
    if (isSinkMounted(config)) {
      const sinkUrl = () => `${baseUrl()}${SINK_PATH}`
      mountRoutes(server, shell, sinkRoutes, {
        db: database.db,
        logger,
        secretBox,
        sinkSecret: config.webhookSinkSecret,
        sinkUrl,
      })
    }
  }
  await server.ready()
  const workers: Promise<void>[] = []
  return {
    server,
    ids,
    catalogue,
    secretBox,
    callbackRules,
    dispatcher,
    router,
    replayWorker,
    maintenance,
    metrics,
    workerId,
    baseUrl,
    start: async () => {
      await server.listen({ host: config.host, port: config.port })
      workers.push(wake.run())
      if (isDispatcher) workers.push(router.run(), dispatcher.run(), replayWorker.run())
      if (config.roles.includes('maintenance')) workers.push(maintenance.run())
    },
    stop: async () => {
      router.stop()
      replayWorker.stop()
      maintenance.stop()
      // Both at once: running requests and running POSTs end side by side, so that the whole stays within 10 s.
      await Promise.all([server.close(), dispatcher.stop()])
      await wake.stop()
      await Promise.all(workers)
      // Last, when every span has ended.
      await Promise.all([poster.close(), tracing.stop()])
    },
  }
}

function readPort(server: FastifyInstance): number | undefined {
  const address = server.server.address()
  return typeof address === 'object' ? address?.port : undefined
}

/** The sink exists in development, and in certification when its secret is set (contract, Events 9). */
function isSinkMounted(config: Config): boolean {
  if (config.appEnv === 'development') return true
  return config.appEnv === 'certification' && config.webhookSinkSecret !== undefined
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

function buildAppDispatcher(parts: {
  options: AppOptions
  ids: IdMaker
  workerId: string
  secretBox: SecretBox
  poster: Poster
  metrics: Metrics
  tracer: Tracer
}): Dispatcher {
  const { options, ids, workerId, secretBox, poster, metrics, tracer } = parts
  const { config, onCrashPoint } = options
  return buildDispatcher({
    db: options.database.db,
    clock: options.clock,
    logger: options.logger,
    ids,
    workerId,
    secretBox,
    poster,
    version: VERSION,
    tracer,
    enableApiEventQueue: config.enableApiEventQueue,
    concurrency: config.webhookConcurrency,
    perWebhook: config.webhookConcurrencyPerWebhook,
    onRecorded: (recorded, notices) => metrics.countAttempts(recorded, notices),
    ...(onCrashPoint && {
      onPoint: (point: 'before-post' | 'after-post') => {
        if (point === 'after-post') onCrashPoint('after-post')
      },
      onDispatcherPoint: onCrashPoint,
    }),
  })
}

function buildRouteDeps(parts: {
  options: AppOptions
  ids: IdMaker
  secretBox: SecretBox
  catalogue: readonly CatalogueEntry[]
  callbackRules: CallbackRules
  workerId: string
  baseUrl: () => string
}): RouteDeps {
  const { options, ids, secretBox, catalogue, callbackRules, workerId, baseUrl } = parts
  const { config, secrets, random, lookup } = options
  const permissions = listPermissions(ROUTE_TREE).map(({ name }) => name)
  return {
    ids,
    random,
    secretBox,
    catalogue,
    callbackRules,
    lookup,
    workerId,
    enableApiEventQueue: config.enableApiEventQueue,
    keys: { secrets: secrets.sessionJwt, issuer: baseUrl },
    listPermissions: () => permissions,
    checkAccountExists,
    findExistingAccounts,
    cancelWaitingDispatches: async (db: Database, webhook: WebhookId, now: Date) => {
      await cancelWaitingDispatches(db, { webhook, workerId, now })
    },
  }
}

function buildShell(parts: { options: AppOptions; ids: IdMaker; baseUrl: () => string; announce: () => void }): Shell {
  const { options, ids, baseUrl, announce } = parts
  const { config, secrets, clock } = options
  const { db } = options.database
  return {
    db,
    clock,
    authenticate: buildAuthenticate({ db, clock, sessionSecrets: secrets.sessionJwt, issuer: baseUrl }),
    ...buildRecorders({ ids, enableApiEventQueue: config.enableApiEventQueue }, ROUTE_TREE),
    afterCommit: () => {
      options.onCrashPoint?.('after-change')
      announce()
    },
    ...buildRateLimiter({
      db,
      clock,
      perMinute: config.rateLimitPerMinute,
      strictPerMinute: config.rateLimitStrictPerMinute,
    }),
  }
}
