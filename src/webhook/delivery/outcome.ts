import type { PostErrorClass } from '../../outbound/post-result.ts'

/**
 * The states of a dispatch (docs/contract/delivery.md#statuses) and their moves:
 *
 *   pending ---- 2xx --------------------> success
 *   pending ---- 3xx --------------------> failed
 *   pending ---- failed attempt 1..4 ----> retrying --- the same again
 *   retrying --- failed attempt 5 -------> exhausted
 *   any -------- replay: 2xx ------------> success,  3xx -> failed,  else -> exhausted
 *   pending, retrying --- webhook deleted -> cancelled
 *
 * `outcome.test.ts` walks every one of them.
 */
export type DispatchStatus = 'pending' | 'retrying' | 'success' | 'exhausted' | 'failed' | 'cancelled'

/** Who asked for an attempt. */
export type AttemptTrigger = 'schedule' | 'test' | 'replay'

/** The delays before the 2nd, 3rd, 4th and 5th POST: 1 m, 5 m, 30 m, 2 h (docs/contract/delivery.md#fixed-constants; docs/contract/delivery.md#retry-timing). */
export const RETRY_DELAYS_MS = [60_000, 300_000, 1_800_000, 7_200_000] as const

/** Automatic POSTs of one dispatch (docs/contract/delivery.md#fixed-constants). */
export const MAX_SCHEDULED_ATTEMPTS = 5

/** Why an attempt did not succeed. What a subscriber's side may read: a class, never an address (docs/contract/webhooks.md#callback-guard). */
export type ErrorClass =
  | PostErrorClass
  | 'redirect'
  | 'http_4xx'
  | 'http_5xx'
  | 'http_unexpected'
  /** The webhook has no secret yet (a legacy one): nothing can be signed. */
  | 'secret_missing'
  /** The stored secret does not open under SECRET_KEY. */
  | 'secret_unreadable'

/** What one attempt came to, as far as the decision needs it. */
export type AttemptResult = { statusCode: number } | { errorClass: ErrorClass }

/** Judges an attempt: undefined when it delivered, else the class of its failure. Success is any 2xx (docs/contract/delivery.md#statuses). */
export function classifyResult(result: AttemptResult): ErrorClass | undefined {
  if ('errorClass' in result) return result.errorClass
  const { statusCode } = result
  if (statusCode >= 200 && statusCode < 300) return undefined
  if (statusCode >= 300 && statusCode < 400) return 'redirect'
  if (statusCode >= 400 && statusCode < 500) return 'http_4xx'
  if (statusCode >= 500 && statusCode < 600) return 'http_5xx'
  return 'http_unexpected'
}

/** What becomes of a dispatch after an attempt. */
export interface OutcomeDecision {
  status: DispatchStatus
  /** When the next attempt is due; null when there is none. */
  nextAttemptAt: Date | null
  lastError: ErrorClass | null
  /** What it does to the webhook's `consecutive_failures` (docs/contract/delivery.md#failure-count). */
  failureCount: 'reset' | 'add' | 'keep'
}

/**
 * Decides what becomes of a dispatch (docs/contract/delivery.md#statuses; to docs/contract/delivery.md#replay). `attempts` counts this attempt too. An interrupted
 * attempt (our process went down under it) waits for nothing: whether it arrived is not known, so it is made again at once.
 */
export function decideOutcome(input: {
  trigger: AttemptTrigger
  isTest: boolean
  attempts: number
  result: AttemptResult
  endedAt: Date
  isWebhookDeleted: boolean
}): OutcomeDecision {
  const { trigger, attempts, endedAt } = input
  const error = classifyResult(input.result)
  if (error === undefined) return { status: 'success', nextAttemptAt: null, lastError: null, failureCount: 'reset' }
  // Tests and replays reset the count on success and never add to it (docs/contract/delivery.md#failure-count).
  const failureCount = trigger === 'replay' || input.isTest ? 'keep' : 'add'
  const end = (status: DispatchStatus) => ({ status, nextAttemptAt: null, lastError: error, failureCount }) as const
  if (error === 'redirect') return end('failed')
  if (trigger === 'replay' && error !== 'interrupted') return end('exhausted')
  if (input.isWebhookDeleted) return { ...end('cancelled'), failureCount: 'keep' }
  if (trigger !== 'replay' && attempts >= MAX_SCHEDULED_ATTEMPTS) return end('exhausted')
  const delayMs = error === 'interrupted' ? 0 : (RETRY_DELAYS_MS[attempts - 1] ?? 0)
  const nextAttemptAt = new Date(endedAt.getTime() + delayMs)
  return { status: 'retrying', nextAttemptAt, lastError: error, failureCount: 'keep' }
}
