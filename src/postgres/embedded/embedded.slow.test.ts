import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createConnection } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { findDataRoot } from '../../../test/harness/process/data-root.ts'
import { COMPILE_CACHE } from '../../../test/harness/process/process.ts'
import { findReachableCheckout } from '../../../test/harness/process/reachable-checkout.ts'
import { seedDataDir } from '../../../test/harness/process/seeded-data-dir.ts'
import { systemRandom } from '../../base/random.ts'
import { type EmbeddedPlatform, type EmbeddedPostgres, startEmbeddedPostgres } from './embedded.ts'
import { loadBinaries } from './embedded-binaries.ts'
import { findClusterProcesses, waitUntil } from './embedded-orphan.ts'

const isRoot = process.getuid?.() === 0
const dataRoot = await findDataRoot()
const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** A temporary directory of one test. `parent`: a folder that allows programs, when the test copies some. */
function makeDir(parent = dataRoot): string {
  const dir = mkdtempSync(join(parent, 'signalbox-postgres-'))
  cleanups.push(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** A data directory with a cluster, for tests that are not about its creation. */
async function makeDataDir(): Promise<string> {
  const dataDir = makeDir()
  await seedDataDir(dataDir)
  return dataDir
}

interface StartInput {
  platform?: Partial<EmbeddedPlatform>
  settings?: Record<string, string>
}

/** Starts a server that stops at the end of the test. */
async function start(dataDir: string, input: StartInput = {}): Promise<EmbeddedPostgres & { lines: string[] }> {
  const server = await open(dataDir, input)
  cleanups.push(() => server.stop())
  return server
}

async function open(dataDir: string, input: StartInput = {}): Promise<EmbeddedPostgres & { lines: string[] }> {
  const lines: string[] = []
  const log = (line: string) => lines.push(line)
  const server = await startEmbeddedPostgres({ dataDir, log, random: systemRandom, ...input })
  return Object.assign(server, { lines })
}

async function query(server: { connectionString: string }, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: server.connectionString })
  client.on('error', () => undefined)
  await client.connect()
  try {
    const { rows } = await client.query({ text, rowMode: 'array' })
    return rows.map(([value]) => value)
  } finally {
    await client.end()
  }
}

const refusal = (code: string) => expect.objectContaining({ name: 'EmbeddedPostgresError', code })

/** A folder for copies that another user can run, where only root can enter this checkout. */
function findProgram(user: object | undefined) {
  if (!user) return { node: process.execPath, root: fileURLToPath(new URL('../../..', import.meta.url)) }
  const { copiedTo, ...program } = findReachableCheckout()
  if (copiedTo) cleanups.push(() => rmSync(copiedTo, { recursive: true, force: true }))
  return program
}

/** A process that owns a server and prints one line when it runs; it ends when it is killed. */
async function startOwner(dataDir: string, user?: { uid: number; gid: number }) {
  const { node, root } = findProgram(user)
  const program = `
    import { startEmbeddedPostgres } from ${JSON.stringify(join(root, 'src/postgres/embedded/embedded.ts'))}
    import { systemRandom } from ${JSON.stringify(join(root, 'src/base/random.ts'))}
    const server = await startEmbeddedPostgres({ dataDir: process.argv[1], log: () => {}, random: systemRandom })
    process.on('SIGTERM', async () => { await server.stop(); process.exit(0) })
    console.log(JSON.stringify({ connectionString: server.connectionString, pid: server.pid, uid: process.getuid?.() }))
  `
  const args = ['--input-type=module', '-e', program, dataDir]
  // Another user cannot write the cache.
  const env = user ? {} : { NODE_COMPILE_CACHE: COMPILE_CACHE }
  const child = spawn(node, args, { cwd: '/', stdio: ['ignore', 'pipe', 'inherit'], env, ...user })
  cleanups.push(() => child.kill('SIGKILL'))
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  while (!text.includes('\n')) await once(child.stdout, 'data', { signal: AbortSignal.timeout(60_000) })
  const said = JSON.parse(text) as { connectionString: string; pid: number; uid: number }
  return { child, ...said }
}

async function killHard(child: ChildProcess) {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

async function hasServer(dataDir: string) {
  return (await findClusterProcesses(join(dataDir, 'postgres/data'), process.platform)).length > 0
}

describe('a first start', () => {
  /** A data directory with spaces, and what an interrupted initdb left in it. */
  let dataDir: string
  let first: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    dataDir = join(mkdtempSync(join(dataRoot, 'signalbox-postgres-')), 'my data')
    mkdirSync(join(dataDir, 'postgres.draft-abc/data'), { recursive: true })
    writeFileSync(join(dataDir, 'postgres.draft-abc/data/PG_VERSION'), '18\n')
    first = await open(dataDir)
  })
  afterAll(async () => {
    await first.stop()
    rmSync(dirname(dataDir), { recursive: true, force: true })
  })

  test('does not use the draft of an interrupted initdb, and removes it', async () => {
    expect(first.lines).toHaveLength(1)
    expect(await query(first, 'select 1')).toEqual([1])
    expect(readdirSync(dataDir).filter((name) => name.includes('draft'))).toEqual([])
  })

  test('makes a password that is random, readable by its owner only, and required', async () => {
    const file = join(dataDir, 'postgres/password')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8').trim()).toMatch(/^[\w-]{32}$/)
    expect(new URL(first.connectionString).password).toBe(readFileSync(file, 'utf8').trim())
    const wrong = first.connectionString.replace(/:[^:@]+@/, ':wrong@')
    await expect(query({ connectionString: wrong }, 'select 1')).rejects.toMatchObject({ code: '28P01' })
  })

  test('makes data that a second start finds, in a directory with spaces, as UTF-8 and PostgreSQL 18', async () => {
    await query(first, `create table kept as select 'Grüße 🎉' as text`)
    expect(await query(first, `select current_setting('server_encoding')`)).toEqual(['UTF8'])
    expect(await query(first, `select current_setting('server_version_num')::int / 10000`)).toEqual([18])
    expect(await query(first, `select current_setting('fsync') || current_setting('synchronous_commit')`)).toEqual([
      'onon',
    ])
    await first.stop()
    await first.stop()
    expect(await first.exited).toEqual({ code: 0 })
    expect(readdirSync(dataDir).sort()).toEqual(['postgres', 'postgres.log'])
    first = await open(dataDir)
    expect(first.lines).toEqual([])
    expect(await query(first, 'select text from kept')).toEqual(['Grüße 🎉'])
  })
})

test('the server listens on the loopback address only', async () => {
  const server = await start(await makeDataDir())
  expect(await query(server, 'show listen_addresses')).toEqual(['127.0.0.1'])
  const others = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  for (const { address, family } of [...others, { address: '127.0.0.2', family: 'IPv4' }]) {
    if (address === '127.0.0.1' || (family === 'IPv6' && address.startsWith('fe80'))) continue
    const socket = createConnection({ host: address, port: server.port })
    const outcome = await Promise.race([once(socket, 'connect'), once(socket, 'error')]).then(
      ([error]) => error,
      (error) => error,
    )
    socket.destroy()
    expect(outcome, address).toMatchObject({
      code: expect.stringMatching(/ECONNREFUSED|EADDRNOTAVAIL|ENETUNREACH|EHOSTUNREACH/),
    })
  }
})

test('a data directory that this or another process holds is refused, which does not affect its server', async () => {
  const dataDir = await makeDataDir()
  const server = await start(dataDir)
  const second = start(dataDir)
  await expect(second).rejects.toEqual(refusal('data_dir_in_use'))
  await expect(second).rejects.toThrow(`in use by another running signalbox (process ${process.pid})`)
  const otherDir = await makeDataDir()
  const other = await startOwner(otherDir)
  await expect(start(otherDir)).rejects.toThrow(`(process ${other.child.pid})`)
  expect(await query(other, 'select 1')).toEqual([1])
  expect(await query(server, 'select 1')).toEqual([1])
})

test('exactly one of many concurrent starts gets the data directory', async () => {
  const dataDir = makeDir()
  writeFileSync(join(dataDir, `postgres.lock.${2 ** 30}.1.dead`), '')
  writeFileSync(join(dataDir, `postgres.lock.${process.pid}.1.dead`), '')
  const results = await Promise.allSettled(Array.from({ length: 6 }, () => start(dataDir)))
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const result of results)
    if (result.status === 'rejected') expect(result.reason).toEqual(refusal('data_dir_in_use'))
})

test('when the owner is killed (kill -9) the server ends with it, and the next start has all commits', async () => {
  const dataDir = await makeDataDir()
  const owner = await startOwner(dataDir)
  await query(owner, 'create table kept as select 42 as n')
  await killHard(owner.child)
  expect(await waitUntil(async () => !(await hasServer(dataDir)), 60_000)).toBe(true)
  expect(await query(await start(dataDir), 'select n from kept')).toEqual([42])
})

test('a server that outlived its killed owner is stopped by the next start, without loss', async () => {
  const dataDir = await makeDataDir()
  const owner = await startOwner(dataDir)
  await query(owner, 'create table kept as select 42 as n')
  if (process.platform === 'linux') for (const pid of findWatchdogs(owner.pid)) process.kill(pid, 'SIGKILL')
  await killHard(owner.child)
  if (process.platform === 'linux') expect(await hasServer(dataDir)).toBe(true)
  const next = await start(dataDir)
  if (process.platform === 'linux')
    expect(next.lines.join()).toContain(`earlier run left behind (process ${owner.pid})`)
  expect(await query(next, 'select n from kept')).toEqual([42])
})

/** The watchdog shells of a server. */
function findWatchdogs(serverPid: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name) || !existsSync(`/proc/${name}/cmdline`)) return []
    const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0')
    return words.includes('signalbox-watchdog') && words.includes(String(serverPid)) ? [Number(name)] : []
  })
}

test('after a kill of owner, watchdog and server, the write-ahead log restores all commits', async () => {
  const dataDir = await makeDataDir()
  const owner = await startOwner(dataDir)
  await query(owner, 'create table kept as select generate_series(1, 1000) as n')
  if (process.platform === 'linux') for (const pid of findWatchdogs(owner.pid)) process.kill(pid, 'SIGKILL')
  process.kill(owner.pid, 'SIGKILL')
  await killHard(owner.child)
  expect(await query(await start(dataDir), 'select count(*)::int from kept')).toEqual([1000])
})

test('a stale postmaster.pid with the pid of another running process does not block a start', async () => {
  const dataDir = await makeDataDir()
  const first = await start(dataDir)
  await first.stop()
  writeFileSync(join(dataDir, 'postgres/data/postmaster.pid'), `${process.pid}\n/x\n1\n1\n\n127.0.0.1\n 1 1\nready\n`)
  expect(await query(await start(dataDir), 'select 1')).toEqual([1])
})

test('a crashed backend does not end the server', async () => {
  const server = await start(await makeDataDir())
  await query(server, 'create table kept as select 7 as n')
  const [backend] = (await query(server, `select pid from pg_stat_activity where backend_type = 'checkpointer'`)) as [
    number,
  ]
  process.kill(backend, 'SIGKILL')
  const isBack = await waitUntil(
    () =>
      query(server, 'select n from kept').then(
        (rows) => rows[0] === 7,
        () => false,
      ),
    60_000,
  )
  expect(isBack).toBe(true)
})

test('a server that exits unexpectedly is detected, and the data directory is released', async () => {
  const dataDir = await makeDataDir()
  const server = await start(dataDir)
  process.kill(server.pid, 'SIGKILL')
  expect(await server.exited).toEqual({ code: null })
  expect(readdirSync(dataDir).sort()).toEqual(['postgres', 'postgres.log'])
  expect(await query(await start(dataDir), 'select 1')).toEqual([1])
})

test('a data directory that cannot be created is an error with a remedy', async () => {
  const dir = makeDir()
  writeFileSync(join(dir, 'file'), '')
  await expect(start(join(dir, 'file/data'))).rejects.toEqual(refusal('data_dir_unreadable'))
})

test('a data directory that the user cannot write is an error with a remedy', async () => {
  const dataDir = makeDir()
  if (isRoot) {
    // Mode bits do not restrict root; a child without root gets a directory of another user.
    chmodSync(dataDir, 0o700)
    const user = { uid: 65534, gid: 65534 }
    const { node, root } = findProgram(user)
    const program = `
      import { startEmbeddedPostgres } from ${JSON.stringify(join(root, 'src/postgres/embedded/embedded.ts'))}
      const random = { bytes: (length) => Buffer.alloc(length) }
      await startEmbeddedPostgres({ dataDir: process.argv[1], log() {}, random }).catch((error) => console.log(error.code))
    `
    const args = ['--input-type=module', '-e', program, dataDir]
    expect(execFileSync(node, args, { cwd: '/', ...user, encoding: 'utf8' }).trim()).toBe('data_dir_unreadable')
  } else {
    chmodSync(dataDir, 0o500)
    await expect(start(dataDir)).rejects.toEqual(refusal('data_dir_unreadable'))
  }
})

test('a cluster of another major version, or a directory that is not a cluster, is refused and unchanged', async () => {
  const dataDir = makeDir()
  mkdirSync(join(dataDir, 'postgres/data'), { recursive: true })
  writeFileSync(join(dataDir, 'postgres/data/notes'), 'mine')
  await expect(start(dataDir)).rejects.toEqual(refusal('data_dir_unreadable'))
  writeFileSync(join(dataDir, 'postgres/data/PG_VERSION'), '15\n')
  await expect(start(dataDir)).rejects.toEqual(refusal('data_dir_version'))
  await expect(start(dataDir)).rejects.toThrow('created by PostgreSQL 15')
  expect(readFileSync(join(dataDir, 'postgres/data/notes'), 'utf8')).toBe('mine')
  expect(readdirSync(dataDir)).toEqual(['postgres'])
})

test('the error on a platform without programs names DATABASE_URL', async () => {
  const started = start(makeDir(), { platform: { arch: 'riscv64' } })
  await expect(started).rejects.toEqual(refusal('platform_unsupported'))
  await expect(started).rejects.toThrow('set DATABASE_URL')
})

test('the error of a failed start contains the output of the server, and the data directory is released', async () => {
  const dataDir = await makeDataDir()
  const started = start(dataDir, { settings: { shared_buffers: 'many' } })
  await expect(started).rejects.toEqual(refusal('postgres_failed_to_start'))
  await expect(started).rejects.toThrow('invalid value for parameter "shared_buffers"')
  expect(await query(await start(dataDir, { settings: { fsync: 'off' } }), 'show fsync')).toEqual(['off'])
})

test('a log over its size limit is truncated', async () => {
  const dataDir = await makeDataDir()
  const logFile = join(dataDir, 'postgres.log')
  writeFileSync(logFile, 'x'.repeat(5 * 1024 * 1024 + 1))
  await start(dataDir)
  expect(statSync(logFile).size).toBeLessThan(100_000)
  expect(readFileSync(logFile, 'utf8')).toContain('ready to accept connections')
})

test('programs and data below a directory that only its owner may enter work, with unchanged permissions', async () => {
  const closed = join(makeDir(tmpdir()), 'x y')
  const nativeDir = join(closed, 'project/native')
  const { nativeDir: installedDir, version } = await loadBinaries(process.platform, process.arch)
  // Without links, as npm installs when install scripts are disabled.
  const filter = (path: string) => !lstatSync(path).isSymbolicLink()
  cpSync(installedDir, nativeDir, { recursive: true, filter })
  chmodSync(closed, 0o700)
  const dataDir = join(closed, 'project/.signalbox')
  const stagingDirs = [join(makeStagingDir(), 'staged')]
  const platform = { binaries: { nativeDir, version }, stagingDirs }
  const server = await start(dataDir, { platform })
  await query(server, 'create table kept as select 1 as n')
  await server.stop()
  const next = await start(dataDir, { platform })
  expect(await query(next, 'select n from kept')).toEqual([1])
  expect(statSync(closed).mode & 0o777).toBe(0o700)
  expect(await query(next, 'select pg_reload_conf()')).toEqual([true])
  // Root needs a copy that the server's user can reach; other users run the programs in place.
  expect(existsSync(join(stagingDirs[0] ?? '', `postgres-${version}`))).toBe(isRoot)
  if (isRoot) expect(statSync(join(dataDir, 'postgres/data')).uid).not.toBe(0)
})

/** A directory that another user can reach. */
function makeStagingDir(): string {
  const dir = makeDir(tmpdir())
  chmodSync(dir, 0o755)
  return dir
}

test('root does not run programs from a staging directory of another user', async () => {
  const dir = makeStagingDir()
  const closed = join(dir, 'closed')
  const trap = join(dir, 'trap')
  const { nativeDir, version } = await loadBinaries(process.platform, process.arch)
  mkdirSync(join(trap, `postgres-${version}/bin`), { recursive: true })
  writeFileSync(join(trap, `postgres-${version}/bin/postgres`), '#!/bin/sh\nexit 0\n', { mode: 0o755 })
  cpSync(nativeDir, join(closed, 'native'), { recursive: true, verbatimSymlinks: true })
  chmodSync(closed, 0o700)
  if (isRoot) chownSync(trap, 65534, 65534)
  const platform = { binaries: { nativeDir: join(closed, 'native'), version }, stagingDirs: [trap] }
  const started = start(join(dir, 'data'), { platform })
  if (isRoot) await expect(started).rejects.toThrow('No folder for a copy')
  else expect(await query(await started, 'select 1')).toEqual([1])
})

test('an ordinary user runs the server as that user, and root runs that cluster as its owner', async () => {
  const dataDir = makeDir()
  const user = isRoot ? { uid: 65534, gid: 65534 } : undefined
  if (user) chownSync(dataDir, user.uid, user.gid)
  const owner = await startOwner(dataDir, user)
  expect(owner.uid).toBe(user?.uid ?? process.getuid?.())
  await query(owner, 'create table kept as select 3 as n')
  owner.child.kill('SIGTERM')
  expect(await once(owner.child, 'exit')).toEqual([0, null])
  expect(statSync(join(dataDir, 'postgres/data')).uid).toBe(owner.uid)
  expect(await query(await start(dataDir), 'select n from kept')).toEqual([3])
})
