import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { request } from 'undici'
import { expect, test } from 'vitest'
import { startProgram } from '../child-process.ts'
import type { EventLoad, EventLoadResult } from '../publisher.ts'
import type { SinkQuestion, SinkState } from '../sink.ts'
import { measureProduct } from './load.ts'
import type { ProductName } from './products.ts'

const TOKEN = 'token of the operator'

/** Members that the calls of the three products have. */
interface Body {
  name?: string
  url: string
  type?: string
  topics?: string[]
  config: { url: string }
  eventType?: string
  event_type?: string
  topic?: string
  tenant_id: string
  endpoint_id: string
  payload?: unknown
  data?: unknown
}

interface Call {
  method: string
  path: string
  body: Body
}

/** State of a simulated server: URLs by the id of what has them, and what is left of the rows that were made. */
interface State {
  made: number
  urls: Map<string, string>
  left: Set<string>
}

/** Answer of a call: its body, and for a publication where the payload goes. */
interface Answer {
  status: number
  body: unknown
  delivers?: { url: string | undefined; payload: unknown }
}

/** One handler for each documented call; undefined for any other. */
const SIMULATED: Record<Exclude<ProductName, 'signalbox'>, (state: State, call: Call) => Answer | undefined> = {
  svix: (state, { method, path, body }) => {
    const { urls, left } = state
    const [, app = '', rest] = /^\/api\/v1\/app\/(?:([^/]+)\/)?(endpoint\/|msg\/)?$/.exec(path) ?? []
    if (method === 'POST' && path === '/api/v1/app/' && typeof body.name === 'string') {
      const id = `app_${state.made++}`
      left.add(id)
      return { status: 201, body: { id, name: body.name } }
    }
    if (method === 'POST' && rest === 'endpoint/' && left.has(app)) {
      urls.set(app, body.url)
      return { status: 201, body: { id: 'ep_1', url: body.url } }
    }
    if (method === 'POST' && rest === 'msg/' && body.eventType === 'bench-order.create')
      return { status: 202, body: { id: 'msg_1' }, delivers: { url: urls.get(app), payload: body.payload } }
    return method === 'DELETE' && left.delete(app) ? { status: 204, body: undefined } : undefined
  },
  outpost: ({ urls, left }, { method, path, body }) => {
    const [, tenant = '', rest] = /^\/api\/v1\/tenants\/([^/]+)(\/destinations)?$/.exec(path) ?? []
    if (method === 'PUT' && tenant !== '' && !rest) {
      left.add(tenant)
      return { status: 201, body: { id: tenant } }
    }
    if (method === 'POST' && rest && left.has(tenant) && body.type === 'webhook' && body.topics?.length === 1) {
      urls.set(tenant, body.config.url)
      return { status: 201, body: { id: 'des_1' } }
    }
    if (method === 'POST' && path === '/api/v1/publish' && body.topic === 'bench-order.create')
      return { status: 202, body: { id: 'evt_1' }, delivers: { url: urls.get(body.tenant_id), payload: body.data } }
    return method === 'DELETE' && left.delete(tenant) ? { status: 200, body: { success: true } } : undefined
  },
  convoy: (state, { method, path, body }) => {
    const { urls, left } = state
    const rest = path.startsWith('/api/v1/projects/p1/') ? path.slice('/api/v1/projects/p1/'.length) : ''
    if (method === 'POST' && rest === 'endpoints') {
      const uid = `ep${state.made++}`
      left.add(uid)
      urls.set(uid, body.url)
      return { status: 201, body: { status: true, data: { uid } } }
    }
    if (method === 'POST' && rest === 'subscriptions' && left.has(body.endpoint_id))
      return { status: 201, body: { status: true, data: { uid: 'sub1' } } }
    if (method === 'POST' && rest === 'events' && body.event_type === 'bench-order.create') {
      const delivers = { url: urls.get(body.endpoint_id), payload: body.data }
      return { status: 201, body: { status: true }, delivers }
    }
    const isRemoved = method === 'DELETE' && left.delete(rest.replace('endpoints/', ''))
    return isRemoved ? { status: 200, body: { status: true } } : undefined
  },
}

async function readBody(incoming: IncomingMessage): Promise<Body> {
  return (incoming.headers['content-type'] === 'application/json' ? await json(incoming) : {}) as Body
}

/** A server that answers as the product documents, posts each event at once, and refuses every other call. */
async function simulate(stack: AsyncDisposableStack, product: Exclude<ProductName, 'signalbox'>) {
  const state: State = { made: 0, urls: new Map(), left: new Set() }
  const server = createServer(async (incoming, response) => {
    const call = { method: incoming.method ?? '', path: incoming.url ?? '', body: await readBody(incoming) }
    const isKnown = incoming.headers.authorization === `Bearer ${TOKEN}`
    const answer = isKnown ? SIMULATED[product](state, call) : undefined
    if (!answer) return response.writeHead(404).end(`no ${call.method} ${call.path}`)
    response.writeHead(answer.status).end(answer.body === undefined ? '' : JSON.stringify(answer.body))
    if (!answer.delivers?.url) return
    // What hangs is cut off when the sink ends.
    request(answer.delivers.url, { method: 'POST', body: JSON.stringify(answer.delivers.payload) })
      .then(({ body }) => body.dump())
      .catch(() => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stack.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  return { state, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

test.concurrent.for(['svix', 'outpost', 'convoy'] as const)(
  'the adapter of %s makes endpoints, publishes to each, measures what arrives, and removes what it made',
  async (product, { expect }) => {
    await using stack = new AsyncDisposableStack()
    const sink = startProgram<SinkQuestion, SinkState>('sink.ts')
    stack.defer(() => sink.stop())
    const publisher = startProgram<EventLoad, EventLoadResult>('publisher.ts')
    stack.defer(() => publisher.stop())
    const { origin, state } = await simulate(stack, product)
    const { origin: sinkOrigin } = await sink.ask({ do: 'open' })
    let run = 0
    const figures = await measureProduct(
      {
        ...{ product, origin, token: TOKEN, project: 'p1', publisher, sink, sinkOrigin },
        nextRun: () => run++,
        readCpuMs: async () => 0,
      },
      0.3,
    )
    expect(figures).toMatchObject({ lost: 0, duplicates: 0, cpuMs: 0 })
    expect(figures.perSecond).toBeGreaterThan(10)
    expect(figures.steadyP99Ms).toBeLessThan(60_000)
    expect(figures.hangP50Ms).toBeLessThan(60_000)
    expect(state.urls.size).toBe(50 + 20)
    expect([...state.left]).toEqual([])
  },
)

test('a refused publication fails the measurement with the answer', async () => {
  await using stack = new AsyncDisposableStack()
  const publisher = startProgram<EventLoad, EventLoadResult>('publisher.ts')
  stack.defer(() => publisher.stop())
  const { origin } = await simulate(stack, 'svix')
  const load = {
    origin,
    jwt: 'another',
    product: 'svix' as const,
    eventType: 'bench-order.create',
    accounts: ['app_0'],
  }
  const { accepted, firstError } = await publisher.ask({ ...load, run: 0, pace: { rate: 10, seconds: 0.1 } })
  expect(accepted).toBe(0)
  expect(firstError).toContain('answered 404')
})
