/**
 * The result of one POST, as data. The dispatcher decides on it and the ledger stores it, so it contains no resolved
 * address and no NUL (PostgreSQL refuses it), and its size is bounded.
 */
export type PostResult = PostResponse | PostFailure

/** Durations of the stages, in milliseconds; null for a stage that was not reached or not needed (a reused connection, http). */
export interface PostTimings {
  dnsMs: number | null
  connectMs: number | null
  tlsMs: number | null
  /** From the readiness of the connection to the end of the response headers. */
  firstByteMs: number | null
  totalMs: number
}

/** The receiver answered: final status line and headers arrived in time. */
export interface PostResponse {
  outcome: 'response'
  /** 200 to 999; never a 1xx. A 3xx is not followed. */
  statusCode: number
  /** At most the first 1 KiB of the body, as text that PostgreSQL accepts. */
  responseExcerpt: string
  responseHeaders: Record<string, string>
  /**
   * End of the body: complete, cut at the limit, cut at the deadline, or aborted by the receiver. The status counts in
   * each case: success is a 2xx status line within the deadline (docs/contract/delivery.md#statuses); the body is for
   * diagnosis only.
   */
  bodyEnd: 'complete' | 'cut' | 'deadline' | 'broken'
  durationMs: number
  timings: PostTimings
}

/**
 * The stage that failed (docs/contract/webhooks.md#callback-guard): the guard, the look-up or its time limit, the TCP
 * connection or its time limit, the TLS handshake, the deadline with an open connection, a connection that closed before
 * an answer, an answer that is not HTTP, a stop of this process.
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

export interface PostFailure {
  outcome: 'error'
  errorClass: PostErrorClass
  /** A constant such as `ECONNREFUSED` or `CERT_HAS_EXPIRED`; never text from the network. */
  errorCode: string
  durationMs: number
  timings: PostTimings
}

const EXCERPT_BYTES = 1024
const HEADER_VALUE_LENGTH = 512

/** The response headers that are stored for diagnosis. Never a cookie or a credential. */
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

/** The first 1 KiB of a body as text. Invalid UTF-8 and NUL become U+FFFD; a character cut in two is left out. */
export function buildExcerpt(body: Uint8Array): string {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const isCut = body.length > EXCERPT_BYTES
  return decoder.decode(body.subarray(0, EXCERPT_BYTES), { stream: isCut }).replaceAll('\0', '\uFFFD')
}

/** Selects the headers above, each as one line of at most 512 characters of printable ASCII. */
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
