import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type FileHandle, open, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { buildServerEnvironment } from './embedded-cluster.ts'
import { buildFailedRunError, findSystemErrorCode } from './embedded-error.ts'
import { findPostmaster, waitUntil } from './embedded-orphan.ts'
import { buildClusterArgument, type ServerUser } from './embedded-user.ts'

/** Size beyond which the log is truncated at the next start. */
const LOG_LIMIT_BYTES = 5 * 1024 * 1024
/** Start timeout: crash recovery of a large write-ahead log is slow. A server that exits is detected at once. */
const READY_LIMIT_MS = 300_000
/** Timeouts after which a fast shutdown becomes an immediate one, and that one a kill. */
const STOP_LIMIT_MS = 5_000
/** Attempts to find a port: another program may take the chosen one before the server does. */
const PORT_ATTEMPTS = 5

/**
 * The server's settings, for a small machine shared with the service. Durability stays at PostgreSQL's default (`fsync`,
 * `synchronous_commit`, `full_page_writes` on). `settings` of the caller win, except for the addresses: the server listens
 * on loopback, and on a socket in `socketDir` if there is one. Pure.
 */
export function buildServerSettings(
  port: number,
  settings: Record<string, string>,
  socketDir?: string,
): Record<string, string> {
  return {
    max_connections: '100',
    shared_buffers: '64MB',
    max_wal_size: '512MB',
    fsync: 'on',
    synchronous_commit: 'on',
    // No replication, and few processes.
    wal_level: 'minimal',
    max_wal_senders: '0',
    io_method: 'sync',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off',
    log_destination: 'stderr',
    logging_collector: 'off',
    ...settings,
    listen_addresses: '127.0.0.1',
    port: String(port),
    // A list, in which a folder with a comma or a space in its name is quoted.
    unix_socket_directories: socketDir === undefined ? '' : `"${socketDir}"`,
  }
}

export interface ServerInput {
  nativeDir: string
  clusterDir: string
  platform: NodeJS.Platform
  user: ServerUser | undefined
  settings: Record<string, string>
  /** The folder of a Unix-domain socket; none when absent. */
  socketDir: string | undefined
  logFile: string
  /** The directory for error messages. */
  shownDir: string
  /** Ends the wait for the server, and stops it. */
  stop?: AbortSignal | undefined
}

/** A running server that answers. */
export interface ServerProcess {
  pid: number
  port: number
  /** Resolves when the server has exited, for any reason. */
  exited: Promise<{ code: number | null }>
  /** Stops it: fast shutdown, after 5 s immediate, after 10 s a kill. Resolves when it has exited. */
  stop(): Promise<void>
}

/** Starts the server on a free loopback port and awaits it. Throws `postgres_failed_to_start` or `disk_full`. */
export async function startServer(input: ServerInput): Promise<ServerProcess> {
  for (let attempt = 1; ; attempt++) {
    const log = await openLog(input.logFile, input.user)
    const logOffset = (await log.stat()).size
    const port = await findFreePort()
    const child = spawnServer(input, port, log)
    const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }))
    })
    try {
      await once(child, 'spawn')
    } finally {
      await log.close()
    }
    const pid = child.pid ?? 0
    const watchdog = startWatchdog(pid, input)
    void exited.then(() => watchdog?.kill('SIGKILL'))
    const server: ServerProcess = {
      pid,
      port,
      exited: exited.then(({ code }) => ({ code })),
      stop: () => stopServer(child, exited),
    }
    const isReady = await waitForReady(input, pid, exited)
    if (isReady) return server
    await server.stop()
    input.stop?.throwIfAborted()
    const { code, signal } = await exited
    const output = await readLogFrom(input.logFile, logOffset)
    if (output.includes('Address already in use') && attempt < PORT_ATTEMPTS) continue
    const ending = code === null ? `signal ${signal}` : `exit code ${code}`
    throw buildFailedRunError({ program: 'postgres', dataDir: input.shownDir, ending, output })
  }
}

function spawnServer(input: ServerInput, port: number, log: FileHandle): ChildProcess {
  const all = buildServerSettings(port, input.settings, input.socketDir)
  const settings = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const argument = buildClusterArgument(input)
  return spawn(join(input.nativeDir, 'bin', 'postgres'), ['-D', argument, ...settings], {
    cwd: input.clusterDir,
    env: buildServerEnvironment(input.platform),
    // A session of its own: Ctrl-C in the terminal reaches only this process, which stops the server after draining.
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
    ...input.user,
  })
}

/**
 * Starts the watchdog that stops the server when this process is killed (kill -9, out of memory): a shell that reads from a
 * pipe of this process and sends a fast shutdown when the pipe closes. If the shell is killed too, the next start stops
 * the server.
 */
function startWatchdog(serverPid: number, input: ServerInput): ChildProcess | undefined {
  if (input.platform === 'win32') return undefined
  const watchdog = spawn('/bin/sh', ['-c', 'read -r _; kill -INT "$1"', 'signalbox-watchdog', String(serverPid)], {
    cwd: '/',
    env: {},
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    ...input.user,
  })
  // Without a shell on the machine there is no watchdog.
  watchdog.on('error', () => undefined)
  watchdog.stdin?.on('error', () => undefined)
  watchdog.unref()
  if (watchdog.stdin && 'unref' in watchdog.stdin) (watchdog.stdin as unknown as { unref(): void }).unref()
  return watchdog
}

async function waitForReady(
  { clusterDir, stop }: ServerInput,
  pid: number,
  exited: Promise<unknown>,
): Promise<boolean> {
  let isOver = false
  let isReady = false
  void exited.then(() => {
    isOver = true
  })
  await waitUntil(async () => {
    const found = await findPostmaster(clusterDir)
    isReady = found?.pid === pid && found.status === 'ready'
    return isReady || isOver || stop?.aborted === true
  }, READY_LIMIT_MS)
  return isReady && !isOver && stop?.aborted !== true
}

async function stopServer(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  let isOver = child.exitCode !== null || child.signalCode !== null
  void exited.then(() => {
    isOver = true
  })
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    if (isOver) break
    child.kill(signal)
    const limit = new AbortController()
    await Promise.race([exited, systemClock.sleep(STOP_LIMIT_MS, limit.signal)])
    limit.abort()
  }
  await exited
}

/** Opens the server's log for appending; replaces one that another user owns. */
async function openLog(logFile: string, user: ServerUser | undefined): Promise<FileHandle> {
  const log = await open(logFile, 'a', 0o600).catch(async (error) => {
    if (findSystemErrorCode(error) !== 'EACCES') throw error
    await rm(logFile)
    return open(logFile, 'a', 0o600)
  })
  if ((await log.stat()).size > LOG_LIMIT_BYTES) await log.truncate(0)
  if (user) await log.chown(user.uid, user.gid)
  return log
}

async function readLogFrom(logFile: string, offset: number): Promise<string> {
  return readFile(logFile).then(
    (bytes) => bytes.subarray(offset).toString('utf8'),
    () => '',
  )
}

/** A port of 127.0.0.1 that is free at this moment. */
async function findFreePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('the system assigned no port')
  return address.port
}
