import { createHash } from 'node:crypto'

/**
 * Failed sign-ins are counted on three subjects: the pair of e-mail and network address, the network address, and the
 * e-mail address over all network addresses. The pair is locked, the network address slowed. The e-mail address only has a
 * short delay, and an attempt that this delay refuses gets a turn that later failures of others cannot postpone. So the
 * right password from an address without failures waits at most the limit of `EMAIL_RULE`, even while others go on failing.
 */

/** Failed sign-ins of one subject. */
export interface ThrottleState {
  failures: number
  lastFailureAt: Date
  /** No attempt before this instant. */
  waitUntil: Date | null
  /** Of a pair: from this instant on the delay of the e-mail address does not hold it up, for one attempt. */
  turnAt: Date | null
}

/** When failures delay and lock a subject. */
export interface ThrottleRule {
  /** From this many failures on, each one delays the next attempt: 1 s, 2 s, 4 s ... */
  delayAfter: number
  /** No single delay is longer. */
  delayLimitMs: number
  /** From this many failures on, each one locks the subject for `LOCK_MS`; null for never. */
  lockAfter: number | null
}

/** Ten failures in a row with one e-mail from one address are no slips. */
export const PAIR_RULE: ThrottleRule = { delayAfter: 5, delayLimitMs: 60_000, lockAfter: 10 }

/** An office may share one network address, so nobody there can lock out the others. */
export const ADDRESS_RULE: ThrottleRule = { delayAfter: 20, delayLimitMs: 60_000, lockAfter: null }

/** Anybody can fail with the e-mail address of a stranger, from many network addresses. */
export const EMAIL_RULE: ThrottleRule = { delayAfter: 5, delayLimitMs: 30_000, lockAfter: null }

export const LOCK_MS = 15 * 60_000

/** Failures are forgotten after an hour without another one. */
export const FORGET_AFTER_MS = 3_600_000

/** A turn that is not taken expires, so that turns are not collected. */
export const TURN_KEPT_MS = 15 * 60_000

/** The subjects of an attempt, in the order in which their rows are locked. */
export const SUBJECTS = ['address', 'email', 'pair'] as const
export type Subject = (typeof SUBJECTS)[number]

/** The state of each subject of an attempt. */
export type ThrottleStates = Record<Subject, ThrottleState>

const RULES: Record<Subject, ThrottleRule> = { address: ADDRESS_RULE, email: EMAIL_RULE, pair: PAIR_RULE }

/** What becomes of an attempt: it is made and counted, or it waits. `states` are those to write. */
export type AttemptDecision =
  | { kind: 'made'; states: ThrottleStates }
  | { kind: 'waits'; until: Date; states: Partial<ThrottleStates> }

/** The state of a subject without failures. */
export function buildFreshState(now: Date): ThrottleState {
  return { failures: 0, lastFailureAt: now, waitUntil: null, turnAt: null }
}

/** Until when a subject has to wait; undefined when it may try now. */
export function findWait(state: ThrottleState, now: Date): Date | undefined {
  return state.waitUntil && state.waitUntil > now ? state.waitUntil : undefined
}

/** The wait for the e-mail address, which ends for a pair at its turn. */
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
 * Decides over an attempt before its password is looked at. An attempt that is made counts as failed at once, and the count
 * is taken back when the password is right: so attempts that run at once cannot all see the count of before. An attempt
 * that waits counts nothing; a wait for the e-mail address gives its pair a turn, unless it has one.
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

/**
 * The states after an attempt that was counted turned out right. The pair and the e-mail address start anew. The network
 * address loses this one failure and the wait that it brought; else one known account would clear it. A wait that the
 * failures of others brought there since stays.
 */
export function takeBackFailure(states: ThrottleStates, countedAt: Date): ThrottleStates {
  const { address } = states
  const isOwnWait = address.lastFailureAt <= countedAt
  return {
    address: {
      ...address,
      failures: Math.max(0, address.failures - 1),
      waitUntil: isOwnWait ? null : address.waitUntil,
    },
    email: buildFreshState(countedAt),
    pair: buildFreshState(countedAt),
  }
}

/** How an e-mail or network address is kept: the table names nobody. */
export function hashSubject(kind: 'email' | 'address', value: string): Buffer {
  return createHash('sha256').update(`${kind}:${value.toLowerCase()}`).digest()
}
