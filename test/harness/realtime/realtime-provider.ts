import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { findFreePort } from '../process/port.ts'
import { acceptSockets, type SimulatedLine } from './realtime-connections.ts'

/** How the simulator answers the next requests. */
export type ProviderBehaviour =
  /** As the provider does: checks signature, time and limits. */
  | { kind: 'works' }
  /** This status with this body, whatever is asked. */
  | { kind: 'answers'; status: number; body?: string; headers?: Record<string, string> }
  /** Takes the request and says nothing. */
  | { kind: 'silent' }
  /** Sends the head of an answer and never its end. */
  | { kind: 'drips' }
  /** Closes the connection in place of an answer. */
  | { kind: 'resets' }
  /** Works, and closes the connection before the answer: the caller cannot know. */
  | { kind: 'loses-answers' }

/** A message that the simulator has published. */
export interface PublishedMessage {
  channel: string
  name: string
  data: string
  /** The number of the call, from 0 on. */
  call: number
}

/** A call of the HTTP API. */
export interface ProviderCall {
  method: string
  path: string
  query: URLSearchParams
  body: string
  status: number | undefined
}

/** A provider of the Pusher HTTP API on loopback, with faults. */
export interface SimulatedProvider {
  port: number
  /** The settings of the service that uses it. */
  env: Record<string, string>
  app: { appId: string; key: string; secret: string }
  calls: ProviderCall[]
  messages: PublishedMessage[]
  /** Users whose connections were asked to be closed. */
  terminated: string[]
  /** Answer of `GET /channels`. */
  channels: Record<string, object>
  /** Members of channels: answers of `GET /channels/{name}/users`. */
  users: Record<string, unknown>
  behave(behaviour: ProviderBehaviour): void
  /** Its connections of clients. */
  line: SimulatedLine
  /** Stops listening, as a provider that is away; `restart` listens on the same port again. */
  stop(): Promise<void>
  restart(): Promise<void>
  close(): Promise<void>
}

/** How far the time of a request may be off, in seconds. */
const TOLERANCE_SECONDS = 600

/** Starts the simulator. `now` is the time that it checks requests by. */
export async function startRealtimeProvider(now: () => number): Promise<SimulatedProvider> {
  const app = { appId: '4711', key: '278d425bdf160c739803', secret: '7ad3773142a6692b25b8' }
  const calls: ProviderCall[] = []
  const messages: PublishedMessage[] = []
  const terminated: string[] = []
  const sockets = new Set<Socket>()
  let behaviour: ProviderBehaviour = { kind: 'works' }
  const provider = { channels: {} as Record<string, object>, users: {} as Record<string, unknown> }

  function perform(call: ProviderCall): { status: number; body: object | string } {
    const fault = findFault(app, call, now())
    if (fault) return fault
    const action = call.path.slice(`/apps/${app.appId}`.length)
    if (call.method === 'GET' && action === '/channels') {
      const prefix = call.query.get('filter_by_prefix') ?? ''
      const found = Object.entries(provider.channels).filter(([name]) => name.startsWith(prefix))
      return { status: 200, body: { channels: Object.fromEntries(found) } }
    }
    const [, channel] = /^\/channels\/([^/]+)\/users$/.exec(action) ?? []
    if (call.method === 'GET' && channel !== undefined)
      return { status: 200, body: { users: provider.users[channel] ?? [] } }
    const [, user] = /^\/users\/([^/]+)\/terminate_connections$/.exec(action) ?? []
    if (call.method === 'POST' && user !== undefined) {
      terminated.push(user)
      line.terminate(user)
      return { status: 200, body: {} }
    }
    if (call.method !== 'POST' || action !== '/batch_events') return { status: 404, body: 'not found' }
    const { batch } = JSON.parse(call.body) as { batch: Omit<PublishedMessage, 'call'>[] }
    if (batch.length > 10) return { status: 400, body: 'more than 10 events' }
    for (const { channel, name, data } of batch) {
      if (typeof data !== 'string' || !/^[\w\-=@,.;]{1,164}$/.test(channel) || name.length > 200)
        return { status: 400, body: 'an event is not valid' }
      if (Buffer.byteLength(data) > 10_240) return { status: 413, body: 'the data of an event is too large' }
    }
    for (const { channel, name, data } of batch) messages.push({ channel, name, data, call: calls.length - 1 })
    line.broadcast(batch)
    return { status: 200, body: {} }
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const url = new URL(request.url ?? '/', 'http://simulator.test')
    const text = Buffer.concat(chunks).toString()
    const call: ProviderCall = {
      ...{ method: request.method ?? '', path: url.pathname, query: url.searchParams, body: text, status: undefined },
    }
    calls.push(call)
    const answer = (status: number, body: object | string, headers: Record<string, string> = {}) => {
      call.status = status
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    }
    switch (behaviour.kind) {
      case 'works': {
        const { status, body } = perform(call)
        return answer(status, body)
      }
      case 'answers':
        return answer(behaviour.status, behaviour.body ?? '{}', behaviour.headers)
      case 'silent':
        return
      case 'drips':
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '2' })
        response.write('{')
        return
      case 'loses-answers':
        perform(call)
        return void request.socket.destroy()
      case 'resets':
        request.socket.destroy()
    }
  }

  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()))
  const line = acceptSockets(server, app)
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  // Not one of the system: it may go to another while this one is stopped.
  const port = await findFreePort()
  await listen(port)
  return Object.assign(provider, {
    ...{ port, app, calls, messages, terminated, stop, line },
    env: {
      INTEGRATION_REALTIME_APP_ID: app.appId,
      INTEGRATION_REALTIME_KEY: app.key,
      INTEGRATION_REALTIME_SECRET: app.secret,
      INTEGRATION_REALTIME_CLUSTER: 'test',
      INTEGRATION_REALTIME_USE_TLS: 'false',
      INTEGRATION_REALTIME_HOST: '127.0.0.1',
      INTEGRATION_REALTIME_PORT: String(port),
    },
    behave: (next: ProviderBehaviour) => {
      behaviour = next
    },
    restart: () => listen(port),
    close: async () => {
      if (server.listening) await stop()
    },
  })
}

/** Checks application, time and signature, as the documentation of Pusher Channels says; undefined when all is right. */
function findFault(
  app: SimulatedProvider['app'],
  call: ProviderCall,
  nowMs: number,
): { status: number; body: string } | undefined {
  if (!call.path.startsWith(`/apps/${app.appId}/`)) return { status: 404, body: 'no such app' }
  const query = new Map(call.query)
  if (query.get('auth_key') !== app.key) return { status: 401, body: 'unknown key' }
  if (Math.abs(Number(query.get('auth_timestamp')) - nowMs / 1000) > TOLERANCE_SECONDS)
    return { status: 401, body: 'the time of the request is off' }
  const md5 = call.body === '' ? undefined : createHash('md5').update(call.body).digest('hex')
  if (query.get('body_md5') !== md5) return { status: 401, body: 'body_md5 is wrong' }
  const given = query.get('auth_signature')
  query.delete('auth_signature')
  const sorted = [...query].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}=${value}`)
  const signed = `${call.method}\n${call.path}\n${sorted.join('&')}`
  const expected = createHmac('sha256', app.secret).update(signed).digest('hex')
  return given === expected ? undefined : { status: 401, body: 'the signature is wrong' }
}
