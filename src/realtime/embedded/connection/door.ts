import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { groupAddress } from '../../../http/request/address-group.ts'
import { closeConnection, forgetUsers, sendText } from '../application/connection.ts'
import type { Application, Connection, RealtimeContext } from '../application/state.ts'
import { unsubscribe } from '../application/subscription.ts'
import type { AddressBook } from '../frame/address-book.ts'
import { openBudget } from '../frame/budget.ts'
import { CLOSE_REASONS, type CloseName } from '../frame/close-reason.ts'
import { writeError, writeHello } from '../frame/server-frame.ts'
import { makeSocketId } from '../frame/socket-id.ts'
import { admit, serveMessage } from './client-session.ts'
import { decideHandshake } from './handshake.ts'

const CLOSE_LIMIT_MS = 5_000

export interface DoorParts {
  context: RealtimeContext
  addresses: AddressBook
  addressOf: (request: IncomingMessage) => string
  allowedOrigins: readonly string[] | undefined
  isServing: () => boolean
}

/** Builds the handler of upgrades: decides on each, and opens connections. */
export function buildDoor(parts: DoorParts) {
  const { context, addresses } = parts
  const { clock, limits, counts } = context
  const byKey = new Map([...context.applications.values()].map((application) => [application.app.key, application]))
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: limits.messageBytes,
    closeTimeout: CLOSE_LIMIT_MS,
  } as ConstructorParameters<typeof WebSocketServer>[0])

  function open(application: Application, webSocket: WebSocket, from: { socket: Duplex; address: string }): void {
    const nowMs = clock.now()
    const connection: Connection = {
      ...{ application, webSocket, ...from, socketId: makeSocketId(context.random) },
      ...{
        channels: new Map(),
        users: new Set(),
        permitted: new Map(),
        tokens: new Map(),
        withdrawn: new Set(),
        isAuthorized: false,
        isClosing: false,
      },
      ...{ openedAtMs: nowMs, lastSeenAtMs: nowMs },
      messages: openBudget(limits.messageBurst, nowMs),
      clientEvents: openBudget(limits.clientEventsPerSecond, nowMs),
      release: () => release(context, connection),
    }
    application.connections.set(connection.socketId, connection)
    addresses.open(from.address)
    counts.connections += 1
    counts.opened += 1
    listen(context, connection)
    webSocket.on('close', () => {
      counts.connections -= 1
      addresses.close(from.address)
      release(context, connection)
    })
    sendText(context, connection, writeHello(connection.socketId, limits.activityTimeoutSeconds))
    context.observe({ app: application.app.id, kind: 'connected', socketId: connection.socketId })
  }

  function refuse(webSocket: WebSocket, name: CloseName): void {
    const { code, reason } = CLOSE_REASONS[name]
    counts.refused += 1
    // Bytes and errors of a refused client are ignored.
    webSocket.on('error', () => {})
    webSocket.send(writeError(reason, code))
    webSocket.close(code, reason)
  }

  function handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const address = groupAddress(parts.addressOf(request))
    const verdict = decideHandshake({
      url: request.url ?? '',
      origin: request.headers.origin,
      address,
      isKnownKey: (key) => byKey.has(key),
      allowedOrigins: parts.allowedOrigins,
      isServing: parts.isServing(),
      nowMs: clock.now(),
      ...{ limits, counts, addresses },
    })
    if ('status' in verdict) {
      counts.refused += 1
      return void endWithStatus(socket, verdict.status)
    }
    server.handleUpgrade(request, socket, head, (webSocket) => {
      const application = 'key' in verdict ? byKey.get(verdict.key) : undefined
      if (application) open(application, webSocket, { socket, address })
      else if ('close' in verdict) refuse(webSocket, verdict.close)
    })
  }

  return { handleUpgrade }
}

function listen(context: RealtimeContext, connection: Connection): void {
  const { webSocket } = connection
  const seen = () => void admit(context, connection)
  webSocket.on('message', (data, isBinary) => {
    if (isBinary) return closeConnection(connection, 'binary-frame')
    serveMessage(context, connection, data.toString())
  })
  // The library answers pings.
  webSocket.on('ping', seen)
  webSocket.on('pong', seen)
  // A broken frame, or one over the limit: the library closes the connection with the code of RFC 6455.
  webSocket.on('error', () => {
    connection.isClosing = true
  })
}

function release(context: RealtimeContext, connection: Connection): void {
  const { application, socketId } = connection
  connection.isClosing = true
  if (!application.connections.delete(socketId)) return
  for (const channel of [...connection.channels.keys()]) unsubscribe(context, connection, channel)
  forgetUsers(connection)
  context.observe({ app: application.app.id, kind: 'disconnected', socketId })
}

const STATUS_TEXTS = { 429: 'Too Many Requests', 503: 'Service Unavailable' } as const

function endWithStatus(socket: Duplex, status: keyof typeof STATUS_TEXTS): void {
  const retry = status === 429 ? 60 : 1
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_TEXTS[status]}\r\nconnection: close\r\nretry-after: ${retry}\r\ncontent-length: 0\r\n\r\n`,
  )
}
