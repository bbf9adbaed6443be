import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AttemptResult } from '../../delivery/post/attempt-result.ts'
import { chooseWait, decideDelivery, findWaitLimit, MAX_PROVISIONING_ATTEMPTS } from './outcome.ts'

const ENDED_AT = new Date(Date.UTC(2026, 8, 11, 12, 0, 0, 123))

const decide = (change: Partial<Parameters<typeof decideDelivery>[0]> = {}) =>
  decideDelivery({
    trigger: 'schedule',
    attempts: 1,
    result: { statusCode: 500 },
    endedAt: ENDED_AT,
    waitMs: 700,
    isTargetDeleted: false,
    ...change,
  })

/** Every way in which an attempt fails and is made again. */
const RETRIED: readonly AttemptResult[] = [
  { statusCode: 500 },
  { statusCode: 503 },
  { statusCode: 600 },
  ...(['timeout', 'dns', 'connect', 'tls', 'reset', 'protocol', 'blocked_address', 'secret_unreadable'] as const).map(
    (errorClass) => ({ errorClass }),
  ),
]

describe('decideDelivery', () => {
  test.each([200, 201, 204, 299])('ends a delivery as delivered at %i', (statusCode) => {
    expect(decide({ result: { statusCode } })).toEqual({ status: 'delivered', nextAttemptAt: null, lastError: null })
  })

  test.each([400, 401, 404, 410, 429, 499])('ends a delivery as failed at once at %i', (statusCode) => {
    expect(decide({ result: { statusCode } })).toEqual({ status: 'failed', nextAttemptAt: null, lastError: 'http_4xx' })
  })

  test('makes an attempt again after a refusal that is not final, not before the receiver allows it', () => {
    const result = { statusCode: 429 }
    const dueAfter = (retryAfterMs: number) => decide({ result, retryAfterMs }).nextAttemptAt?.getTime()
    expect(decide({ result, retryAfterMs: 0 })).toMatchObject({ status: 'retrying', lastError: 'http_4xx' })
    expect([dueAfter(0), dueAfter(60_000)]).toEqual([ENDED_AT.getTime() + 700, ENDED_AT.getTime() + 60_000])
    expect(decide({ result, retryAfterMs: 0, attempts: MAX_PROVISIONING_ATTEMPTS }).status).toBe('dead_letter')
    expect(decide({ result, retryAfterMs: 0, isTargetDeleted: true }).status).toBe('cancelled')
  })

  test.each([301, 302, 307, 308])('follows no redirect: %i ends a delivery as failed', (statusCode) => {
    expect(decide({ result: { statusCode } })).toMatchObject({ status: 'failed', lastError: 'redirect' })
  })

  test.each(RETRIED)('makes an attempt again after its wait that came to %j', (result) => {
    expect(decide({ result })).toMatchObject({
      status: 'retrying',
      nextAttemptAt: new Date(ENDED_AT.getTime() + 700),
    })
  })

  test('ends a delivery as dead letter with the eighth failed attempt, and not before', () => {
    const statuses = Array.from({ length: MAX_PROVISIONING_ATTEMPTS }, (_, n) => decide({ attempts: n + 1 }).status)
    expect(statuses).toEqual([...Array(7).fill('retrying'), 'dead_letter'])
  })

  test('makes an interrupted attempt again at once, a replayed one too', () => {
    const result = { errorClass: 'interrupted' } as const
    for (const trigger of ['schedule', 'replay'] as const)
      expect(decide({ result, trigger })).toMatchObject({ status: 'retrying', nextAttemptAt: ENDED_AT })
  })

  test('makes one that the database interrupted again after its wait', () => {
    const result = { errorClass: 'interrupted' } as const
    const nextAttemptAt = new Date(ENDED_AT.getTime() + 700)
    for (const trigger of ['schedule', 'replay'] as const)
      expect(decide({ result, trigger, retryAfterMs: 0 })).toMatchObject({ status: 'retrying', nextAttemptAt })
  })

  test('ends a replay with its one attempt, whatever it comes to', () => {
    expect(decide({ trigger: 'replay', attempts: 9 }).status).toBe('dead_letter')
    expect(decide({ trigger: 'replay', attempts: 1 }).status).toBe('dead_letter')
    expect(decide({ trigger: 'replay', result: { statusCode: 204 } }).status).toBe('delivered')
    expect(decide({ trigger: 'replay', result: { statusCode: 404 } }).status).toBe('failed')
  })

  test('goes on with the schedule after a replay that only hurried it, eight attempts in all', () => {
    const hurried = { trigger: 'replay', keepsSchedule: true } as const
    const nextAttemptAt = new Date(ENDED_AT.getTime() + 700)
    for (const attempts of [2, 7])
      expect(decide({ ...hurried, attempts })).toMatchObject({ status: 'retrying', nextAttemptAt })
    expect(decide({ ...hurried, attempts: MAX_PROVISIONING_ATTEMPTS }).status).toBe('dead_letter')
    expect(decide({ ...hurried, result: { statusCode: 404 } }).status).toBe('failed')
    expect(decide({ ...hurried, isTargetDeleted: true }).status).toBe('cancelled')
  })

  test('cancels instead of retrying when the target is deleted', () => {
    expect(decide({ isTargetDeleted: true })).toMatchObject({ status: 'cancelled', nextAttemptAt: null })
    expect(decide({ isTargetDeleted: true, result: { statusCode: 204 } }).status).toBe('delivered')
  })
})

describe('chooseWait', () => {
  test('doubles its limit from 30 s with each attempt, up to an hour', () => {
    const limits = Array.from({ length: 10 }, (_, n) => findWaitLimit(n + 1) / 1000)
    expect(limits).toEqual([30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600])
  })

  test('stays between 1 ms and its limit for every random source', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 6, maxLength: 6 }), fc.integer({ min: 1, max: 20 }), (bytes, attempts) => {
        const wait = chooseWait({ bytes: () => Buffer.from(bytes) }, attempts)
        expect(wait).toBeGreaterThanOrEqual(1)
        expect(wait).toBeLessThanOrEqual(findWaitLimit(attempts))
      }),
    )
  })

  test('uses the whole range from its first to its last millisecond', () => {
    const of = (byte: number) => chooseWait({ bytes: (length) => Buffer.alloc(length, byte) }, 1)
    expect(of(0)).toBe(1)
    expect(of(0x80)).toBe(1 + Math.floor((0x808080808080 / 2 ** 48) * 30_000))
    expect(of(0xff)).toBe(30_000)
  })
})
