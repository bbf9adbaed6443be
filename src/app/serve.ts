import { flushCompileCache } from 'node:module'
import type { Logger } from 'pino'
import { type Clock, readMonotonicMs, systemClock } from '../base/clock.ts'
import { adoptDatabaseClock, type DatabaseClock } from '../base/database-clock.ts'
import { buildKeyring } from '../base/keyring.ts'
import { systemRandom } from '../base/random.ts'
import { VERSION } from '../base/version.ts'
import { buildSystemLookup } from '../outbound/guard/dns.ts'
import { buildSystemTxtLookup } from '../outbound/guard/dns-text.ts'
import type { App } from './app.ts'
import { readPort } from './config/base-url.ts'
import type { Config } from './config/config.ts'
import { ensureAdministrator } from './first-administrator.ts'
import { describeListenFailure } from './listen-failure.ts'
import { FatalError } from './log/fatal.ts'
import type { LogCounts } from './part/app-options.ts'
import { prepareDatabase } from './prepare/prepare.ts'
import { openResources, type Resources, type ResourcesOptions } from './prepare/resources.ts'
import { type FirstAdministrator, printConsole, printSignIn, printStart } from './start-message.ts'
import { buildStopLimit, type StopLimit } from './stop-limit.ts'

/** A demonstration ready to start: its token is in its file. */
export interface Demonstration {
  /** Shows a delivery, and returns the next commands. Throws a `FatalError`. */
  show(): Promise<string[]>
}

interface ListeningService {
  app: App
  resources: Resources
  config: Config
  print: (line: string) => void
}

/** Prepares the demonstration (docs/contract/configuration.md#reader) of a service that listens. Throws a `FatalError`. */
export type PrepareDemonstration = (service: ListeningService) => Promise<Demonstration>

/** Adds sample data to the database of a service that listens. Throws a `FatalError`. */
export type FillDatabase = (service: ListeningService) => Promise<void>

export interface ServeOptions {
  config: Config
  logger: Logger
  /** Lines that the log lost, and lines that it summed up. */
  logCounts?: LogCounts
  /** Prepares the demonstration, which runs after the start. Development only. */
  prepareDemonstration?: PrepareDemonstration | undefined
  /** Adds sample data before the service is ready. Development only. */
  fillDatabase?: FillDatabase | undefined
  /** Starts although SECRET_KEY decrypts no stored secret: the key is lost, and every secret will be rotated. */
  isKeyLost?: boolean
  print: (line: string) => void
  /** The clock of the machine. Default: this one's. */
  machine?: Clock
  /** Called when the start has printed all that it prints. */
  onShown?: () => void
}

/** The cause of a stop. */
export interface StopRequest {
  /** The signal's name, or the fault that ends the service. */
  reason: string
  isFailure: boolean
}

/**
 * `signalbox serve`: prepares the database, listens, creates the first administrator in development
 * (docs/contract/identity.md#first-administrator), runs until `stopRequested` resolves, and stops in order. Resolves with
 * the exit code; throws when it cannot start.
 */
export async function serve(options: ServeOptions, stopRequested: Promise<StopRequest>): Promise<number> {
  const limit = buildStopLimit(options)
  const { time, restore } = adoptDatabaseClock(options.machine)
  // The time limit runs from the request, also during a start, so that a hanging start cannot block the stop.
  void stopRequested.then(limit.start)
  try {
    return await runUntilStop({ ...options, time }, stopRequested, limit)
  } finally {
    limit.end()
    restore()
  }
}

async function runUntilStop(
  options: ServeOptions & { time: DatabaseClock },
  stopRequested: Promise<StopRequest>,
  limit: StopLimit,
): Promise<number> {
  const { config, logger, print } = options
  checkDevelopment(options)
  const stop = new AbortController()
  void stopRequested.then(() => stop.abort())
  const startedAt = readMonotonicMs()
  const { time } = options
  const fixture = { config, clock: time, time, random: systemRandom, logger, stop: stop.signal }
  // Concurrently with the start of the embedded PostgreSQL. An external one is connected first: a refusal makes this
  // needless.
  if (config.databaseUrl === undefined) loadApp().catch(() => {})
  const resources = await openResources(fixture).catch((error: unknown) => {
    // The stop aborted the start of the embedded PostgreSQL, which cleaned up.
    if (error === stop.signal.reason) return undefined
    throw error
  })
  if (!resources) return reportStop((await stopRequested).reason, print)
  const parts: Started = { app: undefined, admin: undefined, isReady: false }
  try {
    await startInSteps({ options, fixture, resources, parts, stopRequested, startedAt })
  } catch (error) {
    limit.start()
    // Created but not printed yet: print it, or the next start has an administrator without a known password.
    if (parts.admin?.password) printSignIn(parts.admin, print)
    await parts.app?.stop().catch(() => {})
    await resources.close()
    throw error
  }
  const request = await Promise.race([stopRequested, watchPostgres(resources)])
  limit.start()
  // A fatal error is not announced first.
  const delayMs = request.isFailure ? 0 : config.shutdownDelaySeconds * 1000
  return stopInOrder({ app: parts.app, resources, request, logger, print, delayMs })
}

/** Refuses the demonstration and the sample outside development. */
function checkDevelopment({ config: { appEnv }, prepareDemonstration, fillDatabase }: ServeOptions): void {
  if (appEnv === 'development') return
  const needs = `so it needs APP_ENV=development (it is ${appEnv}).`
  if (prepareDemonstration) throw new FatalError(`start (serve --demo) creates rows and prints a key, ${needs}`)
  if (fillDatabase) throw new FatalError(`--sample adds users and deliveries that never were, ${needs}`)
}

/** Loads the modules of the service, which takes most of the processor time of a start. */
const loadApp = () => import('./app.ts')

interface Started {
  app: App | undefined
  admin: FirstAdministrator | undefined
  /** Whether the start has finished, for `/readyz`. */
  isReady: boolean
}

/** The steps of a start, in order. A stop request takes effect between them. */
async function startInSteps(start: {
  options: ServeOptions
  fixture: ResourcesOptions & { stop: AbortSignal }
  resources: Resources
  parts: Started
  stopRequested: Promise<StopRequest>
  startedAt: number
}): Promise<void> {
  const { options, fixture, resources, parts, stopRequested, startedAt } = start
  const { config, clock, time, random, logger, stop } = fixture
  const { print } = options
  reportIdleSettings(config, logger)
  await prepareDatabase(resources, fixture)
  // A stop leaves the rest of the migrations to the next start: what follows needs them.
  if (stop.aborted) return
  const { buildApp } = await loadApp()
  await checkSecretKey(options, resources)
  if (stop.aborted) return
  const app = await buildApp({
    ...resources,
    ...{ config, clock, random, logger },
    ...(time && { time }),
    ...(options.logCounts && { logCounts: options.logCounts }),
    lookup: buildSystemLookup(),
    resolveTxt: buildSystemTxtLookup(),
    hasStarted: () => parts.isReady,
    ...(config.crashPoint && { onCrashPoint: buildCrash(config.crashPoint) }),
  })
  parts.app = app
  await app.start().catch((error: unknown) => {
    throw describeListenFailure(error, config)
  })
  // After listening, because the password is printed once and a failed start must not lose it.
  const wait = { limitMs: config.databaseWaitSeconds * 1000, clock, logger, stop }
  if (config.appEnv === 'development' && !stop.aborted) parts.admin = await ensureAdministrator(resources, wait)
  if (!stop.aborted) printConsole({ app, config, print })
  // Before readiness: who waits for it may read the sample, and use the token.
  if (!stop.aborted) await addSampleData(start, app)
  const demonstration = stop.aborted ? undefined : await prepareDemo(start, app)
  // Node stores its compile cache only at an orderly exit; stored here, it survives a kill of the process.
  flushCompileCache()
  parts.isReady = !stop.aborted
  logger.info(describeService(app, config), 'service started')
  let commands: string[] = []
  if (demonstration && !stop.aborted) commands = (await untilStop(demonstration.show(), stopRequested)) ?? []
  const seconds = (readMonotonicMs() - startedAt) / 1000
  if (!stop.aborted || parts.admin?.password) printStart({ app, admin: parts.admin, config, print, seconds, commands })
  options.onShown?.()
}

async function addSampleData(
  { options, resources, stopRequested }: Parameters<typeof startInSteps>[0],
  app: App,
): Promise<void> {
  const { config, print, fillDatabase } = options
  if (fillDatabase) await untilStop(fillDatabase({ app, resources, config, print }), stopRequested)
}

async function prepareDemo(
  { options, resources, stopRequested }: Parameters<typeof startInSteps>[0],
  app: App,
): Promise<Demonstration | undefined> {
  const { config, print } = options
  const preparation = options.prepareDemonstration?.({ app, resources, config, print })
  return preparation && untilStop(preparation, stopRequested)
}

/** The result of `work`; undefined when a stop is requested before, after which its failure is expected. */
async function untilStop<Result>(
  work: Promise<Result>,
  stopRequested: Promise<StopRequest>,
): Promise<Result | undefined> {
  work.catch(() => {})
  return Promise.race([work, stopRequested.then(() => undefined)])
}

function reportIdleSettings({ idleSettings }: Config, logger: Logger): void {
  if (idleSettings.length === 0) return
  const settings = Object.fromEntries(idleSettings.map(({ name, where }) => [name, where]))
  logger.warn({ settings }, 'settings without effect: see docs/operations.md, settings without effect')
}

function describeService(app: App, { host, roles, appEnv }: Config) {
  return {
    address: host,
    port: readPort(app.server),
    metrics_port: app.metricsPort() ?? null,
    base_url: app.baseUrl(),
    roles,
    app_env: appEnv,
    version: VERSION,
    node_version: process.versions.node,
    worker: app.workerId,
  }
}

/** Refuses a SECRET_KEY that decrypts no stored secret: new secrets would be encrypted under another key. */
async function checkSecretKey({ isKeyLost }: ServeOptions, { database, secrets }: Resources): Promise<void> {
  if (isKeyLost) return
  const { findLostKey } = await import('../operations/stored-secret/secret-health.ts')
  const { keyIds } = buildKeyring(secrets.secretKey, systemRandom)
  const sentence = await findLostKey(database.db, keyIds)
  if (sentence !== undefined) throw new FatalError(sentence)
}

/** Kills this process like `kill -9`, once, at the point named by the crash tests. */
function buildCrash(wanted: NonNullable<Config['crashPoint']>) {
  return (point: NonNullable<Config['crashPoint']>) => {
    if (point === wanted) process.kill(process.pid, 'SIGKILL')
  }
}

/** The lines of a stop before anything ran. Returns the exit code. */
function reportStop(reason: string, print: (line: string) => void): number {
  print(`Stopping (${reason}).`)
  print('Stopped.')
  return 0
}

async function watchPostgres(resources: Resources): Promise<StopRequest> {
  if (!resources.postgres) return new Promise(() => {})
  await resources.postgres.exited
  return {
    reason: 'the embedded PostgreSQL exited unexpectedly; its log is postgres.log under SIGNALBOX_DATA_DIR',
    isFailure: true,
  }
}

async function stopInOrder(parts: {
  app: App | undefined
  resources: Resources
  request: StopRequest
  logger: Logger
  print: (line: string) => void
  delayMs: number
}): Promise<number> {
  const { app, resources, request, logger, print, delayMs } = parts
  print(`Stopping (${request.reason}).`)
  app?.announceStop()
  if (app && delayMs > 0) await systemClock.sleep(delayMs)
  let isOrderly = true
  // Both are stopped, even if the first one fails.
  for (const stop of [() => app?.stop(), () => resources.close()]) {
    try {
      await stop()
    } catch (error) {
      isOrderly = false
      logger.error({ err: error }, 'shutdown incomplete: see docs/operations.md, stopping')
    }
  }
  print('Stopped.')
  return request.isFailure || !isOrderly ? 1 : 0
}
