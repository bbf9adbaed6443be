import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../clock.ts'

/**
 * How long a connection may be silent while a request or its answer is under way, in milliseconds. A client that does not
 * read its answer takes no byte of it for this long, and is cut off.
 */
export const SOCKET_IDLE_LIMIT_MS = 30_000

/** How long a connection may be open without a request, in milliseconds: longer than proxies keep theirs (60 s). */
export const KEEP_ALIVE_MS = 72_000

/** How long a request may take to arrive, and its head before it, in milliseconds. */
export const REQUEST_LIMIT_MS = 30_000
export const HEAD_LIMIT_MS = 20_000

/** How often Node looks for requests that are over these two limits, in milliseconds. */
export const LIMIT_CHECK_MS = 5_000

/**
 * Requests of one connection that may wait for their answers at once. Answers to pipelined requests wait in memory for
 * those before them, and Node takes all requests that one packet holds before it looks at what waits: without a limit, a
 * client that does not read has a thousand answers built and kept.
 */
export const PIPELINE_LIMIT = 32

/** Refused connections are logged once in this time, in milliseconds. */
const REFUSAL_LOG_MS = 60_000

/** The connections of a server, as far as their requests in flight go. */
export interface Connections {
  /** How many requests of this connection wait for their answers. */
  countInFlight(socket: Socket): number
}

/**
 * Bounds what connections may hold: at most `maxConnections` at once, each with at most `PIPELINE_LIMIT` requests in
 * flight; what is over either limit is closed.
 */
export function limitConnections(
  server: FastifyInstance,
  options: { maxConnections: number; clock: Pick<Clock, 'now'> },
): Connections {
  const { maxConnections, clock } = options
  const inFlight = new WeakMap<Socket, number>()
  const countInFlight = (socket: Socket) => inFlight.get(socket) ?? 0
  server.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw
    const count = countInFlight(socket) + 1
    inFlight.set(socket, count)
    reply.raw.once('close', () => inFlight.set(socket, countInFlight(socket) - 1))
    if (count <= PIPELINE_LIMIT) return done()
    // Never answered: what waits on this connection ends with it.
    reply.hijack()
    socket.destroy()
  })
  server.server.maxConnections = maxConnections
  let refused = 0
  let loggedAtMs = Number.NEGATIVE_INFINITY
  server.server.on('drop', () => {
    refused += 1
    if (clock.now() - loggedAtMs < REFUSAL_LOG_MS) return
    server.log.warn(
      { refused, max_connections: maxConnections },
      'connections refused: see docs/operations.md, connections',
    )
    loggedAtMs = clock.now()
    refused = 0
  })
  return { countInFlight }
}
