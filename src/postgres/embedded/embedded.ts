import { mkdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import pg from 'pg'
import { systemClock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import { type Binaries, loadBinaries, prepareBinaries } from './embedded-binaries.ts'
import {
  buildClusterPlace,
  buildConnectionString,
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

/** A running embedded PostgreSQL. */
export interface EmbeddedPostgres {
  /** `postgres://signalbox:<password>@127.0.0.1:<port>/signalbox`: the superuser, on the loopback address. */
  connectionString: string
  port: number
  /** The postmaster's process. */
  pid: number
  /** Stops the server (fast shutdown, immediate after 5 s) and releases the data directory. Idempotent. */
  stop(): Promise<void>
  /** Resolves when the server has exited and the data directory is released. */
  exited: Promise<{ code: number | null }>
}

/** Facts about the machine; every part can be replaced. */
export interface EmbeddedPlatform {
  platform: NodeJS.Platform
  arch: string
  /** The uid of this process; undefined where there is none. */
  uid: number | undefined
  /** The text of /etc/passwd. */
  passwd: string
  /** Folders for a copy of the programs, for a user who cannot reach the installed ones, best first. Empty: the defaults. */
  stagingDirs: string[]
  /** The programs to run instead of the installed ones. */
  binaries: Binaries
}

export interface EmbeddedPostgresOptions {
  /** `SIGNALBOX_DATA_DIR`; created when missing. The server uses `postgres/`, `postgres.lock.*` and `postgres.log` in it. */
  dataDir: string
  platform?: Partial<EmbeddedPlatform>
  /** Receives lines about unusual steps of a start. */
  log: (line: string) => void
  random: Random
  /** Settings of the server that override the defaults, such as `fsync: 'off'` for tests. */
  settings?: Record<string, string>
  /** A folder in which the server also listens, on a Unix-domain socket. Its user can write there. Default: none. */
  socketDir?: string
  /** Aborts the start: everything started is stopped and removed. Rejects with the signal's reason. */
  stop?: AbortSignal
}

/**
 * Starts the embedded PostgreSQL on `dataDir` (docs/contract/configuration.md#reader: used when DATABASE_URL is not set),
 * creates the cluster at the first start, and resolves when it answers. One process holds a data directory at a time.
 * Cleans up after an earlier, killed process first. Throws EmbeddedPostgresError; after a failure nothing runs and the
 * directory is released.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir)
  const { platform = process.platform, arch = process.arch, binaries: given } = options.platform ?? {}
  // First, because an installation without the programs often has no place to write either.
  const binaries = given ?? (await loadBinaries(platform, arch))
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    const release = await takeDataDirLock(dataDir, options.random)
    try {
      return await startLocked(options, { dataDir, binaries, release })
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
  { dataDir, binaries, release }: { dataDir: string; binaries: Binaries; release: () => Promise<void> },
): Promise<EmbeddedPostgres> {
  const { stop } = options
  const platform = options.platform?.platform ?? process.platform
  const place = buildClusterPlace(join(dataDir, 'postgres'))
  const user = await loadServerUser(options.platform ?? {}, await findClusterOwner(place))
  const defaultStagingDirs = user
    ? ['/var/lib/signalbox', '/var/tmp/signalbox', '/tmp/signalbox']
    : [join(dataDir, 'postgres-programs')]
  const nativeDir = await prepareBinaries({
    platform,
    user,
    stagingDirs: options.platform?.stagingDirs ?? defaultStagingDirs,
    binaries,
  })
  const settings = options.settings ?? {}
  stop?.throwIfAborted()
  if (await checkCluster(place)) {
    await stopOrphanedServer({ clusterDir: place.dataDir, platform, log: options.log })
  } else {
    options.log(`Creating a new PostgreSQL database in ${place.rootDir}.`)
    const isDurable = settings.fsync !== 'off'
    const { random } = options
    await initializeCluster({ place, nativeDir, platform, user, random, isDurable, shownDir: dataDir, stop })
  }
  const password = await loadPassword(place)
  const clusterDir = place.dataDir
  const logFile = join(dataDir, 'postgres.log')
  const server = await startWhenFree({
    nativeDir,
    clusterDir,
    platform,
    user,
    settings,
    socketDir: options.socketDir,
    logFile,
    shownDir: dataDir,
    stop,
  })
  const connectionString = buildConnectionString(password, server.port)
  try {
    await ensureDatabase(connectionString)
  } catch (error) {
    await server.stop()
    throw new EmbeddedPostgresError(
      'postgres_failed_to_start',
      `The embedded PostgreSQL started but does not accept connections: ${(error as Error).message}. Its log is ${logFile}.`,
      { cause: error },
    )
  }
  return buildEmbeddedPostgres(server, connectionString, release)
}

/** Number and delay of further attempts to start while a killed server is still a zombie. */
const BURIAL_TRIES = 20
const BURIAL_PAUSE_MS = 250

/** Starts the server. One just killed may be a zombie; PostgreSQL refuses the cluster while its pid exists. */
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
    'PostgreSQL refuses to run as root, and this machine has no user named postgres or nobody: ' +
      `run signalbox as an ordinary user, or ${USE_DATABASE_URL}.`,
  )
}

/** PostgreSQL's code for a database that does not exist. */
const UNKNOWN_DATABASE = '3D000'

/** Connects once to check that the server answers, and creates the database if an interrupted start did not. */
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
