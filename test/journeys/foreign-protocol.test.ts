import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { afterEach, describe, expect, test } from 'vitest'
import { Problem } from '../../src/http/problem/problem.ts'
import { mountProtocol } from '../../src/http/server/mount-protocol.ts'
import { buildUpgradeRouter, type UpgradeRouter } from '../../src/http/server/upgrade.ts'
import { buildPipelineServer } from '../harness/app/pipeline-server.ts'
import { createTestDatabase } from '../harness/database/database.ts'

const closing: (() => PromiseLike<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** Echoes the request, as an example of a foreign handler. */
async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  response.writeHead(201, { 'x-own': 'yes', 'content-type': 'text/plain' })
  response.end(`${request.method} ${request.url} ${Buffer.concat(chunks).toString()}`)
}

async function start(options: {
  handle?: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>
  limit?: () => void
  before?: (server: FastifyInstance) => void
  upgrades?: UpgradeRouter
}): Promise<string> {
  const database = await createTestDatabase()
  closing.push(() => database[Symbol.asyncDispose]())
  const { server } = await buildPipelineServer({
    db: database.db,
    ...(options.upgrades && { upgrades: options.upgrades }),
    before: async (built) => {
      options.before?.(built)
      await mountProtocol(built, {
        prefix: '/api/v3/foreign',
        handle: options.handle ?? echo,
        limit: options.limit ?? (() => {}),
      })
    },
  })
  closing.push(() => server.close())
  await server.listen({ host: '127.0.0.1', port: 0 })
  return `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`
}

describe('a foreign protocol', () => {
  test('reads bodies of any type itself, and sends only its own headers', async () => {
    const url = await start({})
    for (const type of ['application/x-www-form-urlencoded', 'application/json', 'image/png']) {
      const answer = await fetch(`${url}/api/v3/foreign/token?x=1`, {
        method: 'POST',
        headers: { 'content-type': type },
        body: '{"not": json',
      })
      expect(answer.status).toBe(201)
      expect(await answer.text()).toBe('POST /api/v3/foreign/token?x=1 {"not": json')
      expect(answer.headers.get('x-own')).toBe('yes')
      expect(answer.headers.get('x-request-id')).toMatch(/^[\w-]+$/)
      expect(answer.headers.get('x-frame-options')).toBeNull()
    }
  })

  test('serves its prefix and the paths below it, except declared routes', async () => {
    const url = await start({
      before: (server) => server.get('/api/v3/foreign/ours', async () => ({ ours: true })),
    })
    expect((await fetch(`${url}/api/v3/foreign`)).status).toBe(201)
    expect((await fetch(`${url}/api/v3/foreign/a/b`)).status).toBe(201)
    expect(await (await fetch(`${url}/api/v3/foreign/ours`)).json()).toEqual({ ours: true })
    expect((await fetch(`${url}/api/v3/foreigner`)).status).toBe(404)
  })

  test('leaves another method of a declared path to its 405, and serves its own paths beside it', async () => {
    const url = await start({
      before: (server) => {
        server.post('/api/v3/foreign/ours', async () => ({ ours: true }))
        server.get('/api/v3/foreign/ours/:id', async () => ({ ours: true }))
      },
    })
    const refused = await fetch(`${url}/api/v3/foreign/ours`, { method: 'PUT', body: '{' })
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'POST'])
    const answer = await fetch(`${url}/api/v3/foreign/ours/1`, { method: 'DELETE' })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect((await fetch(`${url}/api/v3/foreign/ours/1/2`, { method: 'PUT' })).status).toBe(201)
  })

  test('that throws answers with a fixed text, or closes the connection of a started answer', async () => {
    const secret = new Error('password=hunter2')
    const url = await start({ handle: () => Promise.reject(secret) })
    const answer = await fetch(`${url}/api/v3/foreign`)
    expect(answer.status).toBe(500)
    expect(await answer.text()).toBe('Internal error\n')
    const begun = await start({
      handle: (_, response) => {
        response.writeHead(200, { 'content-length': '10' })
        response.write('half')
        throw secret
      },
    })
    await expect(fetch(`${begun}/api/v3/foreign`).then((response) => response.text())).rejects.toThrow()
  })

  test('is rate limited by address before its handler runs', async () => {
    let isAsked = false
    const url = await start({
      limit: () => {
        throw new Problem('rate_limited', 'Too many.')
      },
      handle: (_, response) => {
        isAsked = true
        response.end()
      },
    })
    expect((await fetch(`${url}/api/v3/foreign`)).status).toBe(429)
    expect(isAsked).toBe(false)
  })
})

describe('an upgrade', () => {
  const ask = async (url: string, path: string) => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port) })
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n`)
    const [head] = (await once(socket, 'data')) as [Buffer]
    return { socket, status: head.toString().split('\r\n', 1)[0] }
  }

  test('is passed to the longest mounted prefix, by whole path segments, with the raw connection', async () => {
    const upgrades = buildUpgradeRouter()
    const seen: string[] = []
    for (const prefix of ['/app', '/app/inner'])
      upgrades.mount(prefix, (_request, socket) => {
        seen.push(prefix)
        socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
        socket.on('data', (chunk: Buffer) => socket.write(`you said ${chunk.toString()}`))
      })
    expect(() => upgrades.mount('/app', () => {})).toThrow('already mounted')
    const url = await start({ upgrades })
    for (const path of ['/app/key?protocol=7', '/app/inner/x']) {
      const { socket, status } = await ask(url, path)
      expect(status).toBe('HTTP/1.1 101 Switching Protocols')
      socket.write('hello')
      const [reply] = (await once(socket, 'data')) as [Buffer]
      expect(reply.toString()).toBe('you said hello')
      socket.end()
      await once(socket, 'close')
    }
    expect(seen).toEqual(['/app', '/app/inner'])
  })

  test('without a handler is served as a plain request', async () => {
    const upgrades = buildUpgradeRouter()
    upgrades.mount('/app', () => {})
    const url = await start({ upgrades })
    const { socket, status } = await ask(url, '/apple')
    expect(status).toBe('HTTP/1.1 404 Not Found')
    socket.destroy()
  })

  test('is ended by the stop of the service, although Node no longer tracks it', async () => {
    const upgrades = buildUpgradeRouter()
    upgrades.mount('/app', (_request, socket) => void socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'))
    const { socket } = await ask(await start({ upgrades }), '/app')
    upgrades.close()
    await once(socket, 'close')
  })
})
