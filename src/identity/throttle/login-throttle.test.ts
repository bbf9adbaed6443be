import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  ADDRESS_RULE,
  countFailure,
  decideAttempt,
  EMAIL_RULE,
  FORGET_AFTER_MS,
  findWait,
  hashSubject,
  LOCK_MS,
  PAIR_RULE,
  type ThrottleRule,
  type ThrottleState,
  type ThrottleStates,
  TURN_KEPT_MS,
} from './login-throttle.ts'

const START = new Date('2026-09-11T12:00:00.000Z')
const inMs = (ms: number) => new Date(START.getTime() + ms)
const buildFreshState = (now: Date): ThrottleState => ({
  failures: 0,
  lastFailureAt: now,
  waitUntil: null,
  turnAt: null,
})
const fresh = (): ThrottleStates => ({
  address: buildFreshState(START),
  email: buildFreshState(START),
  pair: buildFreshState(START),
})
const waiting = (untilMs: number): ThrottleState => ({ ...buildFreshState(START), waitUntil: inMs(untilMs) })

/** The waits in seconds after each of `count` failures, each made when the wait before it is over. */
function listWaits(rule: ThrottleRule, count: number): number[] {
  let state = buildFreshState(START)
  let now = START
  return Array.from({ length: count }, () => {
    state = countFailure(state, rule, now)
    const until = findWait(state, now)
    const waitMs = until ? until.getTime() - now.getTime() : 0
    now = until ?? now
    return waitMs / 1000
  })
}

describe('failed sign-ins', () => {
  test('with one e-mail from one address are free four times, then delayed, then locked for 15 minutes each', () => {
    expect(listWaits(PAIR_RULE, 12)).toEqual([0, 0, 0, 0, 1, 2, 4, 8, 16, 900, 900, 900])
  })

  test('from one network address are free 19 times, delayed up to a minute, and never locked', () => {
    const waits = listWaits(ADDRESS_RULE, 200)
    expect(waits.slice(0, 19).every((wait) => wait === 0)).toBe(true)
    expect(waits.slice(19, 27)).toEqual([1, 2, 4, 8, 16, 32, 60, 60])
    expect(Math.max(...waits)).toBe(60)
  })

  test('with one e-mail from all addresses are free four times, delayed up to 30 s, and never locked', () => {
    const waits = listWaits(EMAIL_RULE, 200)
    expect(waits.slice(0, 11)).toEqual([0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30])
    expect(Math.max(...waits)).toBe(30)
  })

  test('delay until exactly their time', () => {
    expect(findWait(waiting(LOCK_MS), inMs(LOCK_MS - 1))).toEqual(inMs(LOCK_MS))
    expect(findWait(waiting(LOCK_MS), inMs(LOCK_MS))).toBeUndefined()
    expect(findWait(buildFreshState(START), START)).toBeUndefined()
  })

  test('expire after exactly an hour without another one', () => {
    const state = { ...buildFreshState(START), failures: 9 }
    expect(countFailure(state, PAIR_RULE, inMs(FORGET_AFTER_MS - 1)).failures).toBe(10)
    expect(countFailure(state, PAIR_RULE, inMs(FORGET_AFTER_MS)).failures).toBe(1)
  })

  test('are stored under a hash, equal for any case of an address, different by kind', () => {
    expect(hashSubject('email', 'A@Example.test')).toEqual(hashSubject('email', 'a@example.test'))
    expect(hashSubject('email', '10.0.0.1')).not.toEqual(hashSubject('address', '10.0.0.1'))
    expect(hashSubject('email', 'a@example.test')).toHaveLength(32)
  })
})

describe('an attempt', () => {
  test('that no subject delays runs and is counted on all three', () => {
    const decision = decideAttempt(fresh(), inMs(5))
    expect(decision.kind).toBe('made')
    for (const subject of ['address', 'email', 'pair'] as const)
      expect(decision.states[subject]).toMatchObject({ failures: 1, lastFailureAt: inMs(5) })
  })

  test.each([
    ['address', 60_000],
    ['email', 30_000],
    ['pair', LOCK_MS],
  ] as const)('that its %s delays waits until the end of the delay and is not counted', (subject, untilMs) => {
    const states = { ...fresh(), [subject]: waiting(untilMs) }
    const decision = decideAttempt(states, inMs(untilMs - 1))
    expect(decision).toMatchObject({ kind: 'waits', until: inMs(untilMs) })
    for (const state of Object.values(decision.states)) expect(state.failures).toBe(0)
    expect(decideAttempt(states, inMs(untilMs)).kind).toBe('made')
  })

  test('that several subjects delay waits for the longest delay', () => {
    const states = { address: waiting(3_000), email: waiting(1_000), pair: waiting(2_000) }
    expect(decideAttempt(states, START)).toMatchObject({ kind: 'waits', until: inMs(3_000) })
  })
})

describe('the turn of a pair', () => {
  /** The states when the e-mail address delays the pair until `untilMs`. */
  const withTurn = (untilMs: number) => {
    const decision = decideAttempt({ ...fresh(), email: waiting(untilMs) }, START)
    return { ...fresh(), ...decision.states }
  }

  test('is set to the end of the delay when only the e-mail address delays it', () => {
    expect(withTurn(20_000).pair.turnAt).toEqual(inMs(20_000))
    const delayedElsewhere = decideAttempt({ ...fresh(), address: waiting(20_000) }, START)
    expect(delayedElsewhere.states).toEqual({})
  })

  test('is not postponed by further failures of the e-mail address', () => {
    const states = { ...withTurn(20_000), email: waiting(50_000) }
    expect(decideAttempt(states, inMs(19_999))).toMatchObject({ kind: 'waits', until: inMs(20_000), states: {} })
    expect(decideAttempt(states, inMs(20_000)).kind).toBe('made')
  })

  test('is valid for one attempt', () => {
    const made = decideAttempt({ ...withTurn(20_000), email: waiting(50_000) }, inMs(20_000))
    if (made.kind !== 'made') throw new Error('the turn was not taken')
    expect(made.states.pair.turnAt).toBeNull()
    expect(decideAttempt(made.states, inMs(20_001)).kind).toBe('made')
    const again = { ...made.states, email: waiting(50_000) }
    expect(decideAttempt(again, inMs(20_001))).toMatchObject({ kind: 'waits', until: inMs(50_000) })
  })

  test('does not lift the lock of the pair or the delay of its network address', () => {
    const turn = withTurn(1_000)
    const locked = { ...turn, pair: { ...turn.pair, waitUntil: inMs(LOCK_MS) } }
    expect(decideAttempt(locked, inMs(2_000))).toMatchObject({ kind: 'waits', until: inMs(LOCK_MS) })
    const slowed = { ...turn, address: waiting(60_000) }
    expect(decideAttempt(slowed, inMs(2_000))).toMatchObject({ kind: 'waits', until: inMs(60_000) })
  })

  test('expires after exactly 15 minutes', () => {
    const states = { ...withTurn(1_000), email: waiting(10 * TURN_KEPT_MS) }
    expect(decideAttempt(states, inMs(1_000 + TURN_KEPT_MS - 1)).kind).toBe('made')
    expect(decideAttempt(states, inMs(1_000 + TURN_KEPT_MS)).kind).toBe('waits')
  })
})

/** The throttle of one e-mail address, with the rows of every network address. */
class Fixture {
  readonly #rows = new Map<string, ThrottleState>()

  /** Makes a failing attempt from a network address. When it has to wait, returns until when. */
  attempt(address: string, now: Date): Date | undefined {
    const read = (key: string) => this.#rows.get(key) ?? buildFreshState(now)
    const keys = { address: `address ${address}`, email: 'email', pair: `pair ${address}` }
    const states = { address: read(keys.address), email: read(keys.email), pair: read(keys.pair) }
    const decision = decideAttempt(states, now)
    for (const subject of ['address', 'email', 'pair'] as const) {
      const state = decision.states[subject]
      if (state) this.#rows.set(keys[subject], state)
    }
    return decision.kind === 'waits' ? decision.until : undefined
  }
}

describe('an attacker cannot lock out a user', () => {
  const LIMIT_MS = 30_000
  const someAttempts = (maxLength: number) =>
    fc.array(fc.record({ afterMs: fc.nat(40_000), from: fc.nat(60) }), { maxLength })

  test('the correct password from a new address is checked within 30 s, for any failures of others', () => {
    fc.assert(
      fc.property(someAttempts(400), someAttempts(60), (before, meanwhile) => {
        const fixture = new Fixture()
        let nowMs = 0
        for (const { afterMs, from } of before) {
          nowMs += afterMs
          fixture.attempt(`other ${from}`, inMs(nowMs))
        }
        const until = fixture.attempt('fresh', inMs(nowMs))
        if (until === undefined) return
        expect(until.getTime() - inMs(nowMs).getTime()).toBeLessThanOrEqual(LIMIT_MS)
        for (const { afterMs, from } of meanwhile) {
          nowMs = Math.min(nowMs + afterMs, until.getTime() - START.getTime())
          fixture.attempt(`other ${from}`, inMs(nowMs))
        }
        expect(fixture.attempt('fresh', until)).toBeUndefined()
      }),
      { numRuns: 300 },
    )
  })

  test('with a failure from a new address at every millisecond', () => {
    const fixture = new Fixture()
    for (let ms = 0; ms < 40_000; ms += 1) fixture.attempt(`bot ${ms}`, inMs(ms))
    const until = fixture.attempt('fresh', inMs(40_000))
    expect(until?.getTime()).toBeLessThanOrEqual(inMs(40_000 + LIMIT_MS).getTime())
    for (let ms = 40_000; until && inMs(ms) <= until; ms += 1) fixture.attempt(`bot ${ms}`, inMs(ms))
    expect(fixture.attempt('fresh', until ?? inMs(40_000))).toBeUndefined()
  })
})
