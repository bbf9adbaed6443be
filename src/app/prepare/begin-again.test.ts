import { pino } from 'pino'
import { expect, test } from 'vitest'
import { runUntilFree } from './begin-again.ts'

const HELD = Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' })
const LOST = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
const WRONG = new Error('a fault of the program')

/** Runs a step that fails with these errors in turn, each after `lastsMs`, and then returns. */
async function run(errors: readonly Error[], { lastsMs = 0, limitMs = 10_000, stopAfter = Number.POSITIVE_INFINITY }) {
  let nowMs = 0
  let tries = 0
  const lines: string[] = []
  const stop = new AbortController()
  const logger = pino({ level: 'warn' }, { write: (line: string) => lines.push(JSON.parse(line).reason) })
  const clock = {
    now: () => nowMs,
    sleep: async (ms: number) => {
      nowMs += ms
    },
  }
  const step = async () => {
    const error = errors[tries++]
    nowMs += lastsMs
    if (tries === stopAfter) stop.abort()
    if (error) throw error
    return 'done'
  }
  const result = await runUntilFree({ limitMs, clock, logger, stop: stop.signal }, step, () => nowMs).catch(
    (error: unknown) => error,
  )
  return { result, tries, lines, nowMs }
}

test.each([[HELD], [LOST]])('a step that ends with "%s" begins again until it succeeds', async (error) => {
  expect(await run([error, error], {})).toEqual({ result: 'done', tries: 3, lines: [error.message], nowMs: 1_000 })
})

test('a line every five seconds says why it begins again', async () => {
  const { lines, tries } = await run([HELD, HELD, LOST], { lastsMs: 2_500 })
  expect([lines, tries]).toEqual([[HELD.message, LOST.message], 4])
})

test('the first failure at or after the limit is the last', async () => {
  const errors = Array.from({ length: 100 }, () => HELD)
  expect(await run(errors, {})).toMatchObject({ result: HELD, tries: 21, nowMs: 10_000 })
  expect(await run(errors, { limitMs: 0 })).toMatchObject({ result: HELD, tries: 1, lines: [] })
})

test('another failure ends it at once', async () => {
  expect(await run([WRONG], {})).toMatchObject({ result: WRONG, tries: 1, lines: [] })
})

test('a stop ends it without a result', async () => {
  expect(await run([HELD, HELD, HELD], { stopAfter: 2 })).toMatchObject({ result: undefined, tries: 2 })
})
