import { once } from 'node:events'
import Pusher from 'pusher'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { FEED_COLLECT_MS } from '../../src/realtime/channel/channel-feed.ts'
import { createTestApp, type TestApp } from '../harness/app/app.ts'
import { buildManualClock } from '../harness/run/manual-clock.ts'
import { waitFor } from '../harness/run/wait.ts'

const apps: TestApp[] = []
afterEach(async () => {
  for (const app of apps.splice(0)) await app[Symbol.asyncDispose]()
})

const KEYS = {
  INTEGRATION_REALTIME_APP_ID: 'app-1',
  INTEGRATION_REALTIME_KEY: 'key-1',
  INTEGRATION_REALTIME_SECRET: 'secret-1',
}

async function start(env: Record<string, string>, isStarted = true): Promise<TestApp> {
  const built = await createTestApp({ env, clock: buildManualClock(Date.now()) })
  apps.push(built)
  if (isStarted) await built.app.start()
  await built.app.realtimeServer?.server()?.ready
  return built
}

function openSocket({ app }: TestApp, key = 'key-1', headers: Record<string, string> = {}): WebSocket {
  const url = new URL(app.baseUrl())
  const webSocket = new WebSocket(`ws://127.0.0.1:${url.port}/app/${key}?protocol=7`, { headers })
  webSocket.on('error', () => {})
  return webSocket
}

describe('the embedded realtime server', () => {
  test('serves the WebSocket and the HTTP API on the port of the service, beyond the rate limit of addresses', async () => {
    const built = await start({ ...KEYS, INTEGRATION_REALTIME_CLUSTER: 'embedded', RATE_LIMIT_PER_MINUTE: '20' })
    const webSocket = openSocket(built)
    const frames: string[] = []
    webSocket.on('message', (data) => frames.push(data.toString()))
    await once(webSocket, 'message')
    webSocket.send('{"event":"pusher:subscribe","data":{"channel":"news"}}')
    await once(webSocket, 'message')
    const { port } = new URL(built.app.baseUrl())
    const sdk = new Pusher({ appId: 'app-1', key: 'key-1', secret: 'secret-1', host: '127.0.0.1', port, useTLS: false })
    const arrived = once(webSocket, 'message')
    for (let n = 0; n < 40; n += 1) expect((await sdk.trigger('news', 'e', n)).status).toBe(200)
    await arrived
    expect(JSON.parse(frames[2]!)).toEqual({ event: 'e', channel: 'news', data: '0' })
    const stranger = new Pusher({ appId: 'app-1', key: 'key-1', secret: 'x', host: '127.0.0.1', port, useTLS: false })
    const statuses: number[] = []
    for (let n = 0; n < 25; n += 1)
      await stranger.trigger('news', 'e', n).catch((error: { status: number }) => statuses.push(error.status))
    expect([...new Set(statuses)]).toEqual([401, 429])
  })

  test('takes its limits and the origins of its pages from the settings', async () => {
    const built = await start({
      ...{ ...KEYS, INTEGRATION_REALTIME_CLUSTER: 'embedded', REALTIME_MAX_CHANNELS: '1' },
      REALTIME_ALLOWED_ORIGINS: 'https://app.example.com',
    })
    const foreign = openSocket(built, 'key-1', { origin: 'https://evil.test' })
    expect((await once(foreign, 'close'))[0]).toBe(4009)
    const webSocket = openSocket(built, 'key-1', { origin: 'https://app.example.com' })
    const frames: { event: string; data: string }[] = []
    webSocket.on('message', (data) => frames.push(JSON.parse(data.toString())))
    await once(webSocket, 'message')
    for (const channel of ['one', 'two'])
      webSocket.send(JSON.stringify({ event: 'pusher:subscribe', data: { channel } }))
    await waitFor('a refusal', () => frames.find(({ event }) => event === 'pusher:subscription_error'))
    expect(frames.filter(({ event }) => event === 'pusher_internal:subscription_succeeded')).toHaveLength(1)
  })

  test('records what happens in its channels for the inspector', async () => {
    const built = await start({ ...KEYS, INTEGRATION_REALTIME_CLUSTER: 'embedded' })
    const webSocket = openSocket(built)
    await once(webSocket, 'message')
    webSocket.send('{"event":"pusher:subscribe","data":{"channel":"news"}}')
    await once(webSocket, 'message')
    const readNames = async () => {
      built.clock.advance(FEED_COLLECT_MS)
      const { body } = await built.admin(
        'GET',
        '/api/v3/realtime/channel-event?filters=channel|eq|news&sort=created_at',
      )
      return body.data
        .map((row: { name: string }) => row.name)
        .sort()
        .join()
    }
    await waitFor('the events', async () => (await readNames()) === 'channel_occupied,subscription_count')
    expect((await built.scrape()).body).toContain(
      'realtime_channel_events_total{name="channel_occupied",outcome="recorded"} 1',
    )
  })

  test('closes its clients with 4100 when the service stops', async () => {
    const built = await start({ ...KEYS, INTEGRATION_REALTIME_CLUSTER: 'embedded' })
    const webSocket = openSocket(built)
    await once(webSocket, 'message')
    const closed = once(webSocket, 'close')
    await built.app.stop()
    expect((await closed)[0]).toBe(4100)
  })

  test('answers 503 before the service has started', async () => {
    const { app } = await start({ ...KEYS, INTEGRATION_REALTIME_CLUSTER: 'embedded' }, false)
    expect((await app.server.inject({ method: 'GET', url: '/apps/app-1/channels' })).statusCode).toBe(503)
  })

  test.each([
    ['no setting', {}],
    ['another cluster', { ...KEYS, INTEGRATION_REALTIME_CLUSTER: 'eu' }],
    ['a missing setting', { INTEGRATION_REALTIME_KEY: 'key-1', INTEGRATION_REALTIME_CLUSTER: 'embedded' }],
  ])('does not run with %s outside development', async (_, env) => {
    const { app } = await start(env, false)
    expect(app.realtimeServer).toBeUndefined()
    expect((await app.server.inject({ method: 'GET', url: '/apps/app-1/channels' })).statusCode).toBe(404)
  })

  test('runs in development with keys that two processes with the same secrets share', async () => {
    const env = { APP_ENV: 'development' }
    const [first, second] = [await start(env, false), await start(env, false)]
    expect(first.app.realtimeServer?.app).toEqual(second.app.realtimeServer?.app)
    expect(first.app.realtimeServer?.app.secret).toMatch(/^[0-9a-f]{64}$/)
    const off = await start({ ...env, INTEGRATION_REALTIME_EMBEDDED: 'false' }, false)
    expect(off.app.realtimeServer).toBeUndefined()
  })
})
