import { once } from 'node:events'
import { createServer, type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { receiveWebhook as receiveExpress } from '../src/express.ts'
import { receiveWebhook as receiveFastify } from '../src/fastify.ts'
import { receiveWebhook as receiveFetch } from '../src/fetch.ts'
import { receiveWebhook as receiveHono } from '../src/hono.ts'
import { receiveWebhook as receiveNext, receivePagesWebhook } from '../src/next.ts'
import type { ReceiveOptions } from '../src/receive-delivery.ts'
import type { Envelope, WebhookVerificationError } from '../src/verify-delivery.ts'
import { BODY, clockAt, deliveryHeaders, ENVELOPE, EVENT_ID, OTHER_SECRET, SECRET } from './delivery-fixture.ts'

type Post = (
  body?: string,
  headers?: Record<string, string | string[]>,
) => Promise<{ status: number; body: Record<string, unknown> }>
type Options = ReceiveOptions<unknown>
type Start = (options: Options) => Promise<Post>

/** Serves on a free loopback port for the length of one test and returns a way to post to it. */
async function serve(handler: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<Post> {
  const server = createServer(handler)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return buildPost((server.address() as AddressInfo).port)
}

function buildPost(port: number): Post {
  return async (body = BODY, headers = deliveryHeaders(body)) => {
    const sent = requestHttp({ port, host: '127.0.0.1', method: 'POST', path: '/hook', agent: false })
    sent.setHeader('content-type', 'application/json')
    for (const [name, value] of Object.entries(headers)) sent.setHeader(name, value)
    sent.end(body)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    const text = Buffer.concat(await response.toArray()).toString()
    return { status: response.statusCode!, body: JSON.parse(text) }
  }
}

type ChainRequest = IncomingMessage & { body?: unknown; rawBody?: unknown }
type Middleware = (request: ChainRequest, response: ServerResponse, next: (error?: unknown) => void) => unknown

/** A chain of `(request, response, next)` with an error handler at its end, as Express runs them. */
function serveChain(...chain: Middleware[]): Promise<Post> {
  return serve((request, response) => {
    const respondError = (error: unknown) => {
      response.statusCode = 500
      response.end(JSON.stringify({ thrown: (error as WebhookVerificationError).reason ?? String(error) }))
    }
    const step = (index: number, error?: unknown): unknown =>
      error ? respondError(error) : chain[index]!(request, response, (next) => step(index + 1, next))
    step(0)
  })
}

/** Parses JSON and throws the bytes away, as `express.json()` does; `keep` is its `verify` hook. */
function parseJson(keep?: (request: ChainRequest, bytes: Buffer) => void): Middleware {
  return async (request, _response, next) => {
    const bytes = Buffer.concat(await request.toArray())
    keep?.(request, bytes)
    request.body = JSON.parse(bytes.toString())
    next()
  }
}

const startExpress: Start = (options) => serveChain(receiveExpress<ChainRequest>(options))

const startFastify: Start = async (options) => {
  const app = fastify()
  await app.register(receiveFastify({ ...options, path: '/hook' }))
  await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(async () => void (await app.close()))
  return buildPost((app.server.address() as AddressInfo).port)
}

/** Turns a handler of web-standard requests into a `Post`. A throw becomes the 500 that every such runtime makes of it. */
function startWeb(handler: (request: Request) => Promise<Response>): Post {
  return async (body = BODY, headers = deliveryHeaders(body)) => {
    const request = new Request('http://localhost/hook', { method: 'POST', body })
    for (const [name, value] of Object.entries(headers)) {
      for (const item of [value].flat()) request.headers.append(name, item)
    }
    const respondThrown = (error: WebhookVerificationError) =>
      Response.json({ thrown: error.reason ?? String(error) }, { status: 500 })
    const response = await handler(request).catch(respondThrown)
    return { status: response.status, body: await response.json() }
  }
}

/** Next turns what an API route throws into a 500; here the chain's error handler does. */
const toNext =
  (receive: (request: ChainRequest, response: ServerResponse) => Promise<void>): Middleware =>
  (request, response, next) =>
    receive(request, response).catch(next)

const toHonoContext = (raw: Request) => ({ req: { raw, arrayBuffer: () => raw.arrayBuffer() } })

const ADAPTERS: [string, Start][] = [
  ['express', startExpress],
  ['fastify', startFastify],
  ['fetch', async (options) => startWeb(receiveFetch(options))],
  ['hono', async (options) => startWeb((request) => receiveHono(options)(toHonoContext(request)))],
  ['next', async (options) => startWeb(receiveNext(options))],
  ['next pages', (options) => serveChain(toNext(receivePagesWebhook<ChainRequest>(options)))],
]

describe.each(ADAPTERS)('%s', (_name, start) => {
  const received: Envelope[] = []
  const refused: string[] = []
  const build = (more: Partial<Options> = {}) => {
    received.length = 0
    refused.length = 0
    const onDelivery = (envelope: Envelope) => received.push(envelope)
    const onRefused = (error: WebhookVerificationError) => refused.push(error.reason)
    return start({ secret: SECRET, now: clockAt(), onDelivery, onRefused, ...more })
  }

  test('passes a genuine delivery to onDelivery, with any white space and letters', async () => {
    const post = await build()
    const spaced = `\n${JSON.stringify({ ...ENVELOPE, note: 'grün ☂ \u0000' }, null, 3)}\r\n`
    expect(await post(spaced)).toEqual({ status: 200, body: { received: true } })
    expect(received).toEqual([{ ...ENVELOPE, note: 'grün ☂ \u0000' }])
    expect(refused).toEqual([])
  })

  test('answers 401 with reason and remedy to a forged, a stale and an unsigned delivery, without onDelivery', async () => {
    const post = await build()
    const forged = await post(BODY, deliveryHeaders(BODY, OTHER_SECRET))
    expect(forged).toMatchObject({ status: 401, body: { reason: 'signature_mismatch' } })
    expect(forged.body.message).toContain('raw bytes')
    expect(await post(BODY, {})).toMatchObject({ status: 401, body: { reason: 'header_missing' } })
    expect(await post('', {})).toMatchObject({ status: 401, body: { reason: 'header_missing' } })
    const stale = await start({ secret: SECRET, now: clockAt(301), onDelivery: () => received.push(ENVELOPE) })
    expect(await stale()).toMatchObject({ status: 401, body: { reason: 'timestamp_too_old' } })
    expect(received).toEqual([])
    expect(refused).toEqual(['signature_mismatch', 'header_missing', 'header_missing'])
  })

  test('a signature header that is sent twice is refused on the real wire', async () => {
    const post = await build()
    const value = deliveryHeaders()['x-service-signature']!
    const doubled = { ...deliveryHeaders(), 'x-service-signature': [value, value] }
    expect(await post(BODY, doubled)).toMatchObject({ status: 401, body: { reason: 'header_malformed' } })
  })

  test('answers 413 over the limit, and accepts a body of exactly the limit', async () => {
    const exact = await build({ maxBodyBytes: BODY.length })
    expect((await exact()).status).toBe(200)
    const small = await build({ maxBodyBytes: BODY.length - 1 })
    expect((await small()).status).toBe(413)
    expect((await small('x'.repeat(300_000), {})).status).toBe(413)
    expect(received).toEqual([])
  })

  test('a signed body that is not an envelope is 400', async () => {
    const post = await build()
    expect(await post('[]')).toMatchObject({ status: 400, body: { reason: 'envelope_malformed' } })
  })

  test('calls seen, then onDelivery once, and remember after success only', async () => {
    const known = new Set<string>()
    let failures = 1
    const post = await build({
      seen: (id) => known.has(id),
      remember: (id) => known.add(id),
      onDelivery: (envelope) => {
        received.push(envelope)
        if (failures-- > 0) throw new Error('database is down')
      },
    })
    expect((await post()).status).toBe(500)
    expect([...known]).toEqual([])
    expect(await post()).toEqual({ status: 200, body: { received: true } })
    expect([...known]).toEqual([EVENT_ID])
    const retry = JSON.stringify({ ...ENVELOPE, attempt: 2 })
    expect(await post(retry)).toEqual({ status: 200, body: { received: true, duplicate: true } })
    expect(received).toHaveLength(2)
  })

  test('a missing secret is a 500, and passed to onRefused', async () => {
    const post = await build({ secret: () => undefined })
    expect((await post()).status).toBe(500)
    expect(refused).toEqual(['secret_missing'])
  })
})

describe('express and bodies read by others', () => {
  const onDelivery = () => undefined
  const receive = receiveExpress<ChainRequest>({ secret: SECRET, now: clockAt(), onDelivery })

  test('after express.json() the error handler gets body_not_raw', async () => {
    const post = await serveChain(parseJson(), receive)
    expect(await post()).toEqual({ status: 500, body: { thrown: 'body_not_raw' } })
  })

  test('after express.json() with a verify hook that keeps rawBody it verifies', async () => {
    const keep = (request: ChainRequest, bytes: Buffer) => {
      request.rawBody = bytes
    }
    const post = await serveChain(parseJson(keep), receive)
    expect((await post()).status).toBe(200)
  })

  test('after express.raw() and after express.text() it verifies', async () => {
    for (const convert of [(bytes: Buffer) => bytes, (bytes: Buffer) => bytes.toString()]) {
      const post = await serveChain(async (request, _response, next) => {
        request.body = convert(Buffer.concat(await request.toArray()))
        next()
      }, receive)
      expect((await post()).status).toBe(200)
    }
  })

  test('a body parser that skipped the request and left {} does not hide the stream', async () => {
    const post = await serveChain((request, _response, next) => {
      request.body = {}
      next()
    }, receive)
    expect((await post()).status).toBe(200)
  })

  test('a missing or malformed secret throws at the start', () => {
    expect(() => receiveExpress({ secret: undefined, onDelivery })).toThrow('not set')
    expect(() => receiveFastify({ secret: 'whsec_', path: '/', onDelivery })).toThrow('whsec_')
  })
})

describe('other frameworks and bodies read by others', () => {
  const options = { secret: SECRET, now: clockAt(), onDelivery: () => undefined }

  test('fastify parses JSON as before outside the plugin', async () => {
    const app = fastify()
    app.post('/other', async (request) => ({ parsed: request.body }))
    await app.register(receiveFastify({ ...options, path: '/hook' }))
    const other = await app.inject({ method: 'POST', url: '/other', payload: { a: 1 } })
    expect(other.json()).toEqual({ parsed: { a: 1 } })
    const hook = await app.inject({ method: 'POST', url: '/hook', payload: BODY, headers: deliveryHeaders() })
    expect(hook.statusCode).toBe(200)
    await app.close()
  })

  test('fastify with a JSON parser of the application keeps bytes inside the plugin', async () => {
    const app = fastify()
    app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, _body, done) =>
      done(null, { lost: 1 }),
    )
    await app.register(receiveFastify({ ...options, path: '/hook' }))
    const headers = { 'content-type': 'application/json', ...deliveryHeaders() }
    expect((await app.inject({ method: 'POST', url: '/hook', payload: BODY, headers })).statusCode).toBe(200)
    await app.close()
  })

  test('hono: a body that an earlier middleware has read comes from Hono’s copy', async () => {
    const post = startWeb(async (raw) => {
      const copy = await raw.arrayBuffer()
      return receiveHono(options)({ req: { raw, arrayBuffer: async () => copy } })
    })
    expect((await post()).status).toBe(200)
  })

  test('hono: the secret may come from the environment of the context', async () => {
    const context = (raw: Request) => ({ ...toHonoContext(raw), env: { SIGNALBOX_SECRET: SECRET } })
    const receive = receiveHono<ReturnType<typeof context>>({ ...options, secret: (c) => c.env.SIGNALBOX_SECRET })
    expect((await startWeb((raw) => receive(context(raw)))()).status).toBe(200)
  })

  test('fetch and next: a request whose body was read is body_not_raw', async () => {
    for (const receive of [receiveFetch(options), receiveNext(options)]) {
      const post = startWeb(async (request) => {
        await request.json()
        return receive(request)
      })
      expect(await post()).toEqual({ status: 500, body: { thrown: 'body_not_raw' } })
    }
  })

  test('next pages: a body Next has parsed is body_not_raw', async () => {
    const receive = receivePagesWebhook<ChainRequest>(options)
    const post = await serveChain(parseJson(), toNext(receive))
    expect(await post()).toEqual({ status: 500, body: { thrown: 'body_not_raw' } })
  })

  test('other methods than POST are 405', async () => {
    const response = await receiveFetch(options)(new Request('http://localhost/hook'))
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
  })
})
