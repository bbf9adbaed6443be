import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  ADDRESS_RULE,
  countFailure,
  EMAIL_RULE,
  FORGET_AFTER_MS,
  findWait,
  hashSubject,
  LOCK_MS,
  type ThrottleState,
  takeBackFailure,
} from './login-throttle.ts'

const START = new Date('2026-09-11T12:00:00.000Z')
const inMs = (ms: number) => new Date(START.getTime() + ms)

/** The waits in seconds that `count` failures bring, each made when the wait of the one before is over. */
function listWaits(rule: typeof EMAIL_RULE, count: number): number[] {
  let state: ThrottleState | undefined
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
  test('with one e-mail address are free four times, then slower, then locked for 15 minutes each', () => {
    expect(listWaits(EMAIL_RULE, 12)).toEqual([0, 0, 0, 0, 1, 2, 4, 8, 16, 900, 900, 900])
  })

  test('from one network address are free 19 times, slower to a minute, and locked from the 50th on', () => {
    const waits = listWaits(ADDRESS_RULE, 51)
    expect(waits.slice(0, 19).every((wait) => wait === 0)).toBe(true)
    expect(waits.slice(19, 27)).toEqual([1, 2, 4, 8, 16, 32, 60, 60])
    expect(waits.slice(48)).toEqual([60, 900, 900])
  })

  test('wait until their time, and not a moment longer', () => {
    const state: ThrottleState = { failures: 10, lastFailureAt: START, lockedUntil: inMs(LOCK_MS) }
    expect(findWait(state, inMs(LOCK_MS - 1))).toEqual(inMs(LOCK_MS))
    expect(findWait(state, inMs(LOCK_MS))).toBeUndefined()
    expect(findWait(undefined, START)).toBeUndefined()
  })

  test('are forgotten after an hour without one, not earlier', () => {
    const state: ThrottleState = { failures: 9, lastFailureAt: START, lockedUntil: null }
    expect(countFailure(state, EMAIL_RULE, inMs(FORGET_AFTER_MS - 1)).failures).toBe(10)
    expect(countFailure(state, EMAIL_RULE, inMs(FORGET_AFTER_MS)).failures).toBe(1)
  })

  test('taken back leave what was before, whatever it was below the lock', () => {
    fc.assert(
      fc.property(fc.nat(ADDRESS_RULE.lockAfter - 2), (failures) => {
        const before: ThrottleState = { failures, lastFailureAt: START, lockedUntil: null }
        const counted = countFailure(before, ADDRESS_RULE, inMs(1000))
        expect(takeBackFailure(counted, ADDRESS_RULE, inMs(1000))).toMatchObject({ failures, lockedUntil: null })
      }),
    )
  })

  test('of others meanwhile keep their wait', () => {
    const own = countFailure({ failures: 30, lastFailureAt: START, lockedUntil: null }, ADDRESS_RULE, inMs(1000))
    const others = countFailure(own, ADDRESS_RULE, inMs(2000))
    expect(takeBackFailure(others, ADDRESS_RULE, inMs(1000)).lockedUntil).toEqual(others.lockedUntil)
  })

  test('are kept under a hash, one for an address in whatever case, and apart by kind', () => {
    expect(hashSubject('email', 'A@Example.test')).toEqual(hashSubject('email', 'a@example.test'))
    expect(hashSubject('email', '10.0.0.1')).not.toEqual(hashSubject('address', '10.0.0.1'))
    expect(hashSubject('email', 'a@example.test')).toHaveLength(32)
  })
})
