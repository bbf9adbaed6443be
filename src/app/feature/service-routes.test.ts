import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createTestApp, type TestApp, type TestAppOptions } from '../../../test/harness/app/app.ts'
import { TEST_METRICS_TOKEN } from '../../../test/harness/app/test-secrets.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { PIPELINE_LIMIT } from '../../http/server/sockets.ts'

const database = await openForFile(createTestDatabase({ content: 'prepared' }))

const build = (env: Record<string, string> = {}, options: TestAppOptions = {}) =>
  createTestApp({ database, env, ...options })
const scrapeWith = (app: TestApp, authorization?: string) =>
  app.anonymous('GET', '/metrics', undefined, authorization === undefined ? {} : { authorization })

describe('the metrics on the port of the service', () => {
  test('are open in development, with or without a token', async () => {
    for (const METRICS_TOKEN of ['', TEST_METRICS_TOKEN]) {
      await using app = await build({ APP_ENV: 'development', METRICS_TOKEN })
      expect((await scrapeWith(app)).status).toBe(200)
    }
  })

  test.each(['test', 'certification', 'production'])('do not exist in %s without METRICS_TOKEN', async (APP_ENV) => {
    await using app = await build({ APP_ENV, METRICS_TOKEN: '' })
    const missing = await app.anonymous('GET', '/nothing')
    for (const header of [undefined, 'Bearer ', `Bearer ${TEST_METRICS_TOKEN}`]) {
      const answer = await scrapeWith(app, header)
      expect(answer).toMatchObject({ status: 404, body: { code: 'not_found', detail: missing.body.detail } })
    }
  })

  test.each(['test', 'certification', 'production'])(
    'open in %s with METRICS_TOKEN, and are a 404 without',
    async (APP_ENV) => {
      await using app = await build({ APP_ENV })
      expect(await scrapeWith(app, `Bearer ${TEST_METRICS_TOKEN}`)).toMatchObject({
        status: 200,
        headers: { 'cache-control': 'no-store' },
      })
      for (const header of [undefined, 'Bearer another-token-of-metrics', `Bearer ${app.adminToken}`])
        expect(await scrapeWith(app, header)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    },
  )
})

describe('METRICS_PORT', () => {
  test('serves only the metrics, without a token', async () => {
    await using app = await build({ METRICS_PORT: '0', METRICS_TOKEN: '', SIGNALBOX_ROLES: 'maintenance' })
    await app.app.start()
    const base = `http://127.0.0.1:${app.app.metricsPort()}`
    const answer = await fetch(`${base}/metrics`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toContain('text/plain')
    expect(await answer.text()).toContain('webhook_out_deliveries_total')
    for (const path of ['/', '/readyz', '/metrics/', '/api/v3/health', '/docs'])
      expect((await fetch(`${base}${path}`)).status, path).toBe(404)
    const head = await fetch(`${base}/metrics`, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-type')]).toEqual([200, answer.headers.get('content-type')])
    const posted = await fetch(`${base}/metrics`, { method: 'POST', body: 'x' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect((await scrapeWith(app)).status).toBe(404)
  })

  test('is closed when the app stops', async () => {
    const app = await build({ METRICS_PORT: '0', SIGNALBOX_ROLES: 'maintenance' })
    await app.app.start()
    const port = app.app.metricsPort()
    await app[Symbol.asyncDispose]()
    await expect(fetch(`http://127.0.0.1:${port}/metrics`)).rejects.toThrow()
  })
})

describe('readiness', () => {
  test('is 503 until the start has finished, also with a database; liveness is 200', async () => {
    let isStarted = false
    await using app = await build({}, { hasStarted: () => isStarted })
    expect(await app.anonymous('GET', '/readyz')).toMatchObject({ status: 503, body: { status: 'starting' } })
    expect((await app.anonymous('GET', '/livez')).status).toBe(200)
    isStarted = true
    expect(await app.anonymous('GET', '/readyz')).toMatchObject({ status: 200, body: { status: 'ok' } })
  })

  test('queries the database at most once a second', async () => {
    await using app = await build()
    let asked = 0
    const count = () => {
      asked += 1
    }
    database.pool.on('acquire', count)
    const ask = () => Promise.all(Array.from({ length: 50 }, () => app.anonymous('GET', '/readyz')))
    await ask()
    app.clock.advance(999)
    await ask()
    expect(asked).toBe(1)
    app.clock.advance(1)
    await ask()
    database.pool.off('acquire', count)
    expect(asked).toBe(2)
  })
})

describe('the OpenAPI document', () => {
  test('is in memory once for any number of clients that do not read it', async () => {
    await using app = await build({ SIGNALBOX_ROLES: 'api' })
    await app.app.start()
    const { port } = app.app.server.server.address() as AddressInfo
    const size = Number((await app.anonymous('GET', '/openapi.json')).headers['content-length'])
    const responses: ServerResponse[] = []
    app.app.server.server.on('request', (_request, response: ServerResponse) => responses.push(response))
    const before = readHeldBytes()
    const clients = await Promise.all(Array.from({ length: 40 }, () => openUnread(port)))
    for (const client of clients) client.write('GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(PIPELINE_LIMIT))
    await waitFor('answers that wait', () => {
      const areAll = responses.length === clients.length * PIPELINE_LIMIT
      return areAll && responses.every((response) => response.writableEnded)
    })
    const held = readHeldBytes() - before
    for (const client of clients) client.destroy()
    // Of 300 MB of answers the sockets of the system buffer 5 MB each; the process holds one document.
    expect(responses.length * size).toBeGreaterThan(300_000_000)
    expect(held).toBeLessThan(60_000_000)
  })
})

async function openUnread(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

function readHeldBytes(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
