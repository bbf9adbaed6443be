import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { buildListeningLogger } from '../../../test/harness/app/listening-logger.ts'
import { DEV_PAGE_PATH } from '../../identity/engine/embedded/dev-provider.ts'
import { SINK_PATH } from '../../webhook/sink/sink.ts'

const ROUTES = [
  'GET /auth/mail',
  `GET ${DEV_PAGE_PATH}`,
  `GET ${DEV_PAGE_PATH}/user`,
  `POST ${SINK_PATH}`,
  'GET /metrics',
]

const SINK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

let app: TestApp
let port: number

beforeAll(async () => {
  const env = { APP_ENV: 'development', METRICS_PORT: '0', TRUST_PROXY: 'loopback', WEBHOOK_SINK_SECRET: SINK_SECRET }
  app = await createTestApp({ env })
  await app.app.start()
  port = Number(new URL(app.app.baseUrl()).port)
})
afterAll(() => app[Symbol.asyncDispose]())

/** Asks over a socket of its own with exactly these headers: `fetch` writes `Host` itself. */
function ask(route: string, headers: Record<string, string>, at = port): Promise<number> {
  const [method, path] = route.split(' ') as [string, string]
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port: at, method, path, headers, agent: false }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode ?? 0))
    })
    asked.on('error', reject).end()
  })
}

describe.each(ROUTES)('%s in development', (route) => {
  test('answers a user at this machine', async () => {
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`])
      expect(await ask(route, { host }), host).not.toBe(404)
  })

  test('does not exist for a page of another name that was bound to loopback (DNS rebinding)', async () => {
    for (const host of [`evil.example:${port}`, 'localhost.evil.example', '192.168.1.2'])
      expect(await ask(route, { host }), host).toBe(404)
  })

  test('does not exist behind a proxy of the same machine, whatever address the proxy names', async () => {
    for (const [name, value] of [
      ['x-forwarded-for', '127.0.0.1'],
      ['x-forwarded-host', 'localhost'],
      ['x-real-ip', '127.0.0.1'],
      ['forwarded', 'for=127.0.0.1'],
      ['via', '1.1 proxy'],
      ['cf-connecting-ip', '127.0.0.1'],
    ] as const)
      expect(await ask(route, { host: `localhost:${port}`, [name]: value }), name).toBe(404)
  })
})

test('the metrics on METRICS_PORT answer this machine only in development', async () => {
  const at = app.app.metricsPort() ?? 0
  expect(await ask('GET /metrics', { host: `127.0.0.1:${at}` }, at)).toBe(200)
  expect(await ask('GET /metrics', { host: `evil.example:${at}` }, at)).toBe(404)
  expect(await ask('GET /metrics', { host: `127.0.0.1:${at}`, via: '1.1 proxy' }, at)).toBe(404)
})

test('other routes answer through a proxy and under other names', async () => {
  const headers = { host: 'app.example.com', 'x-forwarded-for': '127.0.0.1' }
  for (const route of ['GET /livez', 'GET /docs', 'GET /auth/sign-in'])
    expect(await ask(route, headers), route).toBe(200)
})

test('a refusal is logged once a minute, with what gave the request away', async () => {
  const lines: string[] = []
  const logger = buildListeningLogger((message) => lines.push(message))
  await using other = await createTestApp({ env: { APP_ENV: 'development' }, database: app.database, logger })
  const refuse = () => other.anonymous('GET', '/auth/mail', undefined, { host: 'evil.example' })
  const count = () => lines.filter((line) => line.startsWith('request to a route of development refused')).length
  await refuse()
  expect((await refuse()).status).toBe(404)
  expect(count()).toBe(1)
  other.clock.advance(60_000)
  await refuse()
  expect(count()).toBe(2)
})

test('the sink of certification takes deliveries from outside', async () => {
  const env = { APP_ENV: 'certification', WEBHOOK_SINK_SECRET: SINK_SECRET }
  await using other = await createTestApp({ env, database: app.database })
  const headers = { host: 'signalbox.example.com', 'x-forwarded-for': '203.0.113.7' }
  expect((await other.anonymous('POST', SINK_PATH, '{}', headers)).status).toBe(401)
})
