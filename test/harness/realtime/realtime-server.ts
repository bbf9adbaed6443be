import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import pino from 'pino'
import Pusher from 'pusher'
import pusherModule, { type Options } from 'pusher-js'
import { WebSocket } from 'ws'
import { systemClock } from '../../../src/base/clock.ts'
import { buildIdMaker } from '../../../src/base/id.ts'
import { systemRandom } from '../../../src/base/random.ts'
import {
  type RealtimeServer,
  type RealtimeServerDeps,
  startRealtimeServer,
} from '../../../src/realtime/embedded/realtime-server.ts'
import type { TestDatabase } from '../database/database.ts'
import { buildManualClock, type ManualClock } from '../run/manual-clock.ts'
import { waitFor } from '../run/wait.ts'

/** The client library; its types name the module where its program names the class. */
export type PusherClient = pusherModule.default
const PusherClient = pusherModule as unknown as typeof pusherModule.default

/** The application of the tests. */
export const TEST_REALTIME_APP = { id: 'app-1', key: 'key-1', secret: 'secret-1' }

/** A frame of the server, its data decoded. */
export interface ServerFrame {
  event: string
  channel?: string
  // biome-ignore lint/suspicious/noExplicitAny: each test asserts the shape
  data: any
  user_id?: string
}

/** A connection that speaks the protocol by hand. */
export interface RawConnection {
  socketId: string
  frames: ServerFrame[]
  webSocket: WebSocket
  send(frame: object | string): void
  /** Waits for a frame with this event, and this channel. */
  waitFor(event: string, channel?: string): Promise<ServerFrame>
  /** Subscribes with a valid signature and waits for the answer. */
  subscribe(channel: string, member?: object): Promise<ServerFrame>
  closed: Promise<{ code: number; reason: string }>
}

/** How a connection was refused: by a status of HTTP, or by a close of the WebSocket. */
export interface Refusal {
  status?: number
  code?: number
  reason?: string
}

/** An embedded server that listens on a port of its own. */
export interface TestRealtime extends AsyncDisposable {
  server: RealtimeServer
  port: number
  clock: ManualClock
  /** The official library for servers. */
  sdk: Pusher
  /** The official library for browsers. Its subscriptions are authorized for `user`. */
  connect(options?: Partial<Options> & { key?: string; user?: { id: string } & Record<string, unknown> }): PusherClient
  /** Opens a connection by hand, and waits for the greeting. */
  open(path?: string): Promise<RawConnection>
  /** Opens a connection by hand that the server is to refuse. */
  openRefused(path: string, headers?: Record<string, string>): Promise<Refusal>
}

/** Starts an embedded server on a database. */
export async function startTestRealtime(
  database: TestDatabase,
  { listenOn = 0, ...options }: Partial<RealtimeServerDeps> & { clock?: ManualClock; listenOn?: number } = {},
): Promise<TestRealtime> {
  const clock = options.clock ?? buildManualClock(Date.now())
  const server = startRealtimeServer({
    apps: [TEST_REALTIME_APP],
    db: database.db,
    connectionString: database.connectionString,
    random: systemRandom,
    ids: buildIdMaker(clock, systemRandom),
    logger: pino({ level: 'silent' }),
    rest: systemClock.sleep,
    isTrusted: () => true,
    ...options,
    clock,
  })
  const http = createServer((request, response) => void server.handleRequest(request, response))
  http.on('upgrade', server.handleUpgrade)
  await server.ready
  await new Promise<void>((resolve) => http.listen(listenOn, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  const { id: appId, key, secret } = TEST_REALTIME_APP
  const sdk = new Pusher({
    ...{ appId, key, secret, host: '127.0.0.1', port: String(port), useTLS: false },
    encryptionMasterKeyBase64: Buffer.alloc(32, 7).toString('base64'),
  })
  const clients: PusherClient[] = []
  const opened: WebSocket[] = []
  const openSocket = (path: string, headers?: Record<string, string>) => {
    const webSocket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { ...(headers && { headers }) })
    webSocket.on('error', () => {})
    opened.push(webSocket)
    return webSocket
  }
  return {
    server,
    port,
    clock,
    sdk,
    connect: ({ user, key: clientKey = key, ...rest } = {}) => {
      const client = new PusherClient(clientKey, { ...buildClientOptions(sdk, port, user), ...rest })
      clients.push(client)
      return client
    },
    open: async (path = `/app/${key}?protocol=7`) => openRaw(openSocket(path), sdk),
    openRefused: (path, headers) => watchRefusal(openSocket(path, headers)),
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.disconnect()
      await server.stop()
      for (const webSocket of opened) webSocket.terminate()
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}

function buildClientOptions(sdk: Pusher, port: number, user?: { id: string } & Record<string, unknown>): Options {
  const member = user && { user_id: user.id, user_info: { name: user.id } }
  return {
    cluster: '',
    wsHost: '127.0.0.1',
    wsPort: port,
    forceTLS: false,
    enabledTransports: ['ws'],
    channelAuthorization: {
      endpoint: '',
      transport: 'ajax',
      customHandler: ({ socketId, channelName }, callback) =>
        callback(
          null,
          sdk.authorizeChannel(socketId, channelName, channelName.startsWith('presence-') ? member : undefined),
        ),
    },
    userAuthentication: {
      endpoint: '',
      transport: 'ajax',
      customHandler: ({ socketId }, callback) =>
        callback(null, sdk.authenticateUser(socketId, user ?? { id: 'nobody' })),
    },
  }
}

function watchClose(webSocket: WebSocket): Promise<{ code: number; reason: string }> {
  return new Promise((resolve) => {
    webSocket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
  })
}

function watchRefusal(webSocket: WebSocket): Promise<Refusal> {
  const answered = new Promise<Refusal>((resolve) => {
    webSocket.on('unexpected-response', (_, response) => resolve({ status: response.statusCode ?? 0 }))
  })
  return Promise.race([answered, watchClose(webSocket)])
}

async function openRaw(webSocket: WebSocket, sdk: Pusher): Promise<RawConnection> {
  const frames: ServerFrame[] = []
  webSocket.on('message', (data) => {
    const frame = JSON.parse(data.toString()) as ServerFrame
    frames.push({ ...frame, data: decodeData(frame.data) })
  })
  const closed = watchClose(webSocket)
  const find = (event: string, channel?: string) =>
    waitFor(
      `${event} ${channel ?? ''}`,
      () => frames.find((frame) => frame.event === event && (channel === undefined || frame.channel === channel)),
      { limitMs: 20_000, describe: () => JSON.stringify(frames) },
    )
  const { data } = await find('pusher:connection_established')
  const connection: RawConnection = {
    socketId: data.socket_id,
    frames,
    webSocket,
    send: (frame) => webSocket.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
    waitFor: find,
    subscribe: async (channel, member) => {
      const isOpen = !/^(?:private|presence)-/.test(channel)
      const token = isOpen ? {} : sdk.authorizeChannel(data.socket_id, channel, member as never)
      connection.send({ event: 'pusher:subscribe', data: { channel, ...token } })
      return find('pusher_internal:subscription_succeeded', channel)
    },
    closed,
  }
  return connection
}

function decodeData(data: unknown): unknown {
  if (typeof data !== 'string') return data
  try {
    return JSON.parse(data)
  } catch {
    return data
  }
}

/** Resolves with the next event of this name on a channel, or on all events of a client's connection. */
export function nextEvent(
  source: { bind(event: string, callback: (data: unknown) => void): unknown },
  event: string,
  // biome-ignore lint/suspicious/noExplicitAny: each test asserts the shape
): Promise<any> {
  return new Promise((resolve) => source.bind(event, resolve))
}
