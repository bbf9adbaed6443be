import type { DispatchId, WebhookId } from '../../base/id.ts'
import type { Claim } from '../../delivery/policy.ts'
import { type AttemptResult, classifyResult, type ErrorClass } from '../../delivery/post/attempt-result.ts'
import type { PostOutcome } from '../../delivery/post/signed-post.ts'

/** A claim with the facts of its attempt. */
export interface ClaimedAttempt extends Claim {
  id: DispatchId
  attempt: number
  trigger: AttemptTrigger
  isTest: boolean
  /** A replay of a waiting row, whose schedule continues after it. */
  keepsSchedule: boolean
  webhook: WebhookId
  /** The event type of the dispatch. */
  event: string
  startedAt: Date
}

/** An ended attempt. `keepsSchedule` is false by default. */
export interface EndedAttempt extends Omit<ClaimedAttempt, 'keepsSchedule'>, PostOutcome {
  keepsSchedule?: boolean
  workerId: string
  /** 32 hex digits; null when the attempt was lost with its process. */
  traceId: string | null
  endedAt: Date
}

export interface RecordedAttempt {
  attempt: EndedAttempt
  decision: OutcomeDecision
  /** False when another process had claimed the dispatch: the result is void. */
  isRecorded: boolean
}

/** A webhook whose failure state changed, for the log. */
export interface WebhookNotice {
  webhook: WebhookId
  event: string
  consecutiveFailures: number
}

/**
 * The states of a dispatch (docs/contract/delivery.md#statuses) and their moves:
 *
 *   pending ---- 2xx --------------------> success
 *   pending ---- 3xx, 410 ---------------> failed
 *   pending ---- failed attempt 1..4 ----> retrying --- the same again
 *   retrying --- failed attempt 5 -------> exhausted
 *   ended ------ replay: 2xx ------------> success,  3xx, 410 -> failed,  else -> exhausted
 *   pending, retrying --- replay --------> the next attempt of the schedule, made now
 *   pending, retrying --- webhook deleted -> cancelled
 *
 * `outcome.test.ts` walks every one of them.
 */
export type DispatchStatus = 'pending' | 'retrying' | 'success' | 'exhausted' | 'failed' | 'cancelled'

export type AttemptTrigger = 'schedule' | 'test' | 'replay'

/** The delays before the 2nd, 3rd, 4th and 5th POST: 1 m, 5 m, 30 m, 2 h (docs/contract/delivery.md#fixed-constants; docs/contract/delivery.md#retry-timing). */
export const RETRY_DELAYS_MS = [60_000, 300_000, 1_800_000, 7_200_000] as const

/** Automatic POSTs of one dispatch (docs/contract/delivery.md#fixed-constants). */
export const MAX_SCHEDULED_ATTEMPTS = 5

/** The receiver is gone from this URL (RFC 9110 section 15.5.11; docs/contract/delivery.md#gone). */
const GONE = 410

export interface OutcomeDecision {
  status: DispatchStatus
  /** Due time of the next attempt; null without one. */
  nextAttemptAt: Date | null
  lastError: ErrorClass | null
  /** Effect on the webhook's `consecutive_failures` (docs/contract/delivery.md#failure-count). */
  failureCount: 'reset' | 'add' | 'keep'
}

/**
 * Decides the next state of a dispatch (docs/contract/delivery.md#statuses, docs/contract/delivery.md#replay).
 * `attempts` counts this attempt too. An attempt interrupted by a stop or crash of the process is repeated at once,
 * since it is unknown whether it arrived; so is one whose subscriber gave the delivery back.
 */
export function decideOutcome(input: {
  trigger: AttemptTrigger
  isTest: boolean
  /** A replay of a waiting row, whose schedule continues after it. Default: false. */
  keepsSchedule?: boolean
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
  const isGone = 'statusCode' in input.result && input.result.statusCode === GONE
  if (error === 'redirect' || isGone) return end('failed')
  const isExtra = trigger === 'replay' && input.keepsSchedule !== true
  if (isExtra && error !== 'interrupted') return end('exhausted')
  if (input.isWebhookDeleted) return { ...end('cancelled'), failureCount: 'keep' }
  if (!isExtra && attempts >= MAX_SCHEDULED_ATTEMPTS) return end('exhausted')
  const delayMs = error === 'interrupted' || error === 'returned' ? 0 : (RETRY_DELAYS_MS[attempts - 1] ?? 0)
  const nextAttemptAt = new Date(endedAt.getTime() + delayMs)
  return { status: 'retrying', nextAttemptAt, lastError: error, failureCount: 'keep' }
}
