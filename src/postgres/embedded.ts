import { mkdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import pg from 'pg'
import { systemClock } from '../clock.ts'
import type { Random } from '../random.ts'
import { type Binaries, prepareBinaries } from './embedded-binaries.ts'
import {
  buildClusterPlace,
  checkCluster,
  EMBEDDED_NAME,
  findClusterOwner,
  initializeCluster,
  loadPassword,
} from './embedded-cluster.ts'
import { buildDataDirError, EmbeddedPostgresError, USE_DATABASE_URL } from './embedded-error.ts'
import { takeDataDirLock } from './embedded-lock.ts'
import { stopOrphanedServer } from './embedded-orphan.ts'
import { type ServerProcess, startServer } from './embedded-process.ts'
import { chooseServerUser, parsePasswd, type ServerUser } from './embedded-user.ts'

/** A running PostgreSQL of our own. */
export interface EmbeddedPostgres {
  /** `postgres://signalbox:<password>@127.0.0.1:<port>/signalbox`: the superuser, reachable from this machine only. */
  connectionString: string
  port: number
  /** The postmaster's process. */
  pid: number
  /** Ends the server (fast shutdown, harder after 5 s) and gives the data directory back. May be called more than once. */
  stop(): Promise<void>
  /** Resolves when the server is gone, by `stop` or by itself; the data directory is given back by then. */
  exited: Promise<{ code: number | null }>
}

/** The machine as the embedded server sees it; every part can be replaced. */
export interface EmbeddedPlatform {
  platform: NodeJS.Platform
  arch: string
  /** Our uid; undefined where there is none. */
  uid: number | undefined
  /** The text of /etc/passwd. */
  passwd: string
  /** Where a copy of the programs may go when the server's user cannot reach the installed ones, best first. Empty: the defaults. */
  stagingDirs: string[]
  /** The programs to run instead of the installed ones. */
  binaries: Binaries
}

export interface EmbeddedPostgresOptions {
  /** `SIGNALBOX_DATA_DIR`; made when missing. The server uses `postgres/`, `postgres.lock.*` and `postgres.log` in it. */
  dataDir: string
  platform?: Partial<EmbeddedPlatform>
  /** Gets a line when a start does something a person may want to know. */
  log: (line: string) => void
  random: Random
  /** Settings of the server that win over ours, such as `fsync: 'off'` for a throw-away cluster of tests. */
  settings?: Record<string, string>
}

/**
 * Starts the embedded PostgreSQL on `dataDir` (docs/contract/configuration.md#reader: used when DATABASE_URL is not set), makes the cluster at the first start, and resolves when
 * it answers. One process holds a data directory at a time. What an earlier, killed process left behind is put in order first.
 * Throws EmbeddedPostgresError; after a failure nothing runs and the directory is free.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir)
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    const release = await takeDataDirLock(dataDir, options.random)
    try {
      return await startLocked(options, dataDir, release)
    } catch (error) {
      await release()
      throw error
    }
  } catch (error) {
    throw buildDataDirError(dataDir, error)
  }
}

async function startLocked(
  options: EmbeddedPostgresOptions,
  dataDir: string,
  release: () => Promise<void>,
): Promise<EmbeddedPostgres> {
  const platform = options.platform?.platform ?? process.platform
  const place = buildClusterPlace(join(dataDir, 'postgres'))
  const user = await loadServerUser(options.platform ?? {}, await findClusterOwner(place))
  const defaultStagingDirs = user
    ? ['/var/lib/signalbox', '/var/tmp/signalbox', '/tmp/signalbox']
    : [join(dataDir, 'postgres-programs')]
  const nativeDir = await prepareBinaries({
    platform,
    arch: options.platform?.arch ?? process.arch,
    user,
    stagingDirs: options.platform?.stagingDirs ?? defaultStagingDirs,
    binaries: options.platform?.binaries,
  })
  const settings = options.settings ?? {}
  if (await checkCluster(place)) {
    await stopOrphanedServer({ clusterDir: place.dataDir, platform, log: options.log })
  } else {
    options.log(`Making a new PostgreSQL database in ${place.rootDir}.`)
    const isDurable = settings.fsync !== 'off'
    await initializeCluster({ place, nativeDir, platform, user, random: options.random, isDurable, shownDir: dataDir })
  }
  const password = await loadPassword(place)
  const clusterDir = place.dataDir
  const logFile = join(dataDir, 'postgres.log')
  const server = await startWhenFree({ nativeDir, clusterDir, platform, user, settings, logFile, shownDir: dataDir })
  const connectionString = `postgres://${EMBEDDED_NAME}:${password}@127.0.0.1:${server.port}/${EMBEDDED_NAME}`
  try {
    await ensureDatabase(connectionString)
  } catch (error) {
    await server.stop()
    throw new EmbeddedPostgresError(
      'postgres_failed_to_start',
      `The embedded PostgreSQL started but could not be used: ${(error as Error).message}. Its log is ${logFile}.`,
      error,
    )
  }
  return buildEmbeddedPostgres(server, connectionString, release)
}

/** How often, and after what pause, a start is tried again while a killed server is still being buried. */
const BURIAL_TRIES = 20
const BURIAL_PAUSE_MS = 250

/**
 * Starts the server. One that was killed a moment ago may still be a zombie: nobody serves the cluster, and PostgreSQL
 * refuses it all the same while the process id exists.
 */
async function startWhenFree(input: Parameters<typeof startServer>[0]): Promise<ServerProcess> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await startServer(input)
    } catch (error) {
      const isHeld = error instanceof EmbeddedPostgresError && error.message.includes('"postmaster.pid" already exists')
      if (!isHeld || tries === BURIAL_TRIES) throw error
      await systemClock.sleep(BURIAL_PAUSE_MS)
    }
  }
}

function buildEmbeddedPostgres(
  server: ServerProcess,
  connectionString: string,
  release: () => Promise<void>,
): EmbeddedPostgres {
  const exited = server.exited.then(async (ending) => {
    await release()
    return ending
  })
  const stop = async () => {
    await server.stop()
    await exited
  }
  return { connectionString, port: server.port, pid: server.pid, stop, exited }
}

async function loadServerUser(
  platform: Partial<EmbeddedPlatform>,
  clusterOwner: ServerUser | undefined,
): Promise<ServerUser | undefined> {
  const uid = 'uid' in platform ? platform.uid : process.getuid?.()
  const passwd = platform.passwd ?? (await readFile('/etc/passwd', 'utf8').catch(() => ''))
  const choice = chooseServerUser({ uid, passwd: parsePasswd(passwd), clusterOwner })
  if (choice !== 'none') return choice.user
  throw new EmbeddedPostgresError(
    'no_unprivileged_user',
    'PostgreSQL refuses to run as root, and this machine has no user named postgres or nobody to run it as: ' +
      `run signalbox as an ordinary user, or ${USE_DATABASE_URL}.`,
  )
}

/** What PostgreSQL answers for a database that does not exist. */
const UNKNOWN_DATABASE = '3D000'

/** Connects once, so that a started server is known to answer, and makes our database where a start was cut off before it could. */
async function ensureDatabase(connectionString: string): Promise<void> {
  const isThere = await withClient(connectionString, async () => true).catch((error) => {
    if ((error as { code?: string }).code === UNKNOWN_DATABASE) return false
    throw error
  })
  if (isThere) return
  const maintenance = new URL(connectionString)
  maintenance.pathname = '/postgres'
  await withClient(maintenance.href, (client) => client.query(`create database ${EMBEDDED_NAME}`))
}

async function withClient<T>(connectionString: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}
