import { once } from 'node:events'
import { createServer, type IncomingMessage, request as requestHttp, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import * as forExpress from '../src/express.ts'
import * as forFastify from '../src/fastify.ts'
import * as forHono from '../src/hono.ts'
import * as forNext from '../src/next.ts'
import { createSso, type Sso } from '../src/sso.ts'
import { buildJwt, type ServiceDouble, startServiceDouble } from './service-double.ts'

const ORIGIN = 'http://b.localhost:4002'
const EXPIRES = Math.floor(Date.UTC(2100, 0) / 1000)
const SESSION = buildJwt({ sub: 'ada', exp: EXPIRES })
const TOKEN = buildJwt({ next: '/orders' })

let service: ServiceDouble

beforeAll(async () => {
  service = await startServiceDouble()
})
afterAll(() => service[Symbol.asyncDispose]())
beforeEach(() => {
  service.calls.length = 0
  service.answer = { status: 200, body: JSON.stringify({ jwt: SESSION }) }
})

/** An answer over HTTP. */
interface Answer {
  status: number
  headers: IncomingMessage['headers']
  body: string
}

type Send = (method: string, target: string, headers?: Record<string, string>) => Promise<Answer>
type Start = (sso: Sso) => Promise<Send>

function buildSend(server: Server): Send {
  return async (method, path, headers = {}) => {
    const { port } = server.address() as AddressInfo
    const sent = requestHttp({ host: '127.0.0.1', port, method, path, headers, agent: false })
    sent.end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    const body = Buffer.concat(await response.toArray()).toString()
    return { status: response.statusCode ?? 0, headers: response.headers, body }
  }
}

async function listen(server: Server): Promise<Send> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return buildSend(server)
}

/** Serves a handler of web-standard requests, as the runtimes of Hono and Next do. */
function serveWeb(handle: (request: Request) => Response | Promise<Response>): Promise<Send> {
  return listen(
    createServer(async (request: IncomingMessage, response: ServerResponse) => {
      const headers = Object.entries(request.headers).flatMap(([name, value]): [string, string][] =>
        [value ?? []].flat().map((item) => [name, item]),
      )
      const answer = await handle(new Request(`${ORIGIN}${request.url}`, { method: request.method ?? 'GET', headers }))
      response.writeHead(answer.status, [...answer.headers].flat())
      response.end(await answer.text())
    }),
  )
}

const startExpress: Start = (sso) => {
  const app = express()
  const inner = express.Router()
  inner.use(forExpress.receiveHandshake(sso))
  inner.get('/app', (request, response) => void response.send(`app ${forExpress.readToken(sso, request) ?? 'nobody'}`))
  app.use('/mounted', inner)
  app.use(forExpress.receiveHandshake(sso))
  app.post('/sign-out', forExpress.signOut(sso, '/goodbye'))
  app.get('/app', (request, response) => void response.send(`app ${forExpress.readToken(sso, request) ?? 'nobody'}`))
  return listen(createServer(app))
}

const startFastify: Start = async (sso) => {
  const app = fastify()
  await app.register(forFastify.receiveHandshake(sso))
  app.post('/sign-out', forFastify.signOut(sso, '/goodbye'))
  for (const path of ['/app', '/mounted/app'])
    app.get(path, async (request) => `app ${forFastify.readToken(sso, request) ?? 'nobody'}`)
  await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(async () => void (await app.close()))
  return buildSend(app.server)
}

const startHono: Start = (sso) => {
  const app = new Hono()
  app.use(forHono.receiveHandshake(sso))
  app.post('/sign-out', forHono.signOut(sso, '/goodbye'))
  for (const path of ['/app', '/mounted/app'])
    app.get(path, (context) => context.text(`app ${sso.readToken(context.req.raw) ?? 'nobody'}`))
  return serveWeb((request) => app.fetch(request))
}

/** Next runs its proxy first, and the route handler when that returns nothing. */
const startNext: Start = (sso) => {
  const proxy = forNext.receiveHandshake(sso)
  const POST = forNext.signOut(sso, '/goodbye')
  return serveWeb(async (request) => {
    const answer = await proxy(request)
    if (answer) return answer
    const { pathname } = new URL(request.url)
    if (pathname === '/sign-out' && request.method === 'POST') return POST(request)
    return new Response(`app ${sso.readToken(request) ?? 'nobody'}`)
  })
}

describe.each<[string, Start]>([
  ['express', startExpress],
  ['fastify', startFastify],
  ['hono', startHono],
  ['next', startNext],
])('%s', (_name, start) => {
  const open = () => start(createSso({ service: service.url, origin: ORIGIN }))

  test('exchanges a token, sets two cookies and redirects', async () => {
    const send = await open()
    const answer = await send('GET', `/app?a=1&sso_token=${TOKEN}`, { 'user-agent': 'Browser/1' })
    expect([answer.status, answer.headers.location, answer.body]).toEqual([303, `${ORIGIN}/orders`, ''])
    expect(answer.headers['set-cookie']).toEqual([
      expect.stringMatching(/^signalbox_session=[^;]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/),
      'signalbox_landings=1; Path=/; Max-Age=5; HttpOnly; SameSite=Lax',
    ])
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(answer.headers['referrer-policy']).toBe('no-referrer')
    expect(service.calls).toMatchObject([
      { body: { token: TOKEN }, headers: { origin: ORIGIN, 'user-agent': 'Browser/1' } },
    ])
  })

  test('redirects to the clean URL with an error when the exchange fails', async () => {
    service.answer = { status: 401, body: '{}' }
    const send = await open()
    const answer = await send('GET', `/app?a=1&sso_token=${TOKEN}`)
    expect([answer.status, answer.headers.location]).toEqual([303, `${ORIGIN}/app?a=1&sso_error=exchange_failed`])
    expect(answer.headers['set-cookie']).toHaveLength(1)
  })

  test('leaves other requests to the app, with the token of the cookie', async () => {
    const send = await open()
    expect(await send('GET', '/app?a=1')).toMatchObject({ status: 200, body: 'app nobody' })
    const headers = { cookie: `signalbox_session=${SESSION}` }
    expect(await send('GET', '/app', headers)).toMatchObject({ status: 200, body: `app ${SESSION}` })
    expect(service.calls).toEqual([])
  })

  test('keeps the whole path below a mounted router', async () => {
    service.answer = { status: 401, body: '{}' }
    const send = await open()
    const answer = await send('GET', `/mounted/app?sso_token=${TOKEN}`)
    expect(answer.headers.location).toBe(`${ORIGIN}/mounted/app?sso_error=exchange_failed`)
  })

  test('does not follow a request target of two slashes to another host', async () => {
    service.answer = { status: 401, body: '{}' }
    const send = await open()
    const answer = await send('GET', `//evil.test/?sso_token=${TOKEN}`)
    expect(answer.headers.location).toBe(`${ORIGIN}//evil.test/?sso_error=exchange_failed`)
  })

  test('signs out by POST from its own page, and by nothing else', async () => {
    const send = await open()
    const cookie = `signalbox_session=${SESSION}`
    expect((await send('POST', '/sign-out', { cookie, origin: 'http://evil.test' })).status).toBe(403)
    expect(service.calls).toEqual([])
    const answer = await send('POST', '/sign-out', { cookie, origin: ORIGIN })
    expect([answer.status, answer.headers.location]).toEqual([303, `${ORIGIN}/goodbye`])
    expect(answer.headers['set-cookie']).toEqual(['signalbox_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax'])
    expect(service.calls).toMatchObject([{ path: '/api/v3/auth/session/revoke', body: { family: true } }])
  })
})

test.each([
  ['the target of a proxy', 'http://evil.test/?sso_token=x'],
  ['the target of OPTIONS', '*'],
])('a node request with %s is left to the app', async (_name, url) => {
  const sso = createSso({ service: service.url, origin: ORIGIN })
  let continued = 0
  const response = { statusCode: 0, setHeader: () => undefined, end: () => undefined }
  await forExpress.receiveHandshake(sso)({ method: 'GET', url, headers: {} }, response, () => {
    continued += 1
  })
  expect([continued, response.statusCode]).toEqual([1, 0])
})
