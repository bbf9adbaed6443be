import { createHash } from 'node:crypto'

/** Failed sign-ins of one subject: an e-mail address, or a network address (D29). */
export interface ThrottleState {
  failures: number
  lastFailureAt: Date
  lockedUntil: Date | null
}

/** When failures slow a subject down, and when they lock it. */
export interface ThrottleRule {
  /** From this many failures on, each one makes the next attempt wait: 1 s, 2 s, 4 s ... */
  slowAfter: number
  /** From this many on, each one locks the subject for `LOCK_MS`. */
  lockAfter: number
}

/** One person mistypes a few times; ten in a row is somebody else. */
export const EMAIL_RULE: ThrottleRule = { slowAfter: 5, lockAfter: 10 }

/** Behind one network address there may be an office. */
export const ADDRESS_RULE: ThrottleRule = { slowAfter: 20, lockAfter: 50 }

export const LOCK_MS = 15 * 60_000

/** No single wait before the lock is longer. */
const SLOW_LIMIT_MS = 60_000

/** Failures are forgotten after an hour without another one. */
export const FORGET_AFTER_MS = 3_600_000

/** Until when a subject has to wait; undefined when it may try now. */
export function findWait(state: ThrottleState | undefined, now: Date): Date | undefined {
  const until = state?.lockedUntil
  return until && until > now ? until : undefined
}

/**
 * The state after one more failure. Each attempt is counted as a failure before its password is looked at, and the count is
 * taken back when the password is right: so attempts that run at once cannot all see the count of before.
 */
export function countFailure(state: ThrottleState | undefined, rule: ThrottleRule, now: Date): ThrottleState {
  const isForgotten = !state || now.getTime() - state.lastFailureAt.getTime() >= FORGET_AFTER_MS
  const failures = (isForgotten ? 0 : state.failures) + 1
  const waitMs = computeWaitMs(failures, rule)
  return { failures, lastFailureAt: now, lockedUntil: waitMs === 0 ? null : new Date(now.getTime() + waitMs) }
}

function computeWaitMs(failures: number, rule: ThrottleRule): number {
  if (failures >= rule.lockAfter) return LOCK_MS
  if (failures < rule.slowAfter) return 0
  return Math.min(1000 * 2 ** (failures - rule.slowAfter), SLOW_LIMIT_MS)
}

/**
 * The state after an attempt that was counted turned out right: one failure less, and the wait that it brought is gone.
 * A wait that others' failures brought since stays.
 */
export function takeBackFailure(state: ThrottleState, rule: ThrottleRule, countedAt: Date): ThrottleState {
  const failures = Math.max(0, state.failures - 1)
  const isOwnWait = state.lastFailureAt <= countedAt && failures < rule.lockAfter
  return { ...state, failures, lockedUntil: isOwnWait ? null : state.lockedUntil }
}

/** How a subject is kept: the table names nobody. */
export function hashSubject(kind: 'email' | 'address', value: string): Buffer {
  return createHash('sha256').update(`${kind}:${value.toLowerCase()}`).digest()
}
