import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import formbody from '@fastify/formbody'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import helmet, { type HelmetOptions } from 'helmet'
import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import type { IdMaker } from '../id.ts'
import { isDatabaseUnavailable, isGivenUp } from '../postgres/database.ts'
import { findClientAddress, type TrustProxy } from './client-address.ts'
import { buildSerializerCompiler } from './compiled-schemas.ts'
import { keepRawBody } from './json-body.ts'
import { collectPaths } from './known-path.ts'
import { buildProblemBody, formatBytes, Problem } from './problem.ts'
import type { RequestTraceStart } from './request-trace.ts'
import {
  HEAD_LIMIT_MS,
  KEEP_ALIVE_MS,
  LIMIT_CHECK_MS,
  limitConnections,
  REQUEST_LIMIT_MS,
  SOCKET_IDLE_LIMIT_MS,
} from './sockets.ts'
import { classifyReadError, endWithProblem } from './unreadable.ts'
import type { UpgradeRouter } from './upgrade.ts'
import { compileValidator } from './validation.ts'

/** The body of a route that says nothing else: 64 KiB. */
const BODY_LIMIT_BYTES = 65_536

/** Open connections at most, unless the app says otherwise. */
const CONNECTIONS_LIMIT = 2_000

/** An unreadable `X-Forwarded-For` is logged once in this time, in milliseconds. */
const FORWARDED_LOG_MS = 60_000

const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,128}$/

export interface ServerOptions {
  logger: Logger
  clock: Clock
  ids: IdMaker
  /** Which proxies may name the client in `X-Forwarded-For`. */
  trustProxy: TrustProxy
  /** Open connections at most. */
  maxConnections?: number
  /** How long a connection may be silent under a request, in milliseconds. */
  socketIdleLimitMs?: number
  /** What the service calls itself; asked late, since the port may be chosen at start. */
  baseUrl: () => string
  /** Takes over connections that ask for another protocol; without it none is. */
  upgrades?: UpgradeRouter
  /** Counts a request that no route serves against its address. Throws `rate_limited`. */
  limitUnknown?: (request: FastifyRequest, reply: FastifyReply) => void
  /** Starts the trace of a request; without it requests have none. */
  startTrace?: RequestTraceStart
}

/**
 * Headers of every answer, by helmet. What only a page needs (content policy, opener and embedder policies) is set where
 * pages are served; an answer of the API carries what protects JSON in a browser.
 */
const ANSWER_HEADERS = collectHeaders({
  contentSecurityPolicy: false,
  crossOriginResourcePolicy: false,
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
})

/** What helmet sets with these options. The same for every answer, so it runs once. */
function collectHeaders(options: HelmetOptions): Record<string, string> {
  const headers: Record<string, string> = {}
  const response = {
    setHeader: (name: string, value: string) => {
      headers[name.toLowerCase()] = value
    },
    removeHeader: () => {},
  }
  helmet(options)({} as IncomingMessage, response as unknown as ServerResponse, () => {})
  return headers
}

/** Builds the bare HTTP server: request ids, problems, security headers, limits, one wide log line a request. */
export async function buildServer(options: ServerOptions): Promise<FastifyInstance> {
  const { clock, baseUrl } = options
  const server: FastifyInstance = Fastify(
    buildFastifyOptions(options, (error, socket) => {
      if ((error as { code?: string }).code === 'ECONNRESET') return void socket.destroy()
      endConnection(socket, classifyReadError(error, known))
    }),
  )
  server.setValidatorCompiler(compileValidator as never)
  const known = collectPaths(server)
  const connections = limitConnections(server, { maxConnections: options.maxConnections ?? CONNECTIONS_LIMIT, clock })
  /** Answers what is no request for a route, unless an answer before it is still being written. */
  const endConnection = (socket: Socket, problem: Problem) => {
    if (!socket.writable || connections.countInFlight(socket) > 0) return void socket.destroy()
    endWithProblem(socket, problem, { requestId: options.ids.next<'request'>(), baseUrl: baseUrl() })
  }
  if (options.upgrades) server.server.on('upgrade', options.upgrades.upgrade)
  // Node gives CONNECT to nobody else.
  server.server.on('connect', ({ url }, socket) => endConnection(socket as Socket, known.buildProblem(url ?? '')))
  await server.register(formbody)
  keepRawBody(server)
  logRequests(server, options)
  if (options.trustProxy !== false) readClientAddresses(server, options.trustProxy, clock)
  server.addHook('onRequest', (request, reply, done) => {
    if (request.url.includes('%00'))
      return done(new Problem('malformed_request', 'The address holds %00, which no text here can.'))
    if (!request.is404) return done()
    // Here, and not in the not-found handler: that one runs after the body was read, which may be refused as a 400 or a 415.
    try {
      options.limitUnknown?.(request, reply)
      done(known.buildProblem(request.url))
    } catch (error) {
      done(error as Error)
    }
  })
  server.setErrorHandler((error, request, reply) => sendProblem(toProblem(error, request), request, reply, baseUrl()))
  return server
}

function buildFastifyOptions(
  { logger, ids, baseUrl, upgrades, socketIdleLimitMs }: ServerOptions,
  clientErrorHandler: (error: Error, socket: Socket) => void,
) {
  return {
    loggerInstance: logger as FastifyBaseLogger,
    // One line of ours a request; every line that comes of a request carries its id.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    bodyLimit: BODY_LIMIT_BYTES,
    connectionTimeout: socketIdleLimitMs ?? SOCKET_IDLE_LIMIT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: REQUEST_LIMIT_MS,
    http: {
      headersTimeout: HEAD_LIMIT_MS,
      connectionsCheckingInterval: LIMIT_CHECK_MS,
      shouldUpgradeCallback: (request: IncomingMessage) => upgrades?.takes(request.url) === true,
    },
    forceCloseConnections: 'idle' as const,
    // A request that comes while we stop, over a connection that was kept, is served like any other and is its last.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 256 },
    schemaController: { compilersFactory: { buildSerializer: buildSerializerCompiler } },
    // Every GET route answers HEAD too, with its headers and no body (RFC 9110 section 9.3.2).
    exposeHeadRoutes: true,
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      // What fails before any hook ran: a path that cannot be decoded.
      reply.header('x-request-id', request.id)
      return sendProblem(toProblem(error, request), request, reply, baseUrl())
    },
    clientErrorHandler,
    genReqId: (raw: IncomingMessage) => {
      const given = raw.headers['x-request-id']
      return typeof given === 'string' && REQUEST_ID_PATTERN.test(given) ? given : ids.next<'request'>()
    },
  }
}

/** Gives each request its id, its trace and its log line, and each answer its headers. */
function logRequests(server: FastifyInstance, { clock, startTrace }: ServerOptions): void {
  server.addHook('onRequest', (request, reply, done) => {
    request.startedAtMs = clock.now()
    if (startTrace)
      request.trace = startTrace({ method: request.method, requestId: request.id, headers: request.headers })
    reply.headers(ANSWER_HEADERS)
    reply.header('x-request-id', request.id)
    done()
  })
  server.addHook('onResponse', (request, reply, done) => {
    logRequest(request, reply, clock.now() - (request.startedAtMs ?? clock.now()))
    request.trace?.end({
      route: routePathOf(request),
      status: reply.statusCode,
      code: request.problem?.code,
      durationMs: reply.elapsedTime,
    })
    done()
  })
}

/** Makes `request.ip` the address of the client rather than that of the nearest proxy. */
function readClientAddresses(server: FastifyInstance, trust: TrustProxy, clock: Clock): void {
  let loggedAtMs = Number.NEGATIVE_INFINITY
  server.addHook('onRequest', (request, _reply, done) => {
    const header = request.headers['x-forwarded-for']
    const { address, ignored } = findClientAddress({
      peer: request.socket.remoteAddress ?? '',
      forwardedFor: Array.isArray(header) ? header.join(',') : header,
      trust,
    })
    Object.defineProperty(request, 'ip', { value: address })
    if (ignored !== undefined && clock.now() - loggedAtMs >= FORWARDED_LOG_MS) {
      loggedAtMs = clock.now()
      const entry = ignored.slice(0, 64)
      request.log.warn({ entry }, 'X-Forwarded-For ignored: see docs/operations.md, forwarded addresses')
    }
    done()
  })
}

/** What a caller learns of an error. Everything unforeseen becomes one fixed sentence (docs/contract/api.md#errors). */
export function toProblem(error: unknown, request: FastifyRequest): Problem {
  if (error instanceof Problem) return error
  const { code, statusCode } = (error ?? {}) as FastifyError
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new Problem('body_too_large', `This route takes a body of at most ${formatBytes(bodyLimitOf(request))}.`)
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new Problem('unsupported_media_type', 'Send the body as Content-Type: application/json.')
  // A path parameter that is longer than any id names nothing.
  if (statusCode === 414) return new Problem('not_found', 'There is nothing at this path.')
  if (statusCode === 400)
    return new Problem('malformed_request', 'The request could not be read. Check its headers and body.')
  if (isGivenUp(error)) {
    request.log.warn({ err: error }, 'transaction given up for another one')
    return new Problem('dependency_unavailable', 'Another change was in the way. Nothing was changed; try again.', {
      headers: { 'retry-after': '1' },
    })
  }
  if (isDatabaseUnavailable(error)) {
    request.log.error({ err: error }, 'database unavailable: see docs/operations.md, database')
    return new Problem(
      'dependency_unavailable',
      'The database does not answer. Try again; repeat a change with the same Idempotency-Key, in case the first one was kept.',
      {
        headers: { 'retry-after': '5' },
      },
    )
  }
  request.log.error({ err: error }, 'unexpected error')
  return new Problem(
    'internal_error',
    'Unexpected error. Quote the request id to the operator; send a change again only under its Idempotency-Key.',
  )
}

function bodyLimitOf(request: FastifyRequest): number {
  return request.routeOptions.bodyLimit ?? BODY_LIMIT_BYTES
}

function sendProblem(problem: Problem, request: FastifyRequest, reply: FastifyReply, baseUrl: string) {
  request.problem = problem
  for (const [name, value] of Object.entries(problem.headers)) reply.header(name, value)
  return reply
    .code(problem.status)
    .header('content-type', 'application/problem+json')
    .header('cache-control', 'no-store')
    .serializer((body: unknown) => JSON.stringify(body))
    .send(buildProblemBody(problem, { requestId: request.id, baseUrl }))
}

/** The path as it was declared, without what a caller filled in; null where there is no such route. */
function routePathOf(request: FastifyRequest): string | null {
  return request.routeOptions.config.route?.path ?? request.routeOptions.url ?? null
}

/** The one line of a request: ids first, then what happened (docs/contract/api.md#log-lines). Never a body, token or query value. */
function logRequest(request: FastifyRequest, reply: FastifyReply, durationMs: number): void {
  const isFault = reply.statusCode >= 500
  if (!isFault && !(request.log as Logger).isLevelEnabled('info')) return
  const line = {
    ...(request.trace && { trace_id: request.trace.traceId, span_id: request.trace.spanId }),
    method: request.method,
    route: routePathOf(request),
    status: reply.statusCode,
    duration_ms: durationMs,
    user: request.caller?.userId ?? null,
    address: request.ip,
    ...(request.problem && { code: request.problem.code, reason: request.problem.reason }),
  }
  if (isFault) request.log.error(line, 'request')
  else request.log.info(line, 'request')
}

declare module 'fastify' {
  interface FastifyRequest {
    problem?: Problem
    startedAtMs?: number
  }
}
