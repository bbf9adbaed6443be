import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
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
import type { Clock } from '../../base/clock.ts'
import type { IdMaker } from '../../base/id.ts'
import type { RequestTraceStart } from '../../tracing/request-span.ts'
import { Problem } from '../problem/problem.ts'
import { BODY_LIMIT_BYTES, type ProblemAnswerOptions, sendProblem, toProblem } from '../problem/problem-answer.ts'
import { findClientAddress, type TrustProxy } from '../request/client-address.ts'
import { findRepeatedHeader } from '../request/repeated-header.ts'
import { findOwnRequestId, keepOwnRequestId } from '../request/request-id.ts'
import { findTargetFault, toOriginForm } from '../request/request-target.ts'
import { collectPaths } from '../route/known-path.ts'
import { compileValidator } from '../route/validation.ts'
import { buildSerializerCompiler } from '../shape/compiled-schemas.ts'
import { allowOrigins } from './cors.ts'
import { readForms } from './form-body.ts'
import { keepRawBody } from './json-body.ts'
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

/** Default limit of open connections. */
const CONNECTIONS_LIMIT = 2_000

/** Interval between log lines about an unreadable `X-Forwarded-For`, in milliseconds. */
const FORWARDED_LOG_MS = 60_000

const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,128}$/

export interface ServerOptions extends ProblemAnswerOptions {
  logger: Logger
  clock: Clock
  ids: IdMaker
  trustProxy: TrustProxy
  maxConnections?: number
  /** Idle limit of a connection with a request in flight, in milliseconds. */
  socketIdleLimitMs?: number
  /** Handles protocol upgrades; without it, `Upgrade` headers are ignored. */
  upgrades?: UpgradeRouter
  /** Counts a request that no route serves against its address. Throws `rate_limited`. */
  limitUnknown?: (request: FastifyRequest, reply: FastifyReply) => void
  /** Origins whose pages may call the API. Default: none. */
  corsOrigins?: readonly string[]
  /** Whether pages of this machine may call the API. Default: no. */
  corsAllowsLoopback?: boolean
  /** Starts the trace of a request; without it, requests are not traced. */
  startTrace?: RequestTraceStart
}

/** Headers of every answer, by helmet; those for pages are set where pages are served. */
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

/** The headers that helmet sets with these options. They are constant, so helmet runs once. */
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

/** Builds the HTTP server without routes: request ids, problems, security headers, limits, one log line for each request. */
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
  server.decorate('findShadowed', known.findShadowed)
  const connections = limitConnections(server, {
    maxConnections: options.maxConnections ?? CONNECTIONS_LIMIT,
    trustProxy: options.trustProxy,
    clock,
  })
  /** Answers with a problem and ends the connection; only ends it when an earlier answer is in flight. */
  const endConnection = (socket: Socket, problem: Problem) => {
    if (!socket.writable || connections.countInFlight(socket) > 0) return void socket.destroy()
    endWithProblem(socket, problem, { requestId: options.ids.next<'request'>(), baseUrl: baseUrl() })
  }
  if (options.upgrades) server.server.on('upgrade', options.upgrades.upgrade)
  // Node emits CONNECT requests on this event only.
  server.server.on('connect', ({ url }, socket) => endConnection(socket as Socket, known.buildProblem(url ?? '')))
  keepRawBody(server)
  readForms(server)
  logRequests(server, options)
  if (options.trustProxy !== false) readClientAddresses(server, options.trustProxy, clock)
  allowOrigins(server, {
    origins: options.corsOrigins ?? [],
    allowLoopback: options.corsAllowsLoopback,
    limit: options.limitUnknown,
  })
  server.addHook('onRequest', (request, reply, done) => {
    const repeated = findRepeatedHeader(request.raw.rawHeaders)
    const fault =
      repeated === undefined
        ? findTargetFault(request.url)
        : `The request has the header ${repeated} twice. Send it once.`
    if (fault === undefined && !request.is404) return done()
    // Not in the not-found handler: it runs after the body was parsed, which may fail with 400 or 415.
    try {
      options.limitUnknown?.(request, reply)
      done(fault === undefined ? known.buildProblem(request.url) : new Problem('malformed_request', fault))
    } catch (error) {
      done(error as Error)
    }
  })
  server.setErrorHandler(async (error, request, reply) => {
    // A request that did not reach its operation is counted too.
    const limited = await request.countLater?.().then(
      () => undefined,
      (reason: Error) => reason,
    )
    return sendProblem(toProblem(limited ?? error, request), { request, reply }, options)
  })
  return server
}

function buildFastifyOptions(options: ServerOptions, clientErrorHandler: (error: Error, socket: Socket) => void) {
  const { logger, ids, upgrades, socketIdleLimitMs } = options
  return {
    loggerInstance: logger as FastifyBaseLogger,
    // `logRequest` writes the one line of a request. Every line of a request carries its id.
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
    // During shutdown, a request on a kept-alive connection is served, and the connection then closes.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 256 },
    rewriteUrl: (request: IncomingMessage) => toOriginForm(request.url ?? '/'),
    schemaController: { compilersFactory: { buildSerializer: buildSerializerCompiler } },
    // Every GET route also serves HEAD: the same headers, no body (RFC 9110 section 9.3.2).
    exposeHeadRoutes: true,
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      // An error before any hook: a path that cannot be decoded.
      reply.header('x-request-id', request.id)
      return sendProblem(toProblem(error, request), { request, reply }, options)
    },
    clientErrorHandler,
    genReqId: (raw: IncomingMessage) => {
      const given = raw.headers['x-request-id']
      if (typeof given !== 'string' || !REQUEST_ID_PATTERN.test(given)) return ids.next<'request'>()
      keepOwnRequestId(raw, ids.next<'request'>())
      return given
    },
  }
}

/** Adds the trace and the log line of each request, and the headers of each answer. */
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

/** Sets `request.ip` to the address of the client instead of that of the nearest proxy. */
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

/** The declared path, without parameter values; null where no route matched. */
function routePathOf(request: FastifyRequest): string | null {
  // The getter `routeOptions` makes an object each time, so routes of the pipeline name their path themselves.
  return request.routePath ?? request.routeOptions.config.route?.path ?? request.routeOptions.url ?? null
}

/** Probes and scrapes: every few seconds the same line. Their faults are logged like any other. */
const QUIET_ROUTES = new Set(['/livez', '/readyz', '/metrics'])

/** Longest path of a log line, in characters. */
const SHOWN_PATH = 200

/** The path of a request that no route serves, without its query, in characters that a terminal prints. */
function readShownPath(url: string): string {
  const [path = ''] = url.split(/[?#]/, 1)
  return path.slice(0, SHOWN_PATH).replace(/[^\x21-\x7e]/g, '?')
}

/** Writes the log line of a request, ids first (docs/contract/api.md#log-lines). Never a body, token or query value. */
function logRequest(request: FastifyRequest, reply: FastifyReply, durationMs: number): void {
  const route = routePathOf(request)
  const level = reply.statusCode >= 500 ? 'error' : QUIET_ROUTES.has(route ?? '') ? 'debug' : 'info'
  if (!(request.log as Logger).isLevelEnabled(level)) return
  const line = {
    ...(request.trace && { trace_id: request.trace.traceId, span_id: request.trace.spanId }),
    ...describeOwnId(request),
    method: request.method,
    route,
    ...(route === null && { path: readShownPath(request.url) }),
    status: reply.statusCode,
    duration_ms: durationMs,
    user: request.caller?.userId ?? null,
    address: request.ip,
    ...(request.problem && { code: request.problem.code, reason: request.problem.reason }),
  }
  request.log[level](line, 'request')
}

/** The id under which the audit log has a request that brought an id of its own. */
function describeOwnId({ raw, id }: FastifyRequest): { own_id?: string } {
  const own = findOwnRequestId(raw, id)
  return own === id ? {} : { own_id: own }
}

declare module 'fastify' {
  interface FastifyRequest {
    problem?: Problem
    startedAtMs?: number
  }
}
