import { createHash } from 'node:crypto'
import { foldEmail } from '../user-record/email-key.ts'

/**
 * Failed sign-ins are counted on three subjects: the pair of e-mail and network address, the network address, and the
 * e-mail address over all network addresses. All spellings of an e-mail address count as the user that they match. The
 * pair is delayed, then locked; the network address is delayed. The delay of the e-mail address is short, and an
 * attempt that it refuses gets a turn, which later failures do not postpone. So the correct password from a network
 * address without failures waits at most the limit of `EMAIL_RULE`, also during an attack.
 */

/** Failed sign-ins of one subject. */
export interface ThrottleState {
  failures: number
  lastFailureAt: Date
  /** No attempt before this instant. */
  waitUntil: Date | null
  /** The turn of a pair: from this instant on, one attempt ignores the delay of the e-mail address. */
  turnAt: Date | null
}

/** The thresholds for delays and locks of a subject. */
export interface ThrottleRule {
  /** Number of failures from which each one delays the next attempt: 1 s, 2 s, 4 s ... */
  delayAfter: number
  /** The longest delay. */
  delayLimitMs: number
  /** Number of failures from which each one locks the subject for `LOCK_MS`; null for never. */
  lockAfter: number | null
}

/** Ten failures in a row with one e-mail from one network address are an attack. */
export const PAIR_RULE: ThrottleRule = { delayAfter: 5, delayLimitMs: 60_000, lockAfter: 10 }

/** An office may share one network address, so it is never locked. */
export const ADDRESS_RULE: ThrottleRule = { delayAfter: 20, delayLimitMs: 60_000, lockAfter: null }

/** An attacker can fail with any e-mail address, from many network addresses, so it is never locked. */
export const EMAIL_RULE: ThrottleRule = { delayAfter: 5, delayLimitMs: 30_000, lockAfter: null }

/** Codes are short. Only somebody with the password can fail with them, so a stranger cannot lock the user. */
const FACTOR_RULE: ThrottleRule = { delayAfter: 5, delayLimitMs: 60_000, lockAfter: 10 }

export const LOCK_MS = 15 * 60_000

/** Failures expire after an hour without another one. */
export const FORGET_AFTER_MS = 3_600_000

/** An unused turn expires, so that turns do not accumulate. */
export const TURN_KEPT_MS = 15 * 60_000

/** The subjects of an attempt, in the order in which their rows are locked. */
export const SUBJECTS = ['address', 'email', 'pair'] as const
export type Subject = (typeof SUBJECTS)[number]

/** The state of each subject of an attempt. */
export type ThrottleStates = Record<Subject, ThrottleState>

const RULES: Record<Subject, ThrottleRule> = { address: ADDRESS_RULE, email: EMAIL_RULE, pair: PAIR_RULE }

/** The decision on an attempt: it runs and is counted, or it waits. `states` are those to write. */
export type AttemptDecision =
  | { kind: 'made'; states: ThrottleStates }
  | { kind: 'waits'; until: Date; states: Partial<ThrottleStates> }

/** The end of a subject's wait; undefined when there is none. */
export function findWait(state: ThrottleState, now: Date): Date | undefined {
  return state.waitUntil && state.waitUntil > now ? state.waitUntil : undefined
}

/** The end of the e-mail address's wait for a pair: at the latest the turn of the pair. */
function findEmailWait({ email, pair }: ThrottleStates, now: Date): Date | undefined {
  const until = findWait(email, now)
  const turn = findTurn(pair, now)
  if (!until || !turn) return until
  if (turn <= now) return undefined
  return turn < until ? turn : until
}

function findTurn({ turnAt }: ThrottleState, now: Date): Date | undefined {
  return turnAt && now.getTime() - turnAt.getTime() < TURN_KEPT_MS ? turnAt : undefined
}

/**
 * Decides on an attempt before its password is checked. An attempt that runs counts as failed, and the count is reverted
 * when the password is correct, so that concurrent attempts see each other's counts. An attempt that waits counts nothing;
 * a wait for the e-mail address gives its pair a turn, unless it has one.
 */
export function decideAttempt(states: ThrottleStates, now: Date): AttemptDecision {
  const emailWait = findEmailWait(states, now)
  const waits = [findWait(states.address, now), emailWait, findWait(states.pair, now)]
  const ends = waits.flatMap((until) => (until ? [until.getTime()] : []))
  if (ends.length === 0) {
    const count = (subject: Subject) => countFailure(states[subject], RULES[subject], now)
    return { kind: 'made', states: { address: count('address'), email: count('email'), pair: count('pair') } }
  }
  const getsTurn = emailWait !== undefined && findTurn(states.pair, now) === undefined
  const until = new Date(Math.max(...ends))
  return { kind: 'waits', until, states: getsTurn ? { pair: { ...states.pair, turnAt: emailWait } } : {} }
}

/**
 * Decides on an attempt to prove a second factor; `email` and `pair` are subjects of the user instead. The codes of a
 * user are guessed at `FACTOR_RULE` over all network addresses together: an attempt that waits gets no turn.
 */
export function decideFactorAttempt(states: ThrottleStates, now: Date): AttemptDecision {
  const ends = SUBJECTS.flatMap((subject) => findWait(states[subject], now)?.getTime() ?? [])
  if (ends.length > 0) return { kind: 'waits', until: new Date(Math.max(...ends)), states: {} }
  const address = countFailure(states.address, ADDRESS_RULE, now)
  const count = (state: ThrottleState) => countFailure(state, FACTOR_RULE, now)
  return { kind: 'made', states: { address, email: count(states.email), pair: count(states.pair) } }
}

/** The state after one more failure. */
export function countFailure(state: ThrottleState, rule: ThrottleRule, now: Date): ThrottleState {
  const isForgotten = now.getTime() - state.lastFailureAt.getTime() >= FORGET_AFTER_MS
  const failures = (isForgotten ? 0 : state.failures) + 1
  const waitMs = computeWaitMs(failures, rule)
  const waitUntil = waitMs === 0 ? null : new Date(now.getTime() + waitMs)
  return { failures, lastFailureAt: now, waitUntil, turnAt: null }
}

function computeWaitMs(failures: number, rule: ThrottleRule): number {
  if (rule.lockAfter !== null && failures >= rule.lockAfter) return LOCK_MS
  if (failures < rule.delayAfter) return 0
  return Math.min(1000 * 2 ** (failures - rule.delayAfter), rule.delayLimitMs)
}

/** The hash of a subject, so that the table contains no personal data. `factor`: a user and its second factors. */
export function hashSubject(kind: 'email' | 'address' | 'user' | 'factor', value: string): Buffer {
  return createHash('sha256')
    .update(`${kind}:${kind === 'email' ? foldEmail(value) : value}`)
    .digest()
}
