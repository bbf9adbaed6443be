import { execFile } from 'node:child_process'
import { readdir, readFile, readlink, realpath, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { readMonotonicMs, systemClock } from '../../base/clock.ts'
import { EmbeddedPostgresError, findSystemErrorCode } from './embedded-error.ts'
import { isPidTaken, isProcessAlive } from './embedded-lock.ts'

/** Delay before each stronger signal. */
const FAST_SHUTDOWN_MS = 10_000
const IMMEDIATE_SHUTDOWN_MS = 5_000
const POLL_MS = 20

/** The content of `postmaster.pid`: the server's process, its port and its state (`starting`, `ready`, `stopping`, ...). */
export interface PostmasterFile {
  pid: number
  /** 0 before the server has written it. */
  port: number
  status: string
}

/** Parses the text of `postmaster.pid`: the pid is its first line, the port its fourth, the status its eighth. Pure. */
export function parsePostmasterFile(text: string): PostmasterFile | undefined {
  const lines = text.split('\n')
  const pid = Math.abs(Number(lines[0]))
  return Number.isSafeInteger(pid) && pid > 0
    ? { pid, port: Number(lines[3]) || 0, status: lines[7]?.trim() ?? '' }
    : undefined
}

/** The current content of a cluster's `postmaster.pid`, or undefined without the file. */
export async function findPostmaster(clusterDir: string): Promise<PostmasterFile | undefined> {
  try {
    return parsePostmasterFile(await readFile(join(clusterDir, 'postmaster.pid'), 'utf8'))
  } catch (error) {
    if (findSystemErrorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Waits until `isDone`, at most `limitMs`; resolves to the last result. By the system clock, also in tests. */
export async function waitUntil(isDone: () => Promise<boolean> | boolean, limitMs: number): Promise<boolean> {
  const deadlineAt = readMonotonicMs() + limitMs
  while (!(await isDone())) {
    if (readMonotonicMs() >= deadlineAt) return false
    await systemClock.sleep(POLL_MS)
  }
  return true
}

/**
 * The processes that serve this cluster: programs named `postgres` with the cluster as working directory, where postmaster
 * and backends stay. A pid in a file is no proof, because the system may have reused it.
 */
async function listClusterProcesses(clusterDir: string): Promise<number[]> {
  const directory = await realpath(clusterDir)
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      if ((await readlink(`/proc/${name}/cwd`)) !== directory) continue
      if (basename(await readlink(`/proc/${name}/exe`)).startsWith('postgres')) found.push(Number(name))
    } catch {
      // The process has ended, or belongs to another user, whose server cannot own this cluster.
    }
  }
  return found
}

/** The same without /proc: the process of `postmaster.pid`, when its command line contains this cluster. */
async function listClusterProcessesByCommand(clusterDir: string, pid: number | undefined): Promise<number[]> {
  if (pid === undefined || !isProcessAlive(pid)) return []
  const { stdout } = await promisify(execFile)('ps', ['-p', String(pid), '-o', 'command=']).catch(() => ({
    stdout: '',
  }))
  return stdout.includes('postgres') && stdout.includes(clusterDir) ? [pid] : []
}

/** The processes that serve this cluster now. Empty on Windows, where only the server's own lock protects. */
export async function findClusterProcesses(clusterDir: string, platform: NodeJS.Platform): Promise<number[]> {
  if (platform === 'linux') return listClusterProcesses(clusterDir)
  if (platform === 'win32') return []
  return listClusterProcessesByCommand(clusterDir, (await findPostmaster(clusterDir))?.pid)
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (findSystemErrorCode(error) !== 'ESRCH') throw error
  }
}

/**
 * Stops the server of an earlier, killed owner, so that the cluster can be opened again: a fast shutdown first, then
 * immediate ones, after which the write-ahead log restores all commits. Only the holder of the data directory's lock calls
 * it.
 */
export async function stopOrphanedServer(input: {
  clusterDir: string
  platform: NodeJS.Platform
  log: (line: string) => void
}): Promise<void> {
  const listProcesses = () => findClusterProcesses(input.clusterDir, input.platform)
  const isGone = async () => (await listProcesses()).length === 0
  const postmaster = await findPostmaster(input.clusterDir)
  const processes = await listProcesses()
  if (processes.length > 0) {
    input.log(`Stopping the PostgreSQL that an earlier run left behind (process ${postmaster?.pid ?? processes[0]}).`)
    // Backends exit when their postmaster exits.
    if (postmaster && processes.includes(postmaster.pid)) sendSignal(postmaster.pid, 'SIGINT')
    if (await waitUntil(isGone, FAST_SHUTDOWN_MS)) return
    for (const pid of await listProcesses()) sendSignal(pid, 'SIGQUIT')
    if (await waitUntil(isGone, IMMEDIATE_SHUTDOWN_MS)) return
    for (const pid of await listProcesses()) sendSignal(pid, 'SIGKILL')
    if (await waitUntil(isGone, IMMEDIATE_SHUTDOWN_MS)) return
    throw new EmbeddedPostgresError(
      'data_dir_in_use',
      `The PostgreSQL that an earlier run left behind (process ${postmaster?.pid ?? processes[0]}) does not stop: stop it manually.`,
    )
  }
  // Removes the stale file, because PostgreSQL refuses to start while any process has the old pid.
  if (postmaster && input.platform === 'linux' && isPidTaken(postmaster.pid)) {
    await rm(join(input.clusterDir, 'postmaster.pid'), { force: true })
  }
}
