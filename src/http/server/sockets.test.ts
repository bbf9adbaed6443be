import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { limit, waitFor } from '../../../test/harness/run/wait.ts'
import { buildIdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import { buildServer, type ServerOptions } from './server.ts'
import { PIPELINE_LIMIT } from './sockets.ts'
import { buildUpgradeRouter } from './upgrade.ts'

const opened: { destroy(): void }[] = []
let server: FastifyInstance | undefined

afterEach(async () => {
  for (const socket of opened.splice(0)) socket.destroy()
  await server?.close()
})

async function start(options: Partial<ServerOptions> & { logged?: string[] } = {}) {
  const { logged = [], ...rest } = options
  const clock = buildManualClock()
  server = await buildServer({
    logger: pino({ level: 'warn' }, { write: (line) => logged.push(line) }),
    clock,
    ids: buildIdMaker(clock, systemRandom),
    trustProxy: false,
    baseUrl: () => 'http://service.test',
    ...rest,
  })
  return { server, clock }
}

/** Opens a connection that does not read until `resume`. */
async function open(to: FastifyInstance): Promise<Socket> {
  const { port } = to.server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  opened.push(socket)
  await once(socket, 'connect')
  return socket
}

const listen = (instance: FastifyInstance) => instance.listen({ port: 0, host: '127.0.0.1' })
const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`

/** Reads until the peer closes. */
async function readAll(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  await limit(once(socket, 'close'), 20_000, 'the end of the connection')
  return text
}

describe('a client that does not read its answer', () => {
  test('is disconnected after the idle limit, and its answer is released', async () => {
    // Far longer than the process stands still between two of its steps.
    const { server } = await start({ socketIdleLimitMs: 1_000 })
    const answer = Buffer.alloc(64 * 1_048_576, 'a')
    server.get('/large', () => answer)
    await listen(server)
    const accepted = once(server.server, 'connection') as Promise<[Socket]>
    const client = await open(server)
    const [held] = await accepted
    client.write(get('/large'))
    await waitFor('an answer that waits', () => held.writableLength > 0)
    await limit(once(held, 'close'), 20_000, 'the end of the connection')
    expect((await readAll(client)).length).toBeLessThan(answer.length)
  })

  test('has at most the limit of pipelined requests in flight, and is closed beyond it', async () => {
    const { server } = await start()
    const gate = Promise.withResolvers<string>()
    let worked = 0
    server.get('/slow', () => {
      worked += 1
      return gate.promise
    })
    await listen(server)
    const client = await open(server)
    client.write(get('/slow').repeat(1_000))
    await limit(once(client.resume(), 'close'), 20_000, 'the end of the connection')
    expect(worked).toBe(PIPELINE_LIMIT)
    gate.resolve('late')
  })

  test('that reads may pipeline the limit repeatedly, and gets the answers in order', async () => {
    const { server } = await start()
    let count = 0
    server.get('/count', () => {
      count += 1
      return `<${count}>`
    })
    await listen(server)
    const client = await open(server)
    let text = ''
    client.on('data', (chunk) => {
      text += chunk
    })
    for (const round of [1, 2, 3]) {
      client.write(get('/count').repeat(PIPELINE_LIMIT))
      await waitFor('the answers of the round', () => text.includes(`<${round * PIPELINE_LIMIT}>`))
    }
    expect([...text.matchAll(/<(\d+)>/g)].map(([, number]) => Number(number))).toEqual(
      Array.from({ length: 3 * PIPELINE_LIMIT }, (_, index) => index + 1),
    )
  })
})

test('a connection that sends nothing, or half a request, is closed', async () => {
  const { server } = await start({ socketIdleLimitMs: 200 })
  await listen(server)
  const [silent, halved] = [await open(server), await open(server)]
  halved.write('GET / HTTP/1.1\r\nhost:')
  await Promise.all([readAll(silent), readAll(halved)])
})

test('an upgraded connection may be idle for longer than one of HTTP', async () => {
  const upgrades = buildUpgradeRouter()
  upgrades.mount('/echo', (_request, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
    socket.pipe(socket)
  })
  const { server } = await start({ socketIdleLimitMs: 500, upgrades })
  await listen(server)
  const client = await open(server)
  let text = ''
  client.on('data', (chunk) => {
    text += chunk
  })
  client.write('GET /echo HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
  await waitFor('the other protocol', () => text.includes('101'))
  const silentSince = performance.now()
  await waitFor('a silence of five times the limit', () => performance.now() - silentSince > 2_500)
  client.write('still here')
  await waitFor('the echo', () => text.endsWith('still here'))
  upgrades.close()
})

test('the limits are 30 s for a request, 20 s for its headers and 72 s for an idle connection', async () => {
  const { server } = await start()
  expect(server.server).toMatchObject({
    requestTimeout: 30_000,
    headersTimeout: 20_000,
    keepAliveTimeout: 72_000,
    timeout: 30_000,
    maxConnections: 2_000,
  })
})

test('connections over the limit are closed at once and logged once a minute, and a free slot is reused', async () => {
  const logged: string[] = []
  const { server, clock } = await start({ maxConnections: 2, logged })
  server.get('/', () => 'here')
  await listen(server)
  const held = [await open(server), await open(server)]
  await Promise.all(Array.from({ length: 5 }, async () => readAll(await open(server))))
  clock.advance(60_000)
  await readAll(await open(server))
  expect(logged.map((line) => JSON.parse(line))).toMatchObject([
    { msg: expect.stringContaining('connections refused'), refused: 1, max_connections: 2 },
    { msg: expect.stringContaining('connections refused'), refused: 5 },
  ])
  held[0]?.destroy()
  await waitFor('a free place', async () => {
    const client = await open(server)
    client.end('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    return (await readAll(client)).includes('here')
  })
})

describe('idle connections of one address', () => {
  test('give way to new ones of the same address, and another address is served', async () => {
    const { server } = await start({ maxConnections: 128 })
    const gate = Promise.withResolvers<string>()
    server.get('/wait', () => gate.promise)
    server.get('/fast', () => 'fast')
    await listen(server)
    const busy = await open(server)
    const answer = readAll(busy)
    busy.write('GET /wait HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    const idle = []
    for (let count = 0; count < 31; count += 1) idle.push(await open(server))
    const ended = once(idle[0]!, 'close')
    const fresh = await open(server)
    await limit(ended, 20_000, 'the end of the oldest idle connection')
    fresh.write('GET /fast HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    expect(await readAll(fresh)).toContain('200 OK')
    gate.resolve('done')
    expect(await answer).toContain('done')
    expect(idle.filter(({ destroyed }) => destroyed)).toHaveLength(1)
  })
})
