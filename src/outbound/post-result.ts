/**
 * What one POST came to. Data, never an exception: the dispatcher decides over it and the ledger keeps it, so nothing in it may name an
 * address that a look-up found, hold a NUL (PostgreSQL takes none) or grow without bound.
 */
export type PostResult = PostResponse | PostFailure

/** Where the time went, in milliseconds; null for a stage that was not reached or not needed (a kept connection, plain http). */
export interface PostTimings {
  dnsMs: number | null
  connectMs: number | null
  tlsMs: number | null
  /** From the moment the connection was ready to the end of the response headers. */
  firstByteMs: number | null
  totalMs: number
}

/** The receiver answered: its final status line and headers arrived in time. */
export interface PostResponse {
  outcome: 'response'
  /** 200 to 999; never a 1xx. A 3xx is not followed. */
  statusCode: number
  /** At most the first 1 KiB of the body, as text PostgreSQL takes. */
  responseExcerpt: string
  responseHeaders: Record<string, string>
  /**
   * How reading the body ended: all of it, cut at our limit, cut at the deadline, or broken off by the receiver. The status
   * counts in each case: success is a 2xx within the deadline (docs/contract/delivery.md#statuses), and the status line says it; the body is only kept for reading.
   */
  bodyEnd: 'complete' | 'cut' | 'deadline' | 'broken'
  durationMs: number
  timings: PostTimings
}

/**
 * The stage that failed (docs/contract/webhooks.md#callback-guard): the guard, the look-up (its time limit too), the TCP connection (its limit too), the TLS handshake; the
 * deadline with a connection up; the connection broken off before an answer; an answer that is not HTTP; our own stop.
 */
export type PostErrorClass =
  | 'blocked_address'
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'interrupted'

/** No answer. */
export interface PostFailure {
  outcome: 'error'
  errorClass: PostErrorClass
  /** A constant such as `ECONNREFUSED` or `CERT_HAS_EXPIRED`; never text of the network. */
  errorCode: string
  durationMs: number
  timings: PostTimings
}

const EXCERPT_BYTES = 1024
const HEADER_VALUE_LENGTH = 512

/** The response headers worth keeping to find a fault. Never a cookie or a credential. */
const KEPT_HEADERS = [
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'location',
  'retry-after',
  'server',
  'via',
  'x-request-id',
]

/** The first 1 KiB of a body as text. Bytes that are not UTF-8, and NULs, become U+FFFD; a character cut in two is left out. */
export function buildExcerpt(body: Uint8Array): string {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const isCut = body.length > EXCERPT_BYTES
  return decoder.decode(body.subarray(0, EXCERPT_BYTES), { stream: isCut }).replaceAll('\0', '\uFFFD')
}

/** Keeps the headers named above, each as one line of at most 512 characters of printable ASCII. */
export function pickResponseHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of KEPT_HEADERS) {
    const value = headers[name]
    if (value === undefined) continue
    const text = Array.isArray(value) ? value.join(', ') : value
    kept[name] = text.slice(0, HEADER_VALUE_LENGTH).replaceAll(/[^\x20-\x7e]/g, '?')
  }
  return kept
}
