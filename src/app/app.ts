import { hostname } from 'node:os'
import type { FastifyInstance } from 'fastify'
import { buildIdMaker, type IdMaker, type UserId } from '../base/id.ts'
import { buildKeyring, type Keyring } from '../base/keyring.ts'
import { VERSION } from '../base/version.ts'
import { buildCatalogue, type CatalogueEntry } from '../event/catalogue/catalogue.ts'
import { buildEqualEntries, type EqualEntries } from '../event/recording/equal-entries.ts'
import { buildRateLimiter, type RateLimiter } from '../http/rate-limit/rate-limit.ts'
import { buildServer, type ServerOptions } from '../http/server/server.ts'
import { buildUpgradeRouter, type UpgradeRouter } from '../http/server/upgrade.ts'
import { buildAccountLimiter } from '../identity/account/limit/account-limit.ts'
import { type Brand, loadBrand } from '../identity/pages/brand/brand.ts'
import { mountPageFiles } from '../identity/pages/brand/page-file.ts'
import { buildProblemRenderer } from '../identity/pages/frame/problem-page.ts'
import { mountStartPage } from '../identity/pages/sign-in/start-page.ts'
import { buildPasswordHashing } from '../identity/password/password.ts'
import { mountConsole } from '../operations/console/console.ts'
import { buildConsoleReader, CONSOLE_FOLDER } from '../operations/console/console-build.ts'
import { mountPortal } from '../operations/console/portal.ts'
import { buildCellFacts, type ReadCellFacts } from '../operations/health/cell-facts.ts'
import type { Metrics } from '../operations/metrics/metrics.ts'
import { mountSite } from '../operations/site/site.ts'
import { readSiteBuild, SITE_FOLDER } from '../operations/site/site-build.ts'
import type { CallbackRules } from '../outbound/guard/callback-url.ts'
import { buildGuardedFetch } from '../outbound/guarded-fetch.ts'
import { buildHttpSender } from '../outbound/send/http-sender.ts'
import type { Invalidation } from '../postgres/connection/invalidated-cache.ts'
import type { ProviderApp } from '../realtime/provider/provider-settings.ts'
import { openTracing } from '../tracing/tracing.ts'
import { readTotals } from '../webhook/delivery/delivery-count.store.ts'
import { type AppCells, buildAppCells } from './cell/app-cells.ts'
import { type AppPlaces, buildAppPlaces } from './cell/app-places.ts'
import { buildBaseUrl, buildSinkUrl, readPort } from './config/base-url.ts'
import type { Config } from './config/config.ts'
import { buildPipeline } from './feature/app-pipeline.ts'
import { describeDevelopment, mountDevelopmentRoutes } from './feature/development-routes.ts'
import type { FeatureParts } from './feature/feature.ts'
import { type BuiltParts, buildFeatureParts } from './feature/feature-parts.ts'
import { FEATURES } from './feature/features.ts'
import { mountOauthProvider } from './feature/oauth.ts'
import { listPageFiles, PAGES } from './feature/pages.ts'
import { buildAppChannelFeed, type MountedRealtime, prepareEmbeddedRealtime } from './feature/realtime-server.ts'
import { ROUTE_TREE } from './feature/route-tree.ts'
import { decideMetricsAccess, mountServiceRoutes, type ServiceRouteDeps } from './feature/service-routes.ts'
import { buildLifecycle, buildStopAnnouncement, type Lifecycle, warnOfCounts } from './lifecycle.ts'
import type { AppOptions } from './part/app-options.ts'
import { buildCaches, type Caches } from './part/caches.ts'
import { buildWorkers, type Workers } from './work/workers.ts'

/** The running parts of one process. */
export interface App extends Omit<Workers, 'start' | 'stop' | 'notify'>, Lifecycle {
  server: FastifyInstance
  equalEntries: EqualEntries
  ids: IdMaker
  catalogue: readonly CatalogueEntry[]
  keyring: Keyring
  callbackRules: CallbackRules
  workerId: string
  realtimeServer: MountedRealtime | undefined
  baseUrl(): string
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
  const own = buildCaches(db, () => workers.isLive())
  const invalidate = (change: Invalidation) => {
    own.invalidate(change)
    cells.invalidate(change)
    workers.realtime.guard?.invalidate(change)
    api?.places?.invalidate(change)
  }
  const caches = { ...own, invalidate }
  const embedded = prepareEmbeddedRealtime(config, { keyring, baseUrl, findPort: () => readPort(server) })
  const readCellFacts: ReadCellFacts = config.eventLog
    ? buildCellFacts({
        ...{ findCells: () => cells, db, clock, keyIds: keyring.keyIds, readTotals },
        ...{ diskBytes: config.cellDiskBytes, retention: config },
      })
    : async () => undefined
  const workerParts = {
    ...options,
    ...{ readCellFacts, findCells: () => cells },
    database: options.workerDatabase ?? database,
    requestDatabase: database,
    ids,
    workerId,
    keyring,
    ...{ sender, baseUrl },
    fetchTarget: buildGuardedFetch({ lookup, rules: callbackRules, ...(ca && { ca }) }),
    tracer,
    embeddedRealtime: embedded?.publishing,
    ...(isApi && { onChange: caches.invalidate }),
  }
  const workers: Workers = buildWorkers(workerParts)
  const { cells, watch, running } = buildAppCells(workerParts, workers)
  const { metrics } = workers
  const announcement = buildStopAnnouncement(server)
  await mountServiceRoutes(server, buildServiceRouteDeps(options, { metrics, catalogue, limiter, ...announcement }))
  const parts = {
    ...{ ids, keyring, catalogue, callbackRules, workerId, brand, baseUrl },
    ...{ workers, caches, limiter, equalEntries, sinkUrl, readCellFacts },
  }
  const api = isApi ? await mountApi(server, options, { ...parts, cells, watch }) : undefined
  const onGrant = (userId: UserId, token?: string) => workers.realtime.guard?.noteGrant(userId, token)
  const feed = buildAppChannelFeed(options, workerId, metrics)
  const realtimeServer = await embedded?.mount(server, {
    ...{ options, upgrades, limiter, ids, onGrant, onChannelEvent: feed.note, metrics: metrics.realtime },
  })
  await server.ready()
  return {
    ...workers,
    ...{ server, ids, catalogue, keyring, callbackRules, workerId, baseUrl, equalEntries, realtimeServer },
    ...buildLifecycle(options, {
      ...{ server, workers, cells: running, limiter, equalEntries, realtimeServer, feed, upgrades, sender, tracing },
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

async function mountApi(
  server: FastifyInstance,
  options: AppOptions,
  parts: Omit<BuiltParts, 'authenticate' | 'accountLimits' | 'passwords'> & {
    caches: Caches
    limiter: RateLimiter
    equalEntries: EqualEntries
    sinkUrl: () => string
  } & Pick<AppCells, 'cells' | 'watch'>,
): Promise<Pick<FeatureParts, 'checkEngine'> & { places: AppPlaces | undefined }> {
  const { caches, limiter, equalEntries, sinkUrl, cells, watch, ...built } = parts
  const { ids, baseUrl, keyring, brand } = built
  const { notify, metrics, realtime } = built.workers
  const { config, logger, random } = options
  const { db } = options.database
  const onRecorded = realtime.noteUnpublished
  const passwords = buildPasswordHashing(config.passwordHashCost, random, options.hashingSemaphore)
  const shared = { ids, baseUrl, caches, limiter, equalEntries, passwords }
  const { pipeline: ofHome, pipelineIn } = buildPipeline({ options, ...shared, notify, onRecorded })
  const placing = { cells, reads: caches.reads, pipelineIn, logger, onEvents: onRecorded }
  const places = watch && buildAppPlaces({ ...placing, watch, home: ofHome })
  const pipeline = { ...ofHome, places }
  const limits = { defaults: config.accountLimits, cache: caches.limits, limiter }
  const accountLimits = buildAccountLimiter(limits)
  const features = buildFeatureParts(options, {
    ...built,
    passwords,
    accountLimits,
    authenticate: pipeline.authenticate,
  })
  countRequests(server, metrics)
  for (const feature of [...FEATURES, ...PAGES]) feature.mount(server, pipeline, features)
  mountPageFiles(server, listPageFiles(brand), limiter.limitVisit)
  const { consoleFolder = CONSOLE_FOLDER, siteFolder = SITE_FOLDER } = options
  const site = readSiteBuild(siteFolder)
  if (site) mountSite(server, { build: site, limit: limiter.limitVisit })
  const { appEnv: environment } = config
  const findSocket = () => describeSocket(realtime.findApp())
  const served = { limit: limiter.limitVisit, readBuild: buildConsoleReader(consoleFolder), random }
  const allowsPrivateTargets = config.webhookAllowedPrivateTargets.length > 0
  mountConsole(server, { ...features.pages, ...served, environment, findSocket, allowsPrivateTargets })
  const portal = {
    ancestors: config.portalFrameAncestors,
    isBuilding: environment === 'development',
    allowsPrivateTargets,
  }
  mountPortal(server, { brand, ...served, ...portal })
  const development = describeDevelopment(config, { baseUrl, findRealtime: realtime.findApp })
  mountStartPage(server, { brand, development, limit: limiter.limitVisit })
  await mountOauthProvider(server, options, { parts: features, limiter, clients: caches.clients })
  const { webhookSinkSecret: sinkSecret } = config
  const sink = { db, logger, keyring, sinkSecret, sinkUrl }
  mountDevelopmentRoutes(server, { config, pipeline, brand, sink, features, limiter, clock: options.clock })
  return { ...features, places }
}

/** The origin that clients of realtime connect to. */
function describeSocket(app: ProviderApp | undefined): string | undefined {
  if (!app) return undefined
  const { host, port, isTls } = app.socket
  return new URL(`${isTls ? 'wss' : 'ws'}://${host}:${port}`).origin
}

function buildServiceRouteDeps(
  { config, database, replicaDatabase, clock, time, hasStarted = () => true }: AppOptions,
  parts: { metrics: Metrics; catalogue: readonly CatalogueEntry[]; limiter: RateLimiter; isStopping: () => boolean },
): ServiceRouteDeps {
  const { metrics, catalogue, limiter, isStopping } = parts
  const metricsAccess = decideMetricsAccess(config)
  const limit = limiter.limitVisit
  const shown = { metrics, catalogue, metricsAccess, replica: replicaDatabase?.replica }
  return { db: database.db, clock, time, limit, hasStarted, isStopping, ...shown }
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
