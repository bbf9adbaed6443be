import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import nodeArguments from '../../bin/node-arguments.json' with { type: 'json' }
import { isProcessAlive } from '../../src/postgres/embedded/embedded-lock.ts'
import { createTestDatabase } from '../harness/database/database.ts'
import { findDataRoot } from '../harness/process/data-root.ts'
import { isFree } from '../harness/process/port.ts'
import { PROJECT_ROOT, startProcess, type TestProcess } from '../harness/process/process.ts'
import { seedDataDir } from '../harness/process/seeded-data-dir.ts'
import { buildServiceEnvironment, callService, isReady } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

const LAUNCHER = join(PROJECT_ROOT, 'bin', 'signalbox.mjs')
const MAIN = join(PROJECT_ROOT, 'src', 'main.ts')

/** The processes of a service that was started by its launcher. */
interface Launched extends TestProcess {
  url: string
  port: number
  /** The service itself, a child of the launcher. */
  servicePid: number
}

async function launch(env: Record<string, string>): Promise<Launched> {
  const started = startProcess({ args: [LAUNCHER, 'serve'], env: { LOG_LEVEL: 'info', ...env } })
  try {
    const [, port] = await started.waitForOutput(/Server listening at http:\/\/127\.0\.0\.1:(\d+)/)
    const url = `http://127.0.0.1:${port}`
    await waitFor('readiness', () => isReady(url))
    return { ...started, url, port: Number(port), servicePid: await findChild(started.pid) }
  } catch (error) {
    // The service stops when its launcher is gone, and takes no more from the tests that follow.
    await started.kill()
    throw error
  }
}

async function findChild(parent: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid='])
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
  const [child = 0] = rows.find(([, ppid]) => ppid === parent) ?? []
  expect(child).toBeGreaterThan(1)
  return child
}

test.concurrent('kill -9 of the launcher stops the service in order, frees its port, and leaves its database closed', async () => {
  await using database = await createTestDatabase()
  await using launched = await launch(buildServiceEnvironment(database.connectionString))
  expect(launched.servicePid).not.toBe(launched.pid)
  launched.signal('SIGKILL')
  // The output of the service ends with it, so `ended` waits for both.
  expect(await launched.ended).toEqual({ code: null, signal: 'SIGKILL' })
  expect(launched.stderr()).toContain('the launcher has exited; stopping.')
  expect(launched.stdout()).toMatch(/Stopping \(SIGTERM\)\.\nStopped\.\n$/)
  // A process closes its output shortly before its end, and PostgreSQL notices the end of a connection after it.
  await waitFor('the end of the service', () => !isProcessAlive(launched.servicePid))
  expect(await isFree(launched.port)).toBe(true)
  const connected = `select from pg_stat_activity where datname = current_database() and application_name like 'signalbox%'
       and application_name not like 'signalbox test%'`
  await waitFor('the end of its connections', async () => (await database.pool.query(connected)).rows.length === 0)
})

// test/bin/bootstrap.test.ts has the passing on of each signal, and the tests here the stop after SIGTERM and SIGINT.
test.concurrent('kill -9 of the launcher leaves no embedded PostgreSQL and a clean data directory; SIGHUP to the pid of the next one alone stops its service in order, with its exit code', async () => {
  const parent = await mkdtemp(join(await findDataRoot(), 'signalbox launcher '))
  const dataDir = join(parent, 'data')
  try {
    await seedDataDir(dataDir)
    const env = { PORT: '0', SIGNALBOX_DATA_DIR: dataDir }
    await using first = await launch(env)
    const pidFile = join(dataDir, 'postgres', 'data', 'postmaster.pid')
    const postmaster = Number((await readFile(pidFile, 'utf8')).split('\n')[0])
    first.signal('SIGKILL')
    await first.ended
    await waitFor('the end of PostgreSQL', () => !isProcessAlive(postmaster))
    expect(await stat(pidFile).catch(() => 'gone')).toBe('gone')
    await waitFor('the end of the service', () => !isProcessAlive(first.servicePid))
    await using second = await launch(env)
    expect(second.stdout() + second.stderr()).not.toContain('left behind')
    second.signal('SIGHUP')
    expect(await second.ended).toEqual({ code: 0, signal: null })
    expect(second.stdout()).toContain('Stopping (SIGHUP).\nStopped.\n')
  } finally {
    await rm(parent, { recursive: true, force: true })
  }
})

test.concurrent('kill -9 of the launcher under a start ends the start as well', async () => {
  await using database = await createTestDatabase()
  const holder = await database.pool.connect()
  // The lock under which one process migrates and the others wait.
  await holder.query('select pg_advisory_lock(7320114)')
  const env = buildServiceEnvironment(database.connectionString)
  await using started = startProcess({ args: [LAUNCHER, 'serve'], env })
  const lock = `select 1 from pg_locks where locktype = 'advisory' and not granted and objid = 7320114
    and database = (select oid from pg_database where datname = current_database())`
  await waitFor('the start that waits', async () => (await database.pool.query(lock)).rows.length === 1)
  const service = await findChild(started.pid)
  started.signal('SIGKILL')
  await started.ended
  await waitFor('the end of the start', () => !isProcessAlive(service))
  holder.release(true)
})

test.concurrent('a Ctrl-C that the launcher passes on over a second late is not taken for a second one', async () => {
  await using database = await createTestDatabase()
  await using launched = await launch(buildServiceEnvironment(database.connectionString))
  const holder = await database.pool.connect()
  // A request that waits for this lock makes the stop last.
  await holder.query('begin; lock table "user" in access exclusive mode')
  const body = { email: 'nobody@example.com', password: 'correct horse battery' }
  const answer = callService(launched, { method: 'POST', path: '/api/v3/auth/login/local', body })
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  await waitFor('the request', async () => (await database.pool.query(waiting)).rows.length === 1)

  launched.signal('SIGSTOP')
  process.kill(launched.servicePid, 'SIGINT')
  launched.signal('SIGINT')
  await launched.waitForOutput(/Stopping \(SIGINT\)/)
  const stoppedAt = performance.now()
  await waitFor('a late signal', () => performance.now() - stoppedAt > 1_200)
  launched.signal('SIGCONT')
  const passedAt = performance.now()
  await waitFor('the late signal at the service', () => performance.now() - passedAt > 500)
  await holder.query('rollback')
  holder.release()
  expect((await answer).status).toBe(401)
  expect(await launched.ended).toEqual({ code: 0, signal: null })
  expect(launched.stdout()).toContain('Stopping (SIGINT).\nStopped.\n')
})

test.concurrent('npx signalbox prints its answer and no warning about engines on a Node that runs the launcher alone', async () => {
  const manifest = JSON.parse(await readFile(join(PROJECT_ROOT, 'package.json'), 'utf8'))
  // npm compares the Node that it runs on; the launcher brings the Node that the service needs.
  expect(manifest.engines).toEqual({ node: `20 || 22 || ${manifest.config.runtime}` })
  // As in a shell: npm puts the Node of this project first.
  const path = (process.env.PATH ?? '').split(':').filter((folder) => !folder.includes('node_modules'))
  const options = { cwd: PROJECT_ROOT, env: { ...process.env, PATH: path.join(':') } }
  const { stdout, stderr } = await promisify(execFile)('npx', ['signalbox', '--version'], options)
  expect(stdout).toBe(`${manifest.version}\n`)
  expect(stderr).not.toMatch(/EBADENGINE|Unsupported engine/)
})

test.concurrent('the direct start of the documentation has no launcher: it serves, stops by its pid, and outlives its parent', async () => {
  await using database = await createTestDatabase()
  const text = await readFile(join(PROJECT_ROOT, 'docs', 'deployment.md'), 'utf8')
  expect(text).toContain(`node ${nodeArguments.join(' ')} src/main.js serve`)
  const directory = await mkdtemp(join(tmpdir(), 'signalbox direct '))
  try {
    const pidFile = join(directory, 'pid')
    const command = `"${process.execPath}" ${nodeArguments.join(' ')} "${MAIN}" serve & echo $! > "${pidFile}"; read -r _`
    await using shell = startProcess({
      command: '/bin/sh',
      args: ['-c', command],
      env: buildServiceEnvironment(database.connectionString),
    })
    const [, port] = await shell.waitForOutput(/Server listening at http:\/\/127\.0\.0\.1:(\d+)/)
    const url = `http://127.0.0.1:${port}`
    await waitFor('readiness', () => isReady(url))
    shell.signal('SIGKILL')
    const pid = Number(await readFile(pidFile, 'utf8'))
    expect(await isReady(url)).toBe(true)
    process.kill(pid, 'SIGTERM')
    await waitFor('the end of the service', () => !isProcessAlive(pid))
    expect(shell.stdout()).toContain('Stopping (SIGTERM).')
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})
