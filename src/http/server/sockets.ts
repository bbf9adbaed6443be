import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../base/clock.ts'
import { isTrustedPeer, type TrustProxy } from '../request/client-address.ts'
import { buildConnectionShares, type SharedConnection } from './connection-shares.ts'

/** Idle limit of a connection with a request in flight, in milliseconds: its client does not read. */
export const SOCKET_IDLE_LIMIT_MS = 30_000

/** Idle limit of a connection without a request, in milliseconds: longer than that of common proxies (60 s). */
export const KEEP_ALIVE_MS = 72_000

/** Time limits for receiving a request and its header section, in milliseconds. */
export const REQUEST_LIMIT_MS = 30_000
export const HEAD_LIMIT_MS = 20_000

/** Interval at which Node checks these two limits, in milliseconds. */
export const LIMIT_CHECK_MS = 5_000

/**
 * Maximum number of requests in flight on one connection. Answers to pipelined requests wait in memory for earlier
 * ones, and Node dispatches all requests of a packet at once: without a limit, a client that does not read makes the
 * process build and hold a thousand answers.
 */
export const PIPELINE_LIMIT = 32

/** Interval between log lines about refused connections, in milliseconds. */
const REFUSAL_LOG_MS = 60_000

/** Counts the requests in flight of a server's connections. */
export interface Connections {
  countInFlight(socket: Socket): number
}

/** Limits a server to `maxConnections`, which addresses share, each with `PIPELINE_LIMIT` requests in flight. */
export function limitConnections(
  server: FastifyInstance,
  options: { maxConnections: number; trustProxy: TrustProxy; clock: Pick<Clock, 'now'> },
): Connections {
  const { maxConnections, trustProxy, clock } = options
  const inFlight = new WeakMap<Socket, number>()
  const countInFlight = (socket: Socket) => inFlight.get(socket) ?? 0
  server.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw
    const count = countInFlight(socket) + 1
    inFlight.set(socket, count)
    reply.raw.once('close', () => inFlight.set(socket, countInFlight(socket) - 1))
    if (count <= PIPELINE_LIMIT) return done()
    // Not answered: the requests in flight end with the connection.
    reply.hijack()
    socket.destroy()
  })
  server.server.maxConnections = maxConnections
  const shares = buildConnectionShares({ limit: maxConnections, isTrusted: (peer) => isTrustedPeer(peer, trustProxy) })
  /** By their sockets. An upgraded one has limits of its own. */
  const shared = new WeakMap<Duplex, SharedConnection>()
  server.server.on('connection', (socket) => {
    const connection = {
      // Stored: a closed socket has no address.
      address: socket.remoteAddress ?? '',
      isIdle: () => countInFlight(socket) === 0,
      close: () => void socket.destroy(),
    }
    if (!shares.add(connection)) {
      socket.destroy()
      return noteRefusal()
    }
    shared.set(socket, connection)
    socket.once('close', () => shares.drop(connection))
  })
  server.server.on('upgrade', (_request, socket) => {
    const connection = shared.get(socket)
    if (connection) shares.drop(connection)
  })
  let refused = 0
  let loggedAtMs = Number.NEGATIVE_INFINITY
  function noteRefusal(): void {
    refused += 1
    if (clock.now() - loggedAtMs < REFUSAL_LOG_MS) return
    server.log.warn(
      { refused, max_connections: maxConnections },
      'connections refused: see docs/operations.md, connections',
    )
    loggedAtMs = clock.now()
    refused = 0
  }
  server.server.on('drop', noteRefusal)
  return { countInFlight }
}
