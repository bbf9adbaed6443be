import { type Dispatcher, errors } from 'undici'
import { OwnFault } from '../own-fault/own-fault.ts'
import { type Connection, DialError, readErrorCode } from './connection.ts'
import type { ConnectionPool, PooledConnection } from './connection-pool.ts'
import { readKeepAlive } from './idle-limit.ts'
import { AnswerFloodError } from './interim-response.ts'
import type { PostEnd } from './post-end.ts'
import {
  buildExcerpt,
  type PostErrorClass,
  type PostFailure,
  type PostResponse,
  type PostResult,
  type PostTimings,
  pickResponseHeaders,
} from './post-result.ts'

/** Limit of a response body, in bytes; beyond it the connection is closed. */
const MAX_RESPONSE_BODY_BYTES = 16_384

export interface PostRequest {
  url: string
  headers: Record<string, string>
  /** The signed bytes, sent unchanged. */
  body: string | Buffer
  /** Stops the POST; the result is `interrupted`, and the receiver may have received it. */
  signal?: AbortSignal | undefined
}

export interface PostRun {
  request: PostRequest
  startedAt: number
  /** Monotonic milliseconds. */
  now: () => number
  end: PostEnd
  dnsMs: number | null
}

interface Reception {
  dispatchedAt: number
  statusCode: number | undefined
  headers: Record<string, string | string[] | undefined>
  headersAt: number | undefined
  chunks: Buffer[]
  size: number
}

/**
 * Writes the request to the connection and reads the answer. Settles once: when the body is read, when it reaches the
 * limit, when the connection fails, or when it is ended; in all cases but the first it closes the connection. So a
 * POST that was reported as timed out is not sent later. Rejects with an `OwnFault` where nothing could be sent.
 */
export function exchange(
  line: { pool: ConnectionPool; connection: PooledConnection; path: string },
  run: PostRun,
): Promise<PostResult> {
  const { pool, connection, path } = line
  const { promise, resolve, reject } = Promise.withResolvers<PostResult>()
  const got = startReception(run)
  let isSettled = false

  const settle = (result: PostResult, isReusable: boolean) => {
    isSettled = true
    run.end.onEnd = undefined
    if (isReusable) pool.giveBack(connection)
    else pool.drop(connection)
    resolve(result)
  }
  const giveUp = (fault: OwnFault) => {
    isSettled = true
    run.end.onEnd = undefined
    pool.drop(connection)
    reject(fault)
  }
  const answer = (bodyEnd: PostResponse['bodyEnd']) =>
    settle(buildResponse(run, { connection, got, bodyEnd }), bodyEnd === 'complete')
  const fail = (errorClass: PostErrorClass, errorCode: string) =>
    settle(buildFailure(run, errorClass, errorCode, { connection, got }), false)
  const onEnd = () => {
    if (isSettled) return
    if (run.end.reason === 'stop') return fail('interrupted', 'STOPPED')
    if (got.statusCode !== undefined) return answer('deadline')
    // After a slow look-up the deadline can expire while dialling.
    if (isDialling(connection, got))
      return run.end.reason === 'stalled' ? giveUp(new OwnFault('STALLED')) : fail('connect', 'CONNECT_TIMEOUT')
    return fail('timeout', 'NO_RESPONSE_IN_TIME')
  }

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart: () => connection.expectResponse(),
    onResponseStart: (_controller, statusCode, headers) => {
      if (isSettled || statusCode < 200) return
      got.statusCode = statusCode
      got.headers = headers
      got.headersAt = run.now()
      const keptMs = readKeepAlive(headers['keep-alive'])
      if (keptMs !== undefined) pool.noteAnnounced(connection, keptMs)
    },
    onResponseData: (_controller, chunk) => {
      if (isSettled) return
      got.chunks.push(chunk.subarray(0, MAX_RESPONSE_BODY_BYTES - got.size))
      got.size += chunk.length
      if (got.size > MAX_RESPONSE_BODY_BYTES) answer('cut')
    },
    onResponseEnd: () => {
      if (!isSettled) answer('complete')
    },
    onResponseError: (_controller, error) => {
      if (isSettled) return
      const fault = error instanceof OwnFault ? error : findUnsent(error)
      if (fault) return giveUp(fault)
      if (got.statusCode !== undefined) return answer('broken')
      const { errorClass, errorCode } = classifyError(error)
      if (errorClass === 'reset') pool.noteReset(connection)
      fail(errorClass, errorCode)
    },
  }

  run.end.onEnd = onEnd
  const { body, headers } = run.request
  try {
    const sent = { ...headers, 'accept-encoding': 'identity' }
    connection.client.dispatch({ path, method: 'POST', headers: sent, body }, handler)
  } catch {
    if (!isSettled) fail('protocol', 'REQUEST_INVALID')
  }
  return promise
}

/** A lack of descriptors behind the handshake, where undici loads its parser: nothing was written yet. */
function findUnsent(error: unknown): OwnFault | undefined {
  const code = readErrorCode(error)
  return code === 'EMFILE' || code === 'ENFILE' ? new OwnFault(code) : undefined
}

function startReception(run: PostRun): Reception {
  return { dispatchedAt: run.now(), statusCode: undefined, headers: {}, headersAt: undefined, chunks: [], size: 0 }
}

/** Whether this POST's connection is being opened: it was started for this POST, and is not ready. */
function isDialling(connection: Connection, got: Reception): boolean {
  const { dialledAt, readyAt } = connection.marks
  return dialledAt !== null && dialledAt >= got.dispatchedAt && readyAt === null
}

/** Classifies the stage of a failure by the code of the error. */
export function classifyError(error: Error): { errorClass: PostErrorClass; errorCode: string } {
  if (error instanceof DialError) return { errorClass: error.stage, errorCode: error.code }
  if (error instanceof AnswerFloodError) return { errorClass: 'protocol', errorCode: error.code }
  // By its class: undici 8 omits the parser's code.
  if (error instanceof errors.HTTPParserError) return { errorClass: 'protocol', errorCode: 'INVALID_HTTP' }
  const errorCode = readErrorCode(error)
  // undici uses one code for a closed connection and for an unexpected response.
  if (errorCode === 'UND_ERR_SOCKET') {
    const isNonsense = error.message === 'bad response' || error.message === 'bad upgrade'
    return isNonsense
      ? { errorClass: 'protocol', errorCode: 'UNEXPECTED_RESPONSE' }
      : { errorClass: 'reset', errorCode: 'CLOSED_BY_RECEIVER' }
  }
  if (errorCode === 'UND_ERR_HEADERS_OVERFLOW') return { errorClass: 'protocol', errorCode: 'HEADERS_TOO_LARGE' }
  if (errorCode === 'UND_ERR_INVALID_ARG') return { errorClass: 'protocol', errorCode: 'REQUEST_INVALID' }
  if (errorCode.startsWith('UND_ERR_')) return { errorClass: 'protocol', errorCode }
  // A TLS 1.3 server requests a client certificate after the handshake.
  if (errorCode.startsWith('ERR_SSL_')) return { errorClass: 'tls', errorCode }
  return { errorClass: 'reset', errorCode }
}

function buildResponse(
  run: PostRun,
  input: { connection: Connection; got: Reception; bodyEnd: PostResponse['bodyEnd'] },
): PostResponse {
  const { connection, got, bodyEnd } = input
  const timings = buildTimings(run, { connection, got })
  return {
    outcome: 'response',
    statusCode: got.statusCode!,
    responseExcerpt: buildExcerpt(got.chunks.length === 1 ? got.chunks[0]! : Buffer.concat(got.chunks)),
    responseHeaders: pickResponseHeaders(got.headers),
    bodyEnd,
    durationMs: Math.round(timings.totalMs),
    timings,
  }
}

/** Builds the result of a POST without an answer; `reached` when a connection was tried. */
export function buildFailure(
  run: PostRun,
  errorClass: PostErrorClass,
  errorCode: string,
  reached?: { connection: Connection; got: Reception },
): PostFailure {
  const timings = buildTimings(run, reached)
  return { outcome: 'error', errorClass, errorCode, durationMs: Math.round(timings.totalMs), timings }
}

function buildTimings(run: PostRun, reached: { connection: Connection; got: Reception } | undefined): PostTimings {
  const totalMs = roundMs(run.now() - run.startedAt)
  const none = {
    dnsMs: run.dnsMs === null ? null : roundMs(run.dnsMs),
    connectMs: null,
    tlsMs: null,
    firstByteMs: null,
  }
  if (reached === undefined) return { ...none, totalMs }
  const { got, connection } = reached
  const { dialledAt, connectedAt, readyAt } = connection.marks
  const isFresh = dialledAt !== null && dialledAt >= got.dispatchedAt
  const isTls = connection.isTls
  const readyForUsAt = isFresh ? readyAt : got.dispatchedAt
  return {
    ...none,
    connectMs: isFresh && connectedAt !== null ? roundMs(connectedAt - dialledAt) : null,
    tlsMs: isFresh && isTls && connectedAt !== null && readyAt !== null ? roundMs(readyAt - connectedAt) : null,
    firstByteMs: got.headersAt !== undefined && readyForUsAt !== null ? roundMs(got.headersAt - readyForUsAt) : null,
    totalMs,
  }
}

/** Rounds to a tenth of a millisecond. */
function roundMs(lengthMs: number): number {
  return Math.round(lengthMs * 10) / 10
}
