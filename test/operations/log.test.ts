import { execFileSync, spawn } from 'node:child_process'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { LOG_BUFFER_BYTES } from '../../src/app/log/log-output.ts'
import { TEST_METRICS_TOKEN } from '../harness/app/test-secrets.ts'
import { createTestDatabase } from '../harness/database/database.ts'
import { findFreePort } from '../harness/process/port.ts'
import { PROJECT_ROOT, startProcess } from '../harness/process/process.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { BUSY_MS, limit, waitFor } from '../harness/run/wait.ts'

const MAIN = join(PROJECT_ROOT, 'src', 'main.ts')
const LISTENS = /listens on (http:\/\/127\.0\.0\.1:\d+)/

/** Starts the service by a shell that sends its log elsewhere. */
function startWithLog(databaseUrl: string, redirection: string, env: Record<string, string> = {}) {
  return startProcess({
    command: 'bash',
    args: ['-c', `exec "$0" "$1" serve ${redirection}`, process.execPath, MAIN],
    env: { ...buildServiceEnvironment(databaseUrl), ...env },
  })
}

/** A path and a request id that no route serves, and that make a line of the log as long as a client can. */
const LONG_PATH = `/${'nothing'.repeat(28)}`
const LONG_ID = 'i'.repeat(128)
const LINE_BYTES = 500

/** Sends requests that are refused, each of which is a line that is never summed, until more than the buffer is logged. */
async function fillLog(url: string): Promise<void> {
  const headers = { 'x-request-id': LONG_ID }
  const refuse = async () => (await fetch(`${url}${LONG_PATH}`, { headers })).arrayBuffer()
  for (let sent = 0; sent * LINE_BYTES < 1.5 * LOG_BUFFER_BYTES; sent += 50)
    await limit(Promise.all(Array.from({ length: 50 }, refuse)), 60_000, 'the answers to 50 requests')
}

async function readDropped(url: string): Promise<number> {
  const headers = { authorization: `Bearer ${TEST_METRICS_TOKEN}` }
  const text = await (await fetch(`${url}/metrics`, { headers })).text()
  return Number(/^log_lines_lost_total\{reason="dropped"\} (\d+)/m.exec(text)?.[1])
}

async function expectAlive(url: string): Promise<void> {
  const startedAt = performance.now()
  for (const path of ['/livez', '/readyz']) expect((await fetch(`${url}${path}`)).status).toBe(200)
  expect(performance.now() - startedAt).toBeLessThan(BUSY_MS)
}

test('a service starts on a full disk, serves, counts the lines that have no room, and stops in order', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  await using service = startWithLog(database.connectionString, '2>/dev/full')
  const [, url = ''] = await service.waitForOutput(LISTENS)
  await waitFor('readiness', async () => (await fetch(`${url}/readyz`)).status === 200)
  await fillLog(url)
  await expectAlive(url)
  await waitFor('the count of lost lines', async () => (await readDropped(url)) > 0)
  service.signal('SIGTERM')
  expect(await service.ended).toEqual({ code: 0, signal: null })
})

test('a service whose standard output is full too starts and serves', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const port = String(await findFreePort())
  await using service = startWithLog(database.connectionString, '>/dev/full 2>&1', { PORT: port })
  const url = `http://127.0.0.1:${port}`
  await waitFor('readiness', async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.status === 200)
  await expectAlive(url)
  service.signal('SIGTERM')
  expect(await service.ended).toEqual({ code: 0, signal: null })
})

test('a pipe whose reader stalls stops nothing, and one line says how many were lost once it reads again', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const directory = await mkdtemp(join(tmpdir(), 'signalbox log '))
  const path = join(directory, 'log')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const service = startWithLog(database.connectionString, `2>"${path}"`)
  try {
    const [, url = ''] = await service.waitForOutput(LISTENS)
    await waitFor('readiness', async () => (await fetch(`${url}/readyz`)).status === 200)
    await fillLog(url)
    await expectAlive(url)
    await waitFor('the count of lost lines', async () => (await readDropped(url)) > 0)
    let text = ''
    const bytes = Buffer.alloc(LOG_BUFFER_BYTES)
    const lost = await waitFor('the line about lost lines', () => {
      try {
        text += bytes.toString('utf8', 0, readSync(reader, bytes))
      } catch {
        // Nothing is in the pipe now.
      }
      return /\{[^\n]*"log lines lost: see docs\/operations.md, log"[^\n]*\}/.exec(text)?.[0]
    })
    expect(JSON.parse(lost).lines).toBe(await readDropped(url))
    // Every line is whole.
    for (const line of text.slice(0, text.lastIndexOf('\n')).split('\n')) expect(() => JSON.parse(line)).not.toThrow()
    expect((await fetch(`${url}/api/v3/webhook/webhook`)).status).toBe(401)
  } finally {
    await service.kill()
    closeSync(reader)
    await rm(directory, { recursive: true })
  }
})

test('a socket whose reader stalls stops nothing, and the service stops in order within its limit', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const service = spawn(process.execPath, [MAIN, 'serve'], {
    env: { PATH: process.env.PATH, ...buildServiceEnvironment(database.connectionString) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>((resolve) => service.once('exit', resolve))
  try {
    let out = ''
    service.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString()
    })
    // Nobody reads its standard error.
    service.stderr.pause()
    const [, url = ''] = await waitFor('the address', () => LISTENS.exec(out) ?? undefined)
    await waitFor('readiness', async () => (await fetch(`${url}/readyz`)).status === 200)
    await fillLog(url)
    await expectAlive(url)
    await waitFor('the count of lost lines', async () => (await readDropped(url)) > 0)
    service.kill('SIGTERM')
    expect(await limit(ended, 60_000, 'the stop')).toBe(0)
  } finally {
    service.kill('SIGKILL')
  }
})

test('the line of a crash is written before the process ends', async () => {
  const program = `
    import { openLog } from ${JSON.stringify(join(PROJECT_ROOT, 'src', 'app', 'log', 'logger.ts'))}
    const { logger } = openLog({ level: 'info', isTerminal: false })
    process.on('uncaughtExceptionMonitor', (err) => logger.fatal({ err }, 'the process ends'))
    for (let number = 0; number < 100; number += 1) logger.info({ number }, 'before')
    throw new Error('unforeseen')`
  await using ended = startProcess({ args: ['--input-type=module', '-e', program] })
  expect(await ended.ended).toMatchObject({ code: 1 })
  expect(ended.stderr()).toMatch(/"level":"fatal".*"the process ends"/)
  expect(ended.stderr().match(/"msg":"before"/g)).toHaveLength(100)
})

test('successes above the rate are summed in a line, failures are all in the log', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  await using service = startWithLog(database.connectionString, '', { LOG_SUCCESSES_PER_SECOND: '1' })
  const [, url = ''] = await service.waitForOutput(LISTENS)
  const ask = (path: string) => fetch(`${url}${path}`).then((answer) => answer.arrayBuffer())
  await Promise.all(Array.from({ length: 200 }, () => ask('/api/v3/health')))
  await Promise.all(Array.from({ length: 100 }, () => ask('/api/v3/webhook/webhook')))
  const readLines = () =>
    service
      .stderr()
      .split('\n')
      .filter((text) => text.startsWith('{') && text.endsWith('}'))
      .map((text) => JSON.parse(text))
  const summed = await waitFor('every request in the log', () => {
    const lines = readLines()
    const count = lines.filter((line) => line.msg === 'successes summed').reduce((sum, item) => sum + item.lines, 0)
    const single = lines.filter((line) => line.msg === 'request' && line.route === '/api/v3/health').length
    return count > 0 && count + single === 200 ? count : undefined
  })
  expect(readLines().filter((line) => line.msg === 'request' && line.status === 401)).toHaveLength(100)
  const headers = { authorization: `Bearer ${TEST_METRICS_TOKEN}` }
  const text = await (await fetch(`${url}/metrics`, { headers })).text()
  expect(Number(/^log_lines_lost_total\{reason="summed"\} (\d+)/m.exec(text)?.[1])).toBe(summed)
})
