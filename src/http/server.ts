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
import { buildSerializerCompiler } from './compiled-schemas.ts'
import { PROBLEMS, Problem } from './problem.ts'
import type { RequestTraceStart } from './request-trace.ts'
import type { UpgradeRouter } from './upgrade.ts'
import { compileValidator } from './validation.ts'

/** 1 MiB (D4). */
const BODY_LIMIT_BYTES = 1_048_576

/** The methods that some route takes. */
const API_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Method, target and version (RFC 9112 section 3). */
const REQUEST_LINE_PATTERN = /^[A-Za-z-]{1,32} [^ \r\n]{1,3000} HTTP\/1\.[01]\r\n/

const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,128}$/

export interface ServerOptions {
  logger: Logger
  clock: Clock
  ids: IdMaker
  trustProxy: boolean
  /** What the service calls itself; asked late, since the port may be chosen at start. */
  baseUrl: () => string
  /** Takes over connections that ask for another protocol; without it none is. */
  upgrades?: UpgradeRouter
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

/** Builds the bare HTTP server: request ids (D6), problems (D4), security headers, one wide log line a request. */
export async function buildServer(options: ServerOptions): Promise<FastifyInstance> {
  const { logger, clock, ids, trustProxy, baseUrl, startTrace, upgrades } = options
  const server = Fastify({
    loggerInstance: logger as FastifyBaseLogger,
    // One line of ours a request; every line that comes of a request carries its id (D6).
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    bodyLimit: BODY_LIMIT_BYTES,
    trustProxy,
    requestTimeout: 30_000,
    forceCloseConnections: 'idle',
    // A request that comes while we stop, over a connection that was kept, is served like any other and is its last.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 256 },
    schemaController: { compilersFactory: { buildSerializer: buildSerializerCompiler } },
    exposeHeadRoutes: false,
    frameworkErrors: (error, request, reply) => {
      // What fails before any hook ran: a path that cannot be decoded.
      reply.header('x-request-id', request.id)
      return sendProblem(toProblem(error, request), request, reply, baseUrl())
    },
    clientErrorHandler: answerUnreadable,
    http: { shouldUpgradeCallback: (request: IncomingMessage) => upgrades?.takes(request.url) === true },
    genReqId: (raw) => {
      const given = raw.headers['x-request-id']
      return typeof given === 'string' && REQUEST_ID_PATTERN.test(given) ? given : ids.next<'request'>()
    },
  })
  server.setValidatorCompiler(compileValidator as never)
  if (upgrades) server.server.on('upgrade', upgrades.upgrade)
  const known = collectPaths(server)
  await server.register(formbody)
  keepRawBody(server)
  server.addHook('onRequest', (request, reply, done) => {
    request.startedAtMs = clock.now()
    if (startTrace)
      request.trace = startTrace({ method: request.method, requestId: request.id, headers: request.headers })
    reply.headers(ANSWER_HEADERS)
    reply.header('x-request-id', request.id)
    if (request.url.includes('%00'))
      return done(new Problem('malformed_request', 'The address holds %00, which no text here can.'))
    // Before a body is read: what it holds does not matter where no route takes it.
    done(request.is404 ? findRouteProblem(known, request) : undefined)
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
  server.setErrorHandler((error, request, reply) => sendProblem(toProblem(error, request), request, reply, baseUrl()))
  return server
}

/** Signatures are over the bytes as they came, so those are kept beside the parsed body. */
function keepRawBody(server: FastifyInstance): void {
  server.removeContentTypeParser(['application/json', 'text/plain'])
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    request.rawBody = body as Buffer
    if (body.length === 0) return done(null, undefined)
    try {
      // Fatal decoding: bytes that are no UTF-8 are no JSON either, and a stray one must not become U+FFFD silently.
      const text = new TextDecoder('utf-8', { fatal: true }).decode(body as Buffer)
      done(null, JSON.parse(text, checkMember))
    } catch (error) {
      done(error instanceof Problem ? error : new Problem('malformed_request', MALFORMED_BODY))
    }
  })
}

const MALFORMED_BODY = 'The body is not valid JSON in UTF-8. Check quotes, commas and braces.'

/**
 * A member named `__proto__` never becomes a prototype, and text that PostgreSQL cannot keep as it is (U+0000, half a
 * surrogate pair) is refused here rather than failing or changing later. Nesting deeper than the stack fails as JSON.
 */
function checkMember(this: unknown, key: string, value: unknown): unknown {
  if (key === '__proto__') throw new Problem('malformed_request', 'The body has a member named __proto__; remove it.')
  if (typeof value === 'string' && (value.includes('\u0000') || !value.isWellFormed()))
    throw new Problem('malformed_request', 'The body holds text with U+0000 or half a surrogate pair; remove it.')
  return value
}

type KnownPath = { method: string; pattern: RegExp }

/** Remembers which paths take which methods, so that a wrong method is told from a wrong path. */
function collectPaths(server: FastifyInstance): KnownPath[] {
  const known: KnownPath[] = []
  server.addHook('onRoute', ({ method, url }) => {
    const pattern = new RegExp(
      `^${url
        .replace(/[.+?^$()[\]\\]/g, '\\$&')
        .replace(/:\w+/g, '[^/]+')
        .replace(/\*/g, '.*')}$`,
    )
    for (const one of [method].flat()) known.push({ method: one, pattern })
  })
  return known
}

function findRouteProblem(known: KnownPath[], request: FastifyRequest): Problem {
  const path = request.url.split('?')[0] ?? '/'
  const methods = [...new Set(known.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))]
  if (methods.length === 0)
    return new Problem('not_found', 'There is nothing at this path. The API reference is at /docs.')
  const allow = methods.join(', ')
  return new Problem('method_not_allowed', `This path takes ${allow}.`, { headers: { allow } })
}

/** What a caller learns of an error. Everything unforeseen becomes one fixed sentence (D4). */
export function toProblem(error: unknown, request: FastifyRequest): Problem {
  if (error instanceof Problem) return error
  const { code, statusCode } = (error ?? {}) as FastifyError
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new Problem('body_too_large', 'Send at most 1 MiB.')
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

function sendProblem(problem: Problem, request: FastifyRequest, reply: FastifyReply, baseUrl: string) {
  request.problem = problem
  for (const [name, value] of Object.entries(problem.headers)) reply.header(name, value)
  return reply
    .code(problem.status)
    .header('content-type', 'application/problem+json')
    .header('cache-control', 'no-store')
    .serializer((body: unknown) => JSON.stringify(body))
    .send({
      type: `${baseUrl}/docs/errors/${problem.code}`,
      title: PROBLEMS[problem.code].title,
      status: problem.status,
      code: problem.code,
      detail: problem.detail,
      request_id: request.id,
      ...(problem.errors && { errors: problem.errors }),
    })
}

/** Answers bytes that are no HTTP request: there is no request to log or to give an id. */
function answerUnreadable(error: Error, socket: Socket): void {
  const { code, rawPacket } = error as { code?: string; rawPacket?: Buffer }
  if (code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  // A method that Node's parser does not know never becomes a request, so which methods its path takes is not looked up.
  const isUnknownMethod =
    code === 'HPE_INVALID_METHOD' && REQUEST_LINE_PATTERN.test(rawPacket?.toString('latin1', 0, 4096) ?? '')
  const head = isUnknownMethod
    ? `HTTP/1.1 405 Method Not Allowed\r\nallow: ${API_METHODS.join(', ')}`
    : 'HTTP/1.1 400 Bad Request'
  socket.end(`${head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`)
}

/** The path as it was declared, without what a caller filled in; null where there is no such route. */
function routePathOf(request: FastifyRequest): string | null {
  return request.routeOptions.config.route?.path ?? request.routeOptions.url ?? null
}

/** The one line of a request: ids first, then what happened (models, habit 14). Never a body, token or query value. */
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
