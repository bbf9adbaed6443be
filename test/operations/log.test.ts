import { execFileSync, spawn } from 'node:child_process'
import { on } from 'node:events'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LOG_BUFFER_BYTES } from '../../src/app/log/log-output.ts'
import { TEST_METRICS_TOKEN } from '../harness/app/test-secrets.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { bundleProgram } from '../harness/process/bundled-program.ts'
import { findFreePort } from '../harness/process/port.ts'
import { COMPILE_CACHE, PROJECT_ROOT, startProcess, type TestProcess } from '../harness/process/process.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { BUSY_MS, limit, waitFor } from '../harness/run/wait.ts'

/** Room for the objects of a start: it collects less. */
const YOUNG = '--min-semi-space-size=16'
const LISTENS = /listens on (http:\/\/127\.0\.0\.1:\d+)/

/** Starts the service by a shell that sends its log elsewhere. */
async function startWithLog(databaseUrl: string, redirection: string, env: Record<string, string> = {}) {
  return startProcess({
    command: 'bash',
    args: ['-c', `exec "$0" ${YOUNG} "$1" serve ${redirection}`, process.execPath, await bundleProgram()],
    env: { ...buildServiceEnvironment(databaseUrl), ...env },
  })
}

/** A path and a request id that no route serves, and that make a line of the log as long as a client can. */
const LONG_PATH = `/${'nothing'.repeat(28)}`
const LONG_ID = 'i'.repeat(128)
const LINE_BYTES = 500
const REQUEST = `GET ${LONG_PATH} HTTP/1.1\r\nhost: localhost\r\nx-request-id: ${LONG_ID}\r\n\r\n`

/**
 * Sends requests that are refused, each of which is a line that is never summed, until more than the buffer is logged:
 * some at once through a connection, which takes a tenth of the work of `fetch`.
 */
async function fillLog(url: string): Promise<void> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').setEncoding('latin1')
  try {
    for (let sent = 0; sent * LINE_BYTES < 1.25 * LOG_BUFFER_BYTES; sent += AT_ONCE) {
      socket.write(REQUEST.repeat(AT_ONCE))
      await limit(readAnswers(socket, AT_ONCE), 60_000, `the answers to ${AT_ONCE} requests`)
    }
  } finally {
    socket.destroy()
  }
}

const AT_ONCE = 20

async function readAnswers(socket: Socket, count: number): Promise<void> {
  let text = ''
  for await (const [chunk] of on(socket, 'data', { close: ['close'] })) {
    text += chunk
    // Each of them is small, and ends with its problem.
    if (text.split('HTTP/1.1 404 ').length > count && text.endsWith('}')) return
  }
  throw new Error(`the connection closed after ${text}`)
}

async function readLost(url: string, reason: 'dropped' | 'summed'): Promise<number> {
  const headers = { authorization: `Bearer ${TEST_METRICS_TOKEN}` }
  const text = await (await fetch(`${url}/metrics`, { headers })).text()
  return Number(new RegExp(`^log_lines_lost_total\\{reason="${reason}"\\} (\\d+)`, 'm').exec(text)?.[1])
}

async function expectAlive(url: string): Promise<void> {
  const startedAt = performance.now()
  for (const path of ['/livez', '/readyz']) expect((await fetch(`${url}${path}`)).status).toBe(200)
  expect(performance.now() - startedAt).toBeLessThan(BUSY_MS)
}

test('a service whose outputs are on a full disk starts, serves, counts the lines that have no room, and stops in order', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const port = String(await findFreePort())
  await using service = await startWithLog(database.connectionString, '>/dev/full 2>&1', { PORT: port })
  const url = `http://127.0.0.1:${port}`
  await waitFor('readiness', async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.status === 200)
  await fillLog(url)
  await expectAlive(url)
  await waitFor('the count of lost lines', async () => (await readLost(url, 'dropped')) > 0)
  service.signal('SIGTERM')
  expect(await service.ended).toEqual({ code: 0, signal: null })
})

describe('a service that logs to a pipe', () => {
  let directory: string
  let reader: number
  let database: TestDatabase
  let service: TestProcess
  let url = ''
  beforeAll(async () => {
    database = await createTestDatabase({ content: 'prepared' })
    directory = await mkdtemp(join(tmpdir(), 'signalbox log '))
    const path = join(directory, 'log')
    execFileSync('mkfifo', [path])
    reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    service = await startWithLog(database.connectionString, `2>"${path}"`, { LOG_SUCCESSES_PER_SECOND: '1' })
    url = (await service.waitForOutput(LISTENS))[1] ?? ''
    await waitFor('readiness', async () => (await fetch(`${url}/readyz`)).status === 200)
  })
  afterAll(async () => {
    await service?.kill()
    await database?.[Symbol.asyncDispose]()
    closeSync(reader)
    await rm(directory, { recursive: true })
  })

  const bytes = Buffer.alloc(LOG_BUFFER_BYTES)
  /** What was read from the pipe. */
  let text = ''
  function read(): string {
    try {
      text += bytes.toString('utf8', 0, readSync(reader, bytes))
    } catch {
      // Nothing is in the pipe now.
    }
    return text
  }

  test('sums successes above the rate in a line, and logs each failure', async () => {
    const ask = (path: string) => fetch(`${url}${path}`).then((answer) => answer.arrayBuffer())
    await Promise.all(Array.from({ length: 200 }, () => ask('/api/v3/health')))
    await Promise.all(Array.from({ length: 100 }, () => ask('/api/v3/webhook/webhook')))
    const readLines = () =>
      read()
        .split('\n')
        .filter((line) => line.startsWith('{') && line.endsWith('}'))
        .map((line) => JSON.parse(line))
    const summed = await waitFor('every request in the log', () => {
      const lines = readLines()
      const count = lines.filter((line) => line.msg === 'successes summed').reduce((sum, item) => sum + item.lines, 0)
      const single = lines.filter((line) => line.msg === 'request' && line.route === '/api/v3/health').length
      const failed = lines.filter((line) => line.msg === 'request' && line.status === 401).length
      return count > 0 && count + single === 200 && failed === 100 ? count : undefined
    })
    expect(await readLost(url, 'summed')).toBe(summed)
  })

  test('goes on when the reader stalls, and says in one line how many were lost once it reads again', async () => {
    await fillLog(url)
    await expectAlive(url)
    await waitFor('the count of lost lines', async () => (await readLost(url, 'dropped')) > 0)
    text = text.slice(text.lastIndexOf('\n') + 1)
    const lost = await waitFor(
      'the line about lost lines',
      () => /\{[^\n]*"log lines lost: see docs\/operations.md, log"[^\n]*\}/.exec(read())?.[0],
    )
    expect(JSON.parse(lost).lines).toBe(await readLost(url, 'dropped'))
    // Every line is whole.
    for (const line of text.slice(0, text.lastIndexOf('\n')).split('\n')) expect(() => JSON.parse(line)).not.toThrow()
    expect((await fetch(`${url}/api/v3/webhook/webhook`)).status).toBe(401)
  })
})

test('a socket whose reader stalls stops nothing, and the service stops in order within its limit', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const service = spawn(process.execPath, [YOUNG, await bundleProgram(), 'serve'], {
    env: {
      ...{ PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE },
      ...buildServiceEnvironment(database.connectionString),
    },
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
    await waitFor('the count of lost lines', async () => (await readLost(url, 'dropped')) > 0)
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
