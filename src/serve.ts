import type { Logger } from 'pino'
import { type App, buildApp } from './app.ts'
import { systemClock } from './clock.ts'
import type { Config } from './config.ts'
import { buildSystemLookup } from './delivery/dns.ts'
import { runDemo } from './demo/demo.ts'
import { FatalError } from './fatal.ts'
import { buildIdMaker } from './id.ts'
import { inTransaction } from './postgres/database.ts'
import { type Ground, openGround, prepareDatabase } from './prepare.ts'
import { systemRandom } from './random.ts'
import { issueSession } from './session/session.ts'
import { createAdministrator, hasAdministrator } from './user/administrator.ts'
import { findUserByEmail } from './user/user.store.ts'

/** How long an orderly stop may take; after this the process ends anyway. */
const STOP_LIMIT_MS = 9_500

export interface ServeOptions {
  config: Config
  logger: Logger
  /** Shows the main job working after the start. Development only. */
  demo: boolean
  /** Prints a line for the person at the terminal. */
  print: (line: string) => void
}

/** What makes the process stop. */
export interface StopRequest {
  /** The signal's name, or why the service cannot go on. */
  reason: string
  isFailure: boolean
}

/**
 * `signalbox serve`: prepares the database, makes the first administrator in development (D13), listens, and runs until
 * `stopRequested` resolves. Then everything stops in order. Resolves with the exit code; throws when it cannot start.
 */
export async function serve(options: ServeOptions, stopRequested: Promise<StopRequest>): Promise<number> {
  const { config, logger, print } = options
  if (options.demo && config.appEnv !== 'development')
    throw new FatalError(`--demo makes rows and shows a key, so it needs APP_ENV=development (it is ${config.appEnv}).`)
  const startedAt = systemClock.now()
  const world = { config, clock: systemClock, random: systemRandom, logger }
  const ground = await openGround(world)
  let app: App | undefined
  try {
    await prepareDatabase(ground, world)
    const admin = config.appEnv === 'development' ? await ensureAdministrator(ground) : undefined
    app = await buildApp({
      ...world,
      secrets: ground.secrets,
      database: ground.database,
      connectionString: ground.connectionString,
      lookup: buildSystemLookup(),
      ...(config.crashPoint && { onCrashPoint: buildCrash(config.crashPoint) }),
    })
    await app.start()
    if (options.demo) await demonstrate({ app, ground, options })
    printStart({ app, admin, config, print, seconds: (systemClock.now() - startedAt) / 1000 })
  } catch (error) {
    await app?.stop().catch(() => {})
    await ground.close()
    throw error
  }
  const request = await Promise.race([stopRequested, watchPostgres(ground)])
  return stopInOrder({ app, ground, request, logger, print })
}

/** Ends this process as `kill -9` would, once, at the point that the crash tests name. */
function buildCrash(wanted: NonNullable<Config['crashPoint']>) {
  return (point: NonNullable<Config['crashPoint']>) => {
    if (point === wanted) process.kill(process.pid, 'SIGKILL')
  }
}

async function watchPostgres(ground: Ground): Promise<StopRequest> {
  if (!ground.postgres) return new Promise(() => {})
  await ground.postgres.exited
  return {
    reason: 'the embedded PostgreSQL ended by itself; its log is postgres.log under SIGNALBOX_DATA_DIR',
    isFailure: true,
  }
}

async function stopInOrder(parts: {
  app: App
  ground: Ground
  request: StopRequest
  logger: Logger
  print: (line: string) => void
}): Promise<number> {
  const { app, ground, request, logger, print } = parts
  print(`Stopping (${request.reason}).`)
  const limit = setTimeout(() => {
    logger.error('the stop took too long: see docs/operations.md, stopping')
    process.exit(1)
  }, STOP_LIMIT_MS)
  await app.stop()
  await ground.close()
  clearTimeout(limit)
  print('Stopped.')
  return request.isFailure ? 1 : 0
}

interface FirstAdministrator {
  email: string
  /** Only when it was made up now: printed once, kept nowhere. */
  password: string | undefined
}

async function ensureAdministrator({ database, config }: Ground): Promise<FirstAdministrator | undefined> {
  if (await hasAdministrator(database.db)) return undefined
  const ids = buildIdMaker(systemClock, systemRandom)
  const password = config.adminPassword ?? systemRandom.bytes(12).toString('base64url')
  const deps = { ids, random: systemRandom }
  const result = await createAdministrator(deps, database.db, {
    email: config.adminEmail,
    password,
    now: new Date(systemClock.now()),
  })
  if (!result.ok) throw new FatalError(result.error)
  return { email: config.adminEmail, password: config.adminPassword === undefined ? password : undefined }
}

async function demonstrate(parts: { app: App; ground: Ground; options: ServeOptions }): Promise<void> {
  const { app, ground, options } = parts
  const { config, print } = options
  const user = await findUserByEmail(ground.database.db, config.adminEmail)
  if (!user)
    throw new FatalError(`There is no user ${config.adminEmail}. Set SIGNALBOX_ADMIN_EMAIL to an administrator.`)
  const deps = {
    ids: app.ids,
    random: systemRandom,
    keys: { secrets: ground.secrets.sessionJwt, issuer: () => app.baseUrl() },
  }
  const now = new Date(systemClock.now())
  const session = await inTransaction(ground.database.db, (tx) =>
    issueSession(deps, tx, {
      userId: user.id,
      origin: { address: null, userAgent: 'npm start' },
      isRefreshable: false,
      now,
    }),
  )
  if (!session)
    throw new FatalError(
      `The user ${config.adminEmail} is disabled. Set SIGNALBOX_ADMIN_EMAIL to an active administrator.`,
    )
  await runDemo({ baseUrl: app.baseUrl(), jwt: session.jwt, dataDir: config.dataDir, clock: systemClock, print })
}

function printStart(parts: {
  app: App
  admin: FirstAdministrator | undefined
  config: Config
  print: (line: string) => void
  seconds: number
}): void {
  const { app, admin, config, print, seconds } = parts
  print(
    `Signalbox listens on ${app.baseUrl()} (ready in ${seconds.toFixed(1)} s). API reference: ${app.baseUrl()}/docs`,
  )
  if (config.appEnv !== 'development') return
  if (admin?.password) print(`Sign in as ${admin.email} with the password ${admin.password} (shown this once).`)
  else if (admin) print(`Sign in as ${admin.email} with the password of SIGNALBOX_ADMIN_PASSWORD.`)
  else
    print(`Sign in as ${config.adminEmail}. Lost the password? signalbox admin password --email ${config.adminEmail}`)
  print(
    `  curl -s -X POST ${app.baseUrl()}/api/v3/auth/login/local -H 'Content-Type: application/json' -d '{"email":"${config.adminEmail}","password":"..."}'`,
  )
  print('Stop with Ctrl-C.')
}
