import pino from 'pino'
import { describe, expect, test } from 'vitest'
import { buildSuccessSum, buildSumHook } from './log-sum.ts'

/** A logger whose sum runs on the time that a test sets. */
function openSum(perSecond: number) {
  const lines: Record<string, unknown>[] = []
  const fixture = { ms: 500, end: () => {} }
  const sum = buildSuccessSum({
    perSecond,
    monotonicMs: () => fixture.ms,
    restSecond: () =>
      new Promise<void>((resolve) => {
        fixture.end = resolve
      }),
    report: (fields) => logger.info(fields, 'successes summed'),
  })
  const logger = pino(
    { base: null, timestamp: false, hooks: buildSumHook(sum) },
    { write: (text: string) => void lines.push(JSON.parse(text)) },
  )
  const endSecond = async () => {
    fixture.ms += 1_000
    fixture.end()
    await new Promise(setImmediate)
  }
  return { logger, lines, sum, endSecond, count: (msg: string) => lines.filter((line) => line.msg === msg).length }
}

describe('lines of successes', () => {
  test('are written one by one up to the rate, and summed in one line beyond it', async () => {
    const { logger, lines, sum, endSecond, count } = openSum(3)
    for (let ms = 1; ms <= 10; ms += 1) logger.info({ error: null, duration_ms: ms }, 'attempt')
    expect(count('attempt')).toBe(3)
    await endSecond()
    expect(lines.at(-1)).toEqual({
      ...{ level: 30, msg: 'successes summed', of: 'attempt', lines: 7 },
      ...{ mean_duration_ms: 7, longest_duration_ms: 10 },
    })
    expect(sum.summed()).toBe(7)
    logger.info({ error: null, duration_ms: 1 }, 'attempt')
    expect(count('attempt')).toBe(4)
  })

  test('at the rate are not summed', async () => {
    const { logger, endSecond, count } = openSum(3)
    for (let number = 0; number < 3; number += 1) logger.info({ status: 200, duration_ms: 1 }, 'request')
    await endSecond()
    expect([count('request'), count('successes summed')]).toEqual([3, 0])
  })

  test('of different kinds have a rate and a sum each', async () => {
    const { logger, lines, endSecond, count } = openSum(1)
    for (let number = 0; number < 4; number += 1) {
      logger.info({ status: 201, duration_ms: 1 }, 'request')
      logger.info({ error: null, duration_ms: 1 }, 'attempt')
    }
    await endSecond()
    expect([count('request'), count('attempt')]).toEqual([1, 1])
    expect(lines.slice(-2).map(({ of, lines: n }) => [of, n])).toEqual([
      ['request', 3],
      ['attempt', 3],
    ])
  })

  test('are all written with the rate 0', () => {
    const { logger, count } = openSum(0)
    for (let number = 0; number < 100; number += 1) logger.info({ error: null }, 'attempt')
    expect(count('attempt')).toBe(100)
  })
})

describe('failures', () => {
  test.each([
    ['a request that was refused', 'info', { status: 400 }, 'request'],
    ['an attempt that failed', 'warn', { error: 'timeout' }, 'attempt'],
    ['an attempt with an error at the level of successes', 'info', { error: 'timeout' }, 'attempt'],
    ['a request that failed', 'error', { status: 500 }, 'request'],
    ['any other line', 'info', {}, 'maintenance'],
  ] as const)('are never summed: %s', (_name, level, fields, message) => {
    const { logger, count } = openSum(1)
    for (let number = 0; number < 50; number += 1) logger[level](fields, message)
    expect(count(message)).toBe(50)
  })

  test('a request that was redirected is a success', () => {
    const { logger, count } = openSum(1)
    for (let number = 0; number < 5; number += 1) logger.info({ status: 399 }, 'request')
    expect(count('request')).toBe(1)
  })
})
