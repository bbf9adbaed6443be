import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isLoopbackOrigin } from '../../base/loopback.ts'

/** Path below which answers are served to pages of other origins: the API, and nothing that a browser shows. */
const PREFIX = '/api/'

/** Lifetime of a preflight answer in the browser, in seconds: two hours is Chromium's maximum. */
const MAX_AGE_SECONDS = 7_200

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'

/** The request headers of the API that a page may not send without asking. */
const REQUEST_HEADERS =
  'authorization, content-type, idempotency-key, if-match, if-none-match, traceparent, tracestate, x-request-id'

/** The headers of answers that a page may read, besides those that every page may. */
const EXPOSED_HEADERS =
  'allow, content-disposition, etag, idempotency-replayed, location, ratelimit, ratelimit-policy, retry-after, ' +
  'www-authenticate, x-request-id'

/** Pages of other origins that may call the API. */
export interface CorsOptions {
  /** Exact origins. */
  origins: readonly string[]
  /** Whether pages of this machine may call it too: in development, where pages come from other local servers. */
  allowLoopback?: boolean | undefined
  /** Counts a preflight against its address. Throws `rate_limited`. */
  limit?: ((request: FastifyRequest, reply: FastifyReply) => void) | undefined
}

/**
 * Lets pages of these origins call the API (docs/contract/api.md#pages-of-other-origins; Fetch standard, "CORS protocol").
 * A page sends a bearer token; cookies are never taken, so credentials are not allowed.
 */
export function allowOrigins(server: FastifyInstance, { origins, allowLoopback = false, limit }: CorsOptions): void {
  const allowed = new Set(origins)
  // Without an origin no answer has a CORS header.
  if (allowed.size === 0 && !allowLoopback) return
  server.addHook('onRequest', (request, reply, done) => {
    if (!request.url.startsWith(PREFIX)) return done()
    // Also without an origin: a cache must not give one page the answer of another.
    reply.header('vary', 'origin')
    const { origin } = request.headers
    if (origin === undefined) return done()
    if (!allowed.has(origin) && !(allowLoopback && isLoopbackOrigin(origin))) return done()
    reply.header('access-control-allow-origin', origin)
    // A protocol that is mounted as a whole serves OPTIONS itself.
    const isPreflight = request.method === 'OPTIONS' && request.is404
    if (!isPreflight || request.headers['access-control-request-method'] === undefined) {
      reply.header('access-control-expose-headers', EXPOSED_HEADERS)
      return done()
    }
    try {
      limit?.(request, reply)
    } catch (error) {
      return done(error as Error)
    }
    reply.code(204).headers({
      'access-control-allow-methods': METHODS,
      'access-control-allow-headers': REQUEST_HEADERS,
      'access-control-max-age': String(MAX_AGE_SECONDS),
    })
    void reply.send()
  })
}
