import { hostname } from 'node:os'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { buildAuthenticate } from '../access/authenticate.ts'
import { checkAccountExists, findExistingAccounts } from '../account/account.ts'
import { buildCatalogue, type CatalogueEntry } from '../catalogue/catalogue.ts'
import { type Clock, systemClock } from '../clock.ts'
import { mountRoutes } from '../http/pipeline.ts'
import type { Shell } from '../http/pipeline-deps.ts'
import { buildRateLimiter } from '../http/rate-limit.ts'
import { buildServer } from '../http/server.ts'
import { buildIdMaker, type IdMaker, type WebhookId } from '../id.ts'
import { buildKeyring, type Keyring } from '../keyring.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { CallbackRules } from '../outbound/callback-url.ts'
import type { Lookup } from '../outbound/dns.ts'
import { buildHttpSender } from '../outbound/http-sender.ts'
import type { Database, DatabasePool } from '../postgres/database.ts'
import type { Random } from '../random.ts'
import { openTracing } from '../tracing/tracing.ts'
import { VERSION } from '../version.ts'
import { cancelWaitingDispatches } from '../webhook/ledger/dispatch.store.ts'
import { deleteLedger } from '../webhook/ledger/dispatch.ts'
import { sinkRoutes } from '../webhook/sink.routes.ts'
import { SINK_PATH } from '../webhook/sink.ts'
import { deactivateWebhooksOf } from '../webhook/webhook.ts'
import type { Config, ServiceSecrets } from './config.ts'
import { buildRecorders } from './record-success.ts'
import { listPermissions, ROUTE_TREE, type RouteDeps } from './route-tree.ts'
import { mountServiceRoutes } from './service-routes.ts'
import { buildWorkers, type Workers } from './workers.ts'

/** How long running requests may go on once the process is asked to stop. */
const REQUEST_GRACE_MS = 6_000

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
export interface App extends Omit<Workers, 'start' | 'notify'> {
  server: FastifyInstance
  ids: IdMaker
  catalogue: readonly CatalogueEntry[]
  keyring: Keyring
  callbackRules: CallbackRules
  workerId: string
  baseUrl(): string
  /** Takes the port (a process of any role has health and metrics), and starts the workers of its roles. */
  start(): Promise<void>
  /** Stops in order: no new requests, running POSTs end or are given back, workers end. The database stays open. */
  stop(): Promise<void>
}

/** Builds everything and wires it; the only place that does. Nothing runs before `start`. */
export async function buildApp(options: AppOptions): Promise<App> {
  const { config, secrets, database, clock, random, logger } = options
  const ids = buildIdMaker(clock, random)
  const workerId = `${hostname()}:${process.pid}:${random.bytes(3).toString('hex')}`
  const keyring = buildKeyring(secrets.secretKey, random)
  const catalogue = buildCatalogue(ROUTE_TREE)
  const endpoint = config.otlpEndpoint
  const tracing = await openTracing({ endpoint, instanceId: workerId, version: VERSION, clock, random, logger })
  const { tracer, startTrace } = tracing
  const { trustProxy } = config
  const server = await buildServer({ logger, clock, ids, trustProxy, baseUrl: () => baseUrl(), startTrace })
  const baseUrl = () => config.baseUrl ?? `http://localhost:${readPort(server) ?? config.port}`
  const sinkUrl = () => `${baseUrl()}${SINK_PATH}`
  const callbackRules = buildCallbackRules(config, sinkUrl)
  const sender = buildHttpSender({
    lookup: options.lookup,
    rules: callbackRules,
    ...(options.ca && { ca: options.ca }),
  })
  const workers = buildWorkers({ ...options, ids, workerId, keyring, sender, tracer })
  const { metrics, notify } = workers
  await mountServiceRoutes(server, { db: database.db, metrics, catalogue })
  if (config.roles.includes('api')) {
    const deps = buildRouteDeps({ options, ids, keyring, catalogue, callbackRules, workerId, baseUrl })
    const shell = buildShell({ options, ids, baseUrl, notify })
    countRequests(server, metrics)
    mountRoutes(server, shell, ROUTE_TREE as never, deps)
    const { webhookSinkSecret: sinkSecret } = config
    if (isSinkMounted(config))
      mountRoutes(server, shell, sinkRoutes, { db: database.db, logger, keyring, sinkSecret, sinkUrl })
  }
  await server.ready()
  return {
    ...workers,
    server,
    ids,
    catalogue,
    keyring,
    callbackRules,
    workerId,
    baseUrl,
    start: async () => {
      await server.listen({ host: config.host, port: config.port })
      workers.start()
    },
    stop: async () => {
      // Both at once: running requests and running POSTs end side by side, so that the whole stays within 10 s.
      await Promise.all([closeServer(server), workers.stop()])
      // Last, when every span has ended.
      await Promise.all([sender.close(), tracing.stop()])
    },
  }
}

/** Counts every answered request of the v3 tree, by its declared path. */
function countRequests(server: FastifyInstance, metrics: Metrics): void {
  server.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.config.route?.path
    if (route)
      metrics.countRequest({ route, method: request.method, status: reply.statusCode, durationMs: reply.elapsedTime })
  })
}

/** Lets running requests end; who has not finished by then, or never finishes its request, is cut off. */
async function closeServer(server: FastifyInstance): Promise<void> {
  const closed = server.close()
  const grace = new AbortController()
  // Real time: it bounds the network, and decides nothing.
  void systemClock.sleep(REQUEST_GRACE_MS, grace.signal).then(() => {
    if (!grace.signal.aborted) server.server.closeAllConnections()
  })
  await closed
  grace.abort()
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

function buildRouteDeps(parts: {
  options: AppOptions
  ids: IdMaker
  keyring: Keyring
  catalogue: readonly CatalogueEntry[]
  callbackRules: CallbackRules
  workerId: string
  baseUrl: () => string
}): RouteDeps {
  const { options, ids, keyring, catalogue, callbackRules, workerId, baseUrl } = parts
  const { config, secrets, random, lookup } = options
  const permissions = listPermissions(ROUTE_TREE).map(({ name }) => name)
  return {
    ids,
    random,
    keyring,
    catalogue,
    callbackRules,
    lookup,
    workerId,
    enableApiEventQueue: config.enableApiEventQueue,
    keys: { secrets: secrets.sessionJwt, issuer: baseUrl },
    listPermissions: () => permissions,
    checkAccountExists,
    findExistingAccounts,
    deactivateWebhooksOf,
    deleteLedger,
    cancelWaitingDispatches: async (db: Database, webhook: WebhookId, now: Date) => {
      await cancelWaitingDispatches(db, { webhook, workerId, now })
    },
  }
}

function buildShell(parts: { options: AppOptions; ids: IdMaker; baseUrl: () => string; notify: () => void }): Shell {
  const { options, ids, baseUrl, notify } = parts
  const { config, secrets, clock } = options
  const { db } = options.database
  return {
    db,
    clock,
    authenticate: buildAuthenticate({ db, clock, sessionSecrets: secrets.sessionJwt, issuer: baseUrl }),
    ...buildRecorders({ ids, enableApiEventQueue: config.enableApiEventQueue }, ROUTE_TREE),
    afterCommit: () => {
      options.onCrashPoint?.('after-change')
      notify()
    },
    ...buildRateLimiter({
      db,
      clock,
      perMinute: config.rateLimitPerMinute,
      strictPerMinute: config.rateLimitStrictPerMinute,
    }),
  }
}
