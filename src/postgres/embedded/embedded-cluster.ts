import { spawn } from 'node:child_process'
import { chmod, chown, mkdir, open, readdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Random } from '../../base/random.ts'
import { buildFailedRunError, EmbeddedPostgresError, findSystemErrorCode, USE_DATABASE_URL } from './embedded-error.ts'
import { buildClusterArgument, type ServerUser } from './embedded-user.ts'

/** The major version of the embedded server. It cannot open a cluster of another one. */
const EMBEDDED_MAJOR_VERSION = '18'

/** The superuser and the database of the embedded server. */
export const EMBEDDED_NAME = 'signalbox'

/** The paths of a cluster: `data` belongs to the server's user, `password` to this process's. */
export interface ClusterPlace {
  /** `<data dir>/postgres`; created by one rename, complete. */
  rootDir: string
  dataDir: string
  passwordFile: string
}

/** The paths below a data directory. Pure. */
export function buildClusterPlace(rootDir: string): ClusterPlace {
  return { rootDir, dataDir: join(rootDir, 'data'), passwordFile: join(rootDir, 'password') }
}

/** The connection string of the superuser, on the loopback address. Pure. */
export function buildConnectionString(password: string, port: number): string {
  return `postgres://${EMBEDDED_NAME}:${password}@127.0.0.1:${port}/${EMBEDDED_NAME}`
}

/** The owner of the cluster, or undefined when there is none yet. */
export async function findClusterOwner(place: ClusterPlace): Promise<ServerUser | undefined> {
  try {
    const { uid, gid } = await stat(place.dataDir)
    return { uid, gid }
  } catch (error) {
    if (findSystemErrorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Whether a complete cluster of the bundled version exists. Removes an empty directory in its place. Throws
 * `data_dir_version` for another major version and `data_dir_unreadable` when the path is not a cluster.
 */
export async function checkCluster(place: ClusterPlace): Promise<boolean> {
  const version = await readFile(join(place.dataDir, 'PG_VERSION'), 'utf8').catch((error) => {
    if (findSystemErrorCode(error) === 'ENOENT') return undefined
    throw error
  })
  if (version?.trim() === EMBEDDED_MAJOR_VERSION) return true
  if (version !== undefined) {
    throw new EmbeddedPostgresError(
      'data_dir_version',
      `${place.rootDir} was created by PostgreSQL ${version.trim()}, but the embedded server is ${EMBEDDED_MAJOR_VERSION}: ` +
        `migrate it with pg_dump, choose another SIGNALBOX_DATA_DIR, or ${USE_DATABASE_URL}.`,
    )
  }
  const isGone = await rmdir(place.rootDir).then(
    () => true,
    (error) => {
      if (findSystemErrorCode(error) === 'ENOENT') return true
      if (findSystemErrorCode(error) === 'ENOTEMPTY' || findSystemErrorCode(error) === 'ENOTDIR') return false
      throw error
    },
  )
  if (isGone) return false
  throw new EmbeddedPostgresError(
    'data_dir_unreadable',
    `${place.rootDir} exists and is not a PostgreSQL cluster: move it away, or choose another SIGNALBOX_DATA_DIR.`,
  )
}

/** Reads the superuser's password of an existing cluster. */
export async function loadPassword(place: ClusterPlace): Promise<string> {
  try {
    return (await readFile(place.passwordFile, 'utf8')).trim()
  } catch (error) {
    if (findSystemErrorCode(error) !== 'ENOENT') throw error
    throw new EmbeddedPostgresError(
      'data_dir_unreadable',
      `${place.passwordFile}, the password of the embedded PostgreSQL, is missing: restore it from a backup of the data directory.`,
      { cause: error },
    )
  }
}

export interface InitializeInput {
  place: ClusterPlace
  nativeDir: string
  platform: NodeJS.Platform
  user: ServerUser | undefined
  random: Random
  /** Whether the new files are synced to disk before the cluster counts as created. */
  isDurable: boolean
  /** The directory for error messages. */
  shownDir: string
  /** Kills initdb at once. */
  stop?: AbortSignal | undefined
}

/** Creates the cluster beside its place, and renames it: a kill leaves a draft, which the next start removes. */
export async function initializeCluster(input: InitializeInput): Promise<void> {
  const { place, user } = input
  await removeDrafts(place)
  const draft = buildClusterPlace(`${place.rootDir}.draft-${input.random.bytes(6).toString('hex')}`)
  try {
    await mkdir(draft.rootDir, { mode: 0o700 })
    await mkdir(draft.dataDir, { mode: 0o700 })
    await writeFile(draft.passwordFile, `${input.random.bytes(24).toString('base64url')}\n`, { mode: 0o600 })
    if (user) for (const path of Object.values(draft)) await chown(path, user.uid, user.gid)
    await runInitdb(input, draft)
    if (user) {
      // From here on only root can read the password and enter the directory; the server starts inside its own.
      await chown(draft.passwordFile, 0, 0)
      await chown(draft.rootDir, 0, 0)
    }
    await chmod(draft.passwordFile, 0o600)
    if (input.isDurable) for (const path of [draft.passwordFile, draft.rootDir]) await syncToDisk(path)
    await rename(draft.rootDir, place.rootDir)
    if (input.isDurable) await syncToDisk(join(place.rootDir, '..'))
  } catch (error) {
    await rm(draft.rootDir, { recursive: true, force: true }).catch(() => undefined)
    throw error
  }
}

/** Removes the drafts of starts that were killed during initdb. Only the holder of the data directory's lock calls it. */
async function removeDrafts(place: ClusterPlace): Promise<void> {
  const parent = join(place.rootDir, '..')
  for (const name of await readdir(parent)) {
    if (name.startsWith('postgres.draft-')) {
      // An initdb that outlived its killed parent may still write: retry when the directory is not empty.
      await rm(join(parent, name), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    }
  }
}

async function syncToDisk(path: string): Promise<void> {
  // Windows cannot sync a directory; its file system orders renames.
  if (process.platform === 'win32') return
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The environment of initdb and the server: English messages, for parsing, and no variables of this process. Pure. */
export function buildServerEnvironment(platform: NodeJS.Platform): NodeJS.ProcessEnv {
  const common = { LC_ALL: 'C', LC_MESSAGES: 'C', TZ: 'UTC' }
  // Windows programs do not start without SystemRoot; elsewhere initdb starts `postgres` through a shell and needs the
  // standard path.
  return platform === 'win32' ? { ...common, SystemRoot: 'C:\\Windows' } : { ...common, PATH: '/usr/bin:/bin' }
}

async function runInitdb(input: InitializeInput, draft: ClusterPlace): Promise<void> {
  const argument = buildClusterArgument({ platform: input.platform, user: input.user, clusterDir: draft.dataDir })
  const passwordFile = argument === draft.dataDir ? draft.passwordFile : `${argument}/../password`
  const args = [
    `--pgdata=${argument}`,
    `--username=${EMBEDDED_NAME}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The builtin provider sorts the same on every machine and in every later release of its C library.
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    '--no-instructions',
    ...(input.isDurable ? [] : ['--no-sync']),
  ]
  const program = spawn(join(input.nativeDir, 'bin', 'initdb'), args, {
    cwd: draft.dataDir,
    env: buildServerEnvironment(input.platform),
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own: Ctrl-C in a terminal reaches only the service, which ends initdb by `stop`.
    detached: true,
    ...input.user,
  })
  const kill = () => killGroup(program.pid)
  input.stop?.addEventListener('abort', kill)
  let output = ''
  for (const stream of [program.stdout, program.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const ending = await new Promise<string>((resolve, reject) => {
    program.once('error', reject)
    program.once('close', (code, signal) => resolve(code === null ? `signal ${signal}` : `exit code ${code}`))
  }).finally(() => input.stop?.removeEventListener('abort', kill))
  input.stop?.throwIfAborted()
  if (ending !== 'exit code 0') {
    throw buildFailedRunError({ program: 'initdb', dataDir: input.shownDir, ending, output })
  }
}

/** Kills a program that leads a process group, with its children. Its draft is discarded. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL')
  } catch (error) {
    if (findSystemErrorCode(error) !== 'ESRCH') throw error
  }
}
