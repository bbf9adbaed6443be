/** Result of one try: an answer, or none. */
export interface Try {
  /** Of the answer; undefined when none came. */
  status: number | undefined
  code: string | undefined
  /** Wait that `Retry-After` asks for, ms. */
  retryAfterMs: number | undefined
  /** How many tries there were before it. */
  before: number
}

/** Which requests are sent again, and when. */
export interface RetryRules {
  maxRetries: number
  /** Whether the API makes sure that sending the request again changes nothing: a read, or a change with a key. */
  isRepeatable: boolean
}

/** Full jitter grows up to this wait, ms. */
const BASE_MS = 250
const CEILING_MS = 8_000

/** A longer wait is for the caller to decide, ms. */
const LONGEST_WAIT_MS = 30_000

const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([429, 500, 502, 503, 504])

/**
 * How long to wait before a request is sent again, ms; undefined when it is not. Nothing is repeated that the API could do
 * twice. `random` is in [0, 1). Pure.
 */
export function decideRetry(made: Try, rules: RetryRules, random: () => number): number | undefined {
  if (!rules.isRepeatable || made.before >= rules.maxRetries || !isTransient(made)) return undefined
  const waitMs = random() * Math.min(CEILING_MS, BASE_MS * 2 ** made.before)
  if (made.retryAfterMs === undefined) return waitMs
  return made.retryAfterMs > LONGEST_WAIT_MS ? undefined : made.retryAfterMs + waitMs
}

function isTransient({ status, code }: Try): boolean {
  return status === undefined || TRANSIENT_STATUSES.has(status) || code === 'idempotency_in_progress'
}

/** The wait that `Retry-After` asks for, ms (RFC 9110 section 10.2.3); undefined for anything but whole seconds. */
export function readRetryAfter(header: string | null): number | undefined {
  return header !== null && /^\d{1,9}$/.test(header) ? Number(header) * 1000 : undefined
}
