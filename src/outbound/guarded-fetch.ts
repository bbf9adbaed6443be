import type { Dispatcher } from 'undici'
import { type CallbackRules, checkCallbackUrl, findLiteral } from './callback-url.ts'
import { type Connection, openConnection } from './connection.ts'
import type { Lookup } from './dns.ts'
import { startDeadline, watchLoop } from './loop-watch.ts'
import { OwnFault } from './own-fault.ts'
import type { PostErrorClass } from './post-result.ts'
import { resolveTarget } from './resolve.ts'
import { classifyError } from './send-request.ts'

/** Limits of one request, in milliseconds: the look-up, TCP and TLS, and everything together. */
const DNS_TIMEOUT_MS = 3_000
const CONNECT_TIMEOUT_MS = 5_000
const TOTAL_TIMEOUT_MS = 10_000

/** Limit of an answer, in bytes. Discovery documents and key sets have some 10 KiB. */
const ANSWER_LIMIT_BYTES = 262_144

/** A request whose answer was refused or did not come. `code` is a constant for the log; it names no address. */
export class GuardedFetchError extends Error {
  readonly code: string
  /** The stage that failed. */
  readonly errorClass: PostErrorClass
  /** The request was not sent, for want of something of this process. */
  readonly ownFault: OwnFault | undefined
  constructor(code: string, errorClass: PostErrorClass, ownFault?: OwnFault) {
    super(`request not answered: ${code}`)
    this.name = 'GuardedFetchError'
    this.code = code
    this.errorClass = errorClass
    this.ownFault = ownFault
  }
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
}

/**
 * Builds a `fetch` for requests whose URLs come from outside, such as the endpoints of a discovery document. It applies the
 * rules of callbacks (docs/contract/webhooks.md#callback-guard): https, a public host, one look-up, only checked addresses.
 * A redirect is returned, not followed. Rejects with a `GuardedFetchError`.
 */
export function buildGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { lookup, rules } = options
  const watch = watchLoop()

  async function fetchChecked(target: URL, request: FetchOptions & { signal: AbortSignal }): Promise<Response> {
    const { signal } = request
    const resolution = await resolveTarget({ lookup, watch }, target, { rules, limitMs: DNS_TIMEOUT_MS, signal }).catch(
      refuseOwnFault,
    )
    if (!resolution.ok) throw new GuardedFetchError(resolution.errorCode, resolution.errorClass)
    const { addresses } = resolution
    const hostname = findLiteral(target.hostname) ?? target.hostname
    const connection = openConnection(
      { origin: target.origin, hostname, addresses },
      // The marks of the connection are not read here, so it needs no clock.
      { connectTimeoutMs: CONNECT_TIMEOUT_MS, now: () => 0, watch, ca: options.ca },
    )
    try {
      return await send(connection, target, request)
    } finally {
      connection.destroy()
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

async function send(
  connection: Connection,
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
    return new Response(isBodyless(answer.statusCode) ? null : body, {
      status: answer.statusCode,
      headers: readHeaders(answer.headers),
    })
  } catch (error) {
    if (error instanceof GuardedFetchError) throw error
    if (error instanceof OwnFault) refuseOwnFault(error)
    if (request.signal.aborted) throw new GuardedFetchError('TIMEOUT', 'timeout')
    throw new GuardedFetchError(readCode(error), classifyError(error as Error).errorClass)
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
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) read.append(name, one)
  }
  return read
}

/** The code of an error, without its text, which contains addresses. */
function readCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? code : 'FAILED'
}
