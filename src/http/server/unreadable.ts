import type { Socket } from 'node:net'
import { buildProblemBody, Problem } from '../problem/problem.ts'
import type { KnownPaths } from '../route/known-path.ts'

/** Not imported: an import reads every export of `node:http`, and with it loads the WebSocket and the fetch of Node. */
const { STATUS_CODES } = process.getBuiltinModule('node:http')

interface ReadError extends Error {
  code?: string
  /** The last packet, which holds the offending bytes. */
  rawPacket?: Buffer
}

/** A request line (RFC 9112 section 3): any method, the target, the version. */
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) (\S{1,8192}) HTTP\/1\.[01]\r?\n/

/** The parser's codes for a method that is unknown, or known from another protocol only. */
const METHOD_CODES = ['HPE_INVALID_METHOD', 'HPE_INVALID_CONSTANT']

/** Time limit for the peer to read the answer and close, in milliseconds. */
const CLOSE_LIMIT_MS = 5_000

/** The problem of an unreadable request. An unknown method is a 405 on a known path and a 404 on others. */
export function classifyReadError({ code, rawPacket }: ReadError, known: Pick<KnownPaths, 'buildProblem'>): Problem {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new Problem('headers_too_large', 'Send headers and an address of at most 16 KiB together.')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new Problem('request_timeout', 'The request did not arrive in time. Send it again, on a new connection.')
  if (code !== undefined && METHOD_CODES.includes(code)) {
    const [, , target] = REQUEST_LINE.exec(rawPacket?.subarray(0, 8_400).toString('latin1') ?? '') ?? []
    if (target !== undefined) return known.buildProblem(target)
  }
  return new Problem('malformed_request', 'The connection received bytes that are not an HTTP request.')
}

/** Writes a problem to a connection without a parsed request, and ends it. */
export function endWithProblem(socket: Socket, problem: Problem, names: { requestId: string; baseUrl: string }): void {
  const body = JSON.stringify(buildProblemBody(problem, names))
  const headers = {
    ...problem.headers,
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-request-id': names.requestId,
    connection: 'close',
  }
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.setTimeout(CLOSE_LIMIT_MS, () => socket.destroy())
  socket.end(`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${head.join('')}\r\n${body}`)
}
