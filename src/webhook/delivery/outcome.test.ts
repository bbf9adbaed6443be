import { describe, expect, test } from 'vitest'
import { type AttemptResult, classifyResult, type ErrorClass } from '../../delivery/post/attempt-result.ts'
import { type AttemptTrigger, decideOutcome, MAX_SCHEDULED_ATTEMPTS, RETRY_DELAYS_MS } from './outcome.ts'

const ENDED_AT = new Date(Date.UTC(2026, 8, 11, 12, 0, 0, 123))

function decide(change: Partial<Parameters<typeof decideOutcome>[0]> = {}) {
  return decideOutcome({
    trigger: 'schedule',
    isTest: false,
    keepsSchedule: false,
    attempts: 1,
    result: { statusCode: 500 },
    endedAt: ENDED_AT,
    isWebhookDeleted: false,
    ...change,
  })
}

/** Every way in which an attempt fails and is made again on the schedule. */
const RETRIED: readonly { result: AttemptResult; error: ErrorClass }[] = [
  { result: { statusCode: 400 }, error: 'http_4xx' },
  { result: { statusCode: 401 }, error: 'http_4xx' },
  { result: { statusCode: 404 }, error: 'http_4xx' },
  { result: { statusCode: 409 }, error: 'http_4xx' },
  { result: { statusCode: 411 }, error: 'http_4xx' },
  { result: { statusCode: 429 }, error: 'http_4xx' },
  { result: { statusCode: 499 }, error: 'http_4xx' },
  { result: { statusCode: 500 }, error: 'http_5xx' },
  { result: { statusCode: 503 }, error: 'http_5xx' },
  { result: { statusCode: 599 }, error: 'http_5xx' },
  { result: { statusCode: 199 }, error: 'http_unexpected' },
  { result: { statusCode: 600 }, error: 'http_unexpected' },
  { result: { statusCode: 999 }, error: 'http_unexpected' },
  ...(
    [
      'blocked_address',
      'dns',
      'connect',
      'tls',
      'timeout',
      'reset',
      'protocol',
      'secret_missing',
      'secret_unreadable',
    ] as const
  ).map((error) => ({ result: { errorClass: error }, error })),
]

const TRIGGERS: readonly AttemptTrigger[] = ['schedule', 'test', 'replay']

describe('classifyResult', () => {
  test.each<[number, ErrorClass | undefined]>([
    [199, 'http_unexpected'],
    [200, undefined],
    [204, undefined],
    [299, undefined],
    [300, 'redirect'],
    [304, 'redirect'],
    [399, 'redirect'],
    [400, 'http_4xx'],
    [499, 'http_4xx'],
    [500, 'http_5xx'],
    [599, 'http_5xx'],
    [600, 'http_unexpected'],
  ])('judges a status of %d as %s', (statusCode, expected) => {
    expect(classifyResult({ statusCode })).toBe(expected)
  })

  test('keeps the class of an attempt that got no answer', () => {
    expect(classifyResult({ errorClass: 'tls' })).toBe('tls')
  })
})

describe('decideOutcome: the contract', () => {
  test('knows four delays and five POSTs, to the millisecond', () => {
    expect(RETRY_DELAYS_MS).toEqual([60_000, 300_000, 1_800_000, 7_200_000])
    expect(MAX_SCHEDULED_ATTEMPTS).toBe(5)
  })

  test.each([
    [1, 60_000],
    [2, 300_000],
    [3, 1_800_000],
    [4, 7_200_000],
  ])('after failed attempt %d waits exactly %d ms from its end, whatever failed', (attempts, delayMs) => {
    for (const { result, error } of RETRIED)
      for (const trigger of ['schedule', 'test'] as const)
        for (const isTest of [false, true])
          expect(decide({ result, attempts, trigger, isTest })).toEqual({
            status: 'retrying',
            nextAttemptAt: new Date(ENDED_AT.getTime() + delayMs),
            lastError: error,
            failureCount: 'keep',
          })
  })

  test('ends as exhausted after the fifth failed attempt, and adds to the failure count', () => {
    for (const { result, error } of RETRIED)
      expect(decide({ result, attempts: 5 })).toEqual({
        status: 'exhausted',
        nextAttemptAt: null,
        lastError: error,
        failureCount: 'add',
      })
  })

  test('ends as success on any 2xx, whoever asked and however often it failed before', () => {
    for (const statusCode of [200, 201, 202, 204, 299])
      for (const trigger of TRIGGERS)
        for (const attempts of [1, 2, 3, 4, 5, 6, 40])
          for (const isWebhookDeleted of [false, true])
            expect(decide({ result: { statusCode }, trigger, attempts, isWebhookDeleted })).toEqual({
              status: 'success',
              nextAttemptAt: null,
              lastError: null,
              failureCount: 'reset',
            })
  })

  test('ends as failed on any 3xx, at the first attempt as at the fifth', () => {
    for (const statusCode of [300, 301, 302, 303, 304, 307, 308, 399])
      for (const attempts of [1, 2, 3, 4, 5])
        expect(decide({ result: { statusCode }, attempts })).toEqual({
          status: 'failed',
          nextAttemptAt: null,
          lastError: 'redirect',
          failureCount: 'add',
        })
  })

  test('ends as failed on 410 Gone, at the first attempt as at the fifth', () => {
    for (const attempts of [1, 2, 3, 4, 5])
      expect(decide({ result: { statusCode: 410 }, attempts })).toEqual({
        status: 'failed',
        nextAttemptAt: null,
        lastError: 'http_4xx',
        failureCount: 'add',
      })
  })
})

describe('decideOutcome: replays and tests', () => {
  test('makes no automatic retry after a replay: it ends as exhausted, and counts for nothing', () => {
    for (const { result, error } of RETRIED)
      for (const attempts of [1, 2, 3, 4, 5, 6, 40])
        expect(decide({ result, attempts, trigger: 'replay' })).toEqual({
          status: 'exhausted',
          nextAttemptAt: null,
          lastError: error,
          failureCount: 'keep',
        })
  })

  test.each([1, 2, 3, 4])(
    'goes on with the schedule after a replay of a waiting row that failed as attempt %d',
    (attempts) => {
      for (const { result, error } of RETRIED)
        expect(decide({ result, attempts, trigger: 'replay', keepsSchedule: true })).toEqual({
          status: 'retrying',
          nextAttemptAt: new Date(ENDED_AT.getTime() + (RETRY_DELAYS_MS[attempts - 1] as number)),
          lastError: error,
          failureCount: 'keep',
        })
    },
  )

  test('ends a waiting row at its fifth attempt, also when a replay made it, and such a one counts for nothing', () => {
    for (const { result, error } of [
      ...RETRIED,
      { result: { errorClass: 'interrupted' }, error: 'interrupted' },
    ] as const)
      expect(decide({ result, attempts: 5, trigger: 'replay', keepsSchedule: true })).toEqual({
        status: 'exhausted',
        nextAttemptAt: null,
        lastError: error,
        failureCount: 'keep',
      })
  })

  test.each([302, 410])('ends a replay that is answered %d as failed, and counts for nothing', (statusCode) => {
    for (const keepsSchedule of [false, true])
      expect(decide({ result: { statusCode }, trigger: 'replay', attempts: 2, keepsSchedule })).toMatchObject({
        status: 'failed',
        failureCount: 'keep',
      })
  })

  test('never lets a test add to the failure count, at its first attempt as at its last', () => {
    for (const trigger of ['test', 'schedule'] as const) {
      expect(decide({ trigger, isTest: true, attempts: 5 })).toMatchObject({
        status: 'exhausted',
        failureCount: 'keep',
      })
      for (const statusCode of [302, 410])
        expect(decide({ trigger, isTest: true, result: { statusCode } })).toMatchObject({
          status: 'failed',
          failureCount: 'keep',
        })
    }
  })
})

describe('decideOutcome: interruptions and deletions', () => {
  const result = { errorClass: 'interrupted' } as const

  test.each([1, 2, 3, 4])(
    'makes an interrupted attempt %d again at once: whether it arrived is not known',
    (attempts) => {
      expect(decide({ result, attempts })).toEqual({
        status: 'retrying',
        nextAttemptAt: ENDED_AT,
        lastError: 'interrupted',
        failureCount: 'keep',
      })
    },
  )

  test('makes a delivery that was given back due again at once, by a failed attempt', () => {
    const result = { errorClass: 'returned' } as const
    expect(decide({ result })).toMatchObject({ status: 'retrying', lastError: 'returned', nextAttemptAt: ENDED_AT })
    expect(decide({ result, attempts: 5 })).toMatchObject({ status: 'exhausted', failureCount: 'add' })
  })

  test('never makes a sixth scheduled POST, even when the fifth was interrupted', () => {
    expect(decide({ result, attempts: 5 })).toMatchObject({ status: 'exhausted', nextAttemptAt: null })
  })

  test('makes an interrupted replay again: the one POST that was asked for has not been made for sure', () => {
    expect(decide({ result, trigger: 'replay', attempts: 6 })).toMatchObject({
      status: 'retrying',
      nextAttemptAt: ENDED_AT,
    })
  })

  test('cancels what would wait for a webhook that was deleted meanwhile', () => {
    for (const outcome of [...RETRIED.map((each) => each.result), result])
      for (const attempts of [1, 4, 5])
        expect(decide({ result: outcome, attempts, isWebhookDeleted: true })).toMatchObject({
          status: 'cancelled',
          nextAttemptAt: null,
          failureCount: 'keep',
        })
  })
})
