import type { Dispatcher } from 'undici'
import { readMonotonicMs } from '../base/clock.ts'
import { type CallbackRules, checkCallbackUrl, findLiteral } from './guard/callback-url.ts'
import type { Lookup } from './guard/dns.ts'
import { resolveTarget } from './guard/resolve.ts'
import { startDeadline, watchLoop } from './own-fault/loop-watch.ts'
import { OwnFault } from './own-fault/own-fault.ts'
import { readErrorCode } from './send/connection.ts'
import {
  buildConnectionPool,
  type ConnectionPool,
  type IdleCaps,
  type PooledConnection,
} from './send/connection-pool.ts'
import { readKeepAlive } from './send/idle-limit.ts'
import type { PostErrorClass } from './send/post-result.ts'
import { classifyError } from './send/send-request.ts'

/** Limits of one request, in milliseconds: the look-up, TCP and TLS, and everything together. */
const DNS_TIMEOUT_MS = 3_000
const CONNECT_TIMEOUT_MS = 5_000
const TOTAL_TIMEOUT_MS = 10_000

/** Limit of an answer, in bytes. Discovery documents and key sets have some 10 KiB. */
const ANSWER_LIMIT_BYTES = 262_144

const IDLE_CAPS: IdleCaps = { perTarget: 4, total: 64 }

/** Methods that may be sent twice (RFC 9110 section 9.2.2). */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE'])

/** A request whose answer was refused or did not come. `code` is a constant for the log; it names no address. */
export class GuardedFetchError extends Error {
  readonly code: string
  readonly errorClass: PostErrorClass
  /** The request was not sent for a fault of this process. */
  readonly ownFault: OwnFault | undefined
  constructor(code: string, errorClass: PostErrorClass, ownFault?: OwnFault) {
    super(`request not answered: ${code}`)
    this.name = 'GuardedFetchError'
    this.code = code
    this.errorClass = errorClass
    this.ownFault = ownFault
  }
}

/** The fault of this process behind an error of a guarded request, also a wrapped one; undefined for none. */
export function findOwnFault(error: unknown): OwnFault | undefined {
  for (let at = error, depth = 0; at !== undefined && at !== null && depth < 5; depth += 1) {
    if (at instanceof GuardedFetchError) return at.ownFault
    at = (at as { cause?: unknown }).cause
  }
  return undefined
}

/** The parts of the Fetch API that OAuth clients use. */
export interface FetchOptions {
  method: string
  headers: Record<string, string>
  body?: unknown
  signal?: AbortSignal
}

/** A `fetch` that dials only checked addresses, follows no redirect and reads a bounded answer. */
export type GuardedFetch = (url: string, options: FetchOptions) => Promise<Response>

export interface GuardedFetchOptions {
  lookup: Lookup
  /** `allowedPrivateTargets` are exempt from the rules for hosts and addresses, never from the rule for https. */
  rules: CallbackRules
  /** Certificate authorities in place of the system's, in PEM. For tests and private deployments. */
  ca?: string | undefined
  totalTimeoutMs?: number
  /** Monotonic milliseconds, by which kept connections age. */
  now?: () => number
}

/**
 * Builds a `fetch` for requests whose URLs come from outside, such as the endpoints of a discovery document. It applies the
 * rules of callbacks (docs/contract/webhooks.md#callback-guard): https, a public host, one look-up, only checked addresses.
 * A redirect is returned, not followed. Connections are kept for a few seconds, and used again by requests whose own look-up
 * returned the same addresses; none of them keeps the process alive. Rejects with a `GuardedFetchError`.
 */
export function buildGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { lookup, rules } = options
  const watch = watchLoop()
  const now = options.now ?? readMonotonicMs
  const pool = buildConnectionPool({ connectTimeoutMs: CONNECT_TIMEOUT_MS, now, watch, ca: options.ca }, IDLE_CAPS)

  async function fetchChecked(target: URL, request: FetchOptions & { signal: AbortSignal }): Promise<Response> {
    const { signal } = request
    const resolution = await resolveTarget({ lookup, watch }, target, { rules, limitMs: DNS_TIMEOUT_MS, signal }).catch(
      refuseOwnFault,
    )
    if (!resolution.ok) throw new GuardedFetchError(resolution.errorCode, resolution.errorClass)
    const { addresses } = resolution
    const hostname = findLiteral(target.hostname) ?? target.hostname
    for (;;) {
      const connection = pool.take({ origin: target.origin, hostname, addresses })
      const result = await use(pool, connection, { target, request })
      if (result !== 'closed meanwhile') return result
    }
  }

  return async (url, request) => {
    const checked = checkCallbackUrl(url, rules)
    if (!checked.ok) throw new GuardedFetchError(checked.code.toUpperCase(), 'blocked_address')
    if (checked.url.protocol !== 'https:' && !rules.allowHttp)
      throw new GuardedFetchError('URL_NOT_HTTPS', 'blocked_address')
    const target = checked.url
    const over = new AbortController()
    const limit = startDeadline(watch, options.totalTimeoutMs ?? TOTAL_TIMEOUT_MS, () => over.abort())
    const signal = request.signal ? AbortSignal.any([request.signal, over.signal]) : over.signal
    try {
      return await fetchChecked(target, { ...request, signal })
    } finally {
      limit.cancel()
    }
  }
}

function refuseOwnFault(error: unknown): never {
  if (error instanceof OwnFault) throw new GuardedFetchError(error.code, 'connect', error)
  throw error
}

/** Sends a request over a connection, and keeps the connection when the answer was read to its end. */
async function use(
  pool: ConnectionPool,
  connection: PooledConnection,
  { target, request }: { target: URL; request: FetchOptions & { signal: AbortSignal } },
): Promise<Response | 'closed meanwhile'> {
  const isReused = connection.idle.beforeMs !== null
  try {
    const response = await send(connection, target, request)
    const keptMs = readKeepAlive(response.headers.get('keep-alive') ?? undefined)
    if (keptMs !== undefined) pool.noteAnnounced(connection, keptMs)
    pool.giveBack(connection)
    return response
  } catch (error) {
    pool.drop(connection)
    const isReset = isReused && error instanceof GuardedFetchError && error.errorClass === 'reset'
    if (isReset) pool.noteReset(connection)
    if (isReset && REPEATABLE.has(request.method)) return 'closed meanwhile'
    throw error
  }
}

async function send(
  connection: PooledConnection,
  url: URL,
  request: FetchOptions & { signal: AbortSignal },
): Promise<Response> {
  connection.expectResponse()
  let answer: Dispatcher.ResponseData
  try {
    answer = await connection.client.request({
      path: url.pathname + url.search,
      method: request.method as Dispatcher.HttpMethod,
      headers: { ...request.headers, 'accept-encoding': 'identity' },
      body: readBody(request.body),
      signal: request.signal,
    })
    const body = await readAnswer(answer)
    if (answer.statusCode > 599) throw new GuardedFetchError('STATUS_UNKNOWN', 'protocol')
    return new Response(isBodyless(answer.statusCode) ? null : body, {
      status: answer.statusCode,
      headers: readHeaders(answer.headers),
    })
  } catch (error) {
    if (error instanceof GuardedFetchError) throw error
    if (error instanceof OwnFault) refuseOwnFault(error)
    if (request.signal.aborted) throw new GuardedFetchError('TIMEOUT', 'timeout')
    throw new GuardedFetchError(readErrorCode(error), classifyError(error as Error).errorClass)
  }
}

function readBody(body: unknown): string | null {
  if (body === undefined || body === null) return null
  if (typeof body === 'string') return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new TypeError('a guarded request takes a text or a form')
}

async function readAnswer(answer: Dispatcher.ResponseData): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > ANSWER_LIMIT_BYTES) throw new GuardedFetchError('ANSWER_TOO_LARGE', 'protocol')
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}

function isBodyless(status: number): boolean {
  return status === 204 || status === 205 || status === 304
}

function readHeaders(headers: Dispatcher.ResponseData['headers']): Headers {
  const read = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    for (const item of Array.isArray(value) ? value : [value]) if (item !== undefined) read.append(name, item)
  }
  return read
}
