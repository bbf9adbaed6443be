import type { Random } from '../../base/random.ts'
import { type AttemptResult, classifyResult, type ErrorClass } from '../../delivery/post/attempt-result.ts'

/**
 * The states of a delivery (docs/contract/provisioning.md#provisioning-delivery) and their moves:
 *
 *   pending ---- 2xx --------------------> delivered
 *   pending ---- 4xx, 3xx ----------------> failed
 *   pending ---- failed attempt 1..7 ----> retrying --- the same again
 *   retrying --- failed attempt 8 -------> dead_letter
 *   failed, dead_letter, delivered --- replay: 2xx -> delivered, 4xx -> failed, else -> dead_letter
 *   retrying --- replay ----------------> the next attempt of the schedule, made now
 *   pending, retrying --- target deleted -> cancelled
 *
 * `outcome.test.ts` walks every one of them.
 */
export type DeliveryStatus = 'pending' | 'retrying' | 'delivered' | 'failed' | 'dead_letter' | 'cancelled'

/** Trigger of an attempt. */
export type DeliveryTrigger = 'schedule' | 'replay'

/** Automatic POSTs of one delivery (docs/contract/provisioning.md#provisioning-delivery). */
export const MAX_PROVISIONING_ATTEMPTS = 8

/** Maximum wait before the 2nd POST; it doubles with each further one, up to `LONGEST_WAIT_MS`. */
const FIRST_WAIT_MS = 30_000
const LONGEST_WAIT_MS = 3_600_000

/** Maximum wait after attempt `attempts`, in milliseconds. */
export function findWaitLimit(attempts: number): number {
  return Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.max(0, attempts - 1))
}

/**
 * The wait after attempt `attempts`: any number of milliseconds from 1 to its limit, each as likely as the others (full
 * jitter), so that deliveries that failed together are not retried together.
 */
export function chooseWait(random: Random, attempts: number): number {
  const share = random.bytes(6).readUIntBE(0, 6) / 2 ** 48
  return 1 + Math.floor(share * findWaitLimit(attempts))
}

/** State of a delivery after an attempt. */
export interface DeliveryDecision {
  status: DeliveryStatus
  /** Due time of the next attempt; null without one. */
  nextAttemptAt: Date | null
  lastError: ErrorClass | null
}

/**
 * Decides the next state of a delivery. `attempts` includes this attempt, `waitMs` is the result of `chooseWait`. A
 * redirect is not followed and fails the delivery, as for a webhook. An attempt interrupted by a stop or crash of the
 * process is repeated at once, since it is unknown whether it arrived. `retryAfterMs`: the refusal of a SCIM service
 * that is not final, or an attempt that a failure of the database interrupted.
 */
export function decideDelivery(input: {
  trigger: DeliveryTrigger
  /** A replay of a waiting delivery, whose schedule continues after it. Default: false. */
  keepsSchedule?: boolean
  attempts: number
  result: AttemptResult
  endedAt: Date
  waitMs: number
  retryAfterMs?: number
  isTargetDeleted: boolean
}): DeliveryDecision {
  const { trigger, attempts, endedAt, waitMs, retryAfterMs } = input
  const error = classifyResult(input.result)
  const end = (status: DeliveryStatus) => ({ status, nextAttemptAt: null, lastError: error ?? null })
  if (error === undefined) return end('delivered')
  if (error === 'redirect' || (error === 'http_4xx' && retryAfterMs === undefined)) return end('failed')
  if (input.isTargetDeleted) return end('cancelled')
  const isExtra = trigger === 'replay' && input.keepsSchedule !== true
  if (isExtra && error !== 'interrupted') return end('dead_letter')
  if (!isExtra && attempts >= MAX_PROVISIONING_ATTEMPTS) return end('dead_letter')
  const isAtOnce = error === 'interrupted' && retryAfterMs === undefined
  const delayMs = isAtOnce ? 0 : Math.max(waitMs, retryAfterMs ?? 0)
  return { status: 'retrying', nextAttemptAt: new Date(endedAt.getTime() + delayMs), lastError: error }
}
