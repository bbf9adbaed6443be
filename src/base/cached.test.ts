import { expect, test } from 'vitest'
import { buildManualClock } from '../../test/harness/run/manual-clock.ts'
import { cacheFor } from './cached.ts'

function build(load: (count: number) => Promise<number>) {
  const clock = buildManualClock()
  let count = 0
  const read = cacheFor(clock, 5_000, () => {
    count += 1
    return load(count)
  })
  return { clock, read, count: () => count }
}

test('a result is cached for exactly its lifetime', async () => {
  const { clock, read } = build(async (count) => count)
  expect(await read()).toBe(1)
  clock.advance(4_999)
  expect(await read()).toBe(1)
  clock.advance(1)
  expect(await read()).toBe(2)
})

test('concurrent calls run the load once, even when it takes longer than the lifetime', async () => {
  const gate = Promise.withResolvers<number>()
  const { clock, read, count } = build(() => gate.promise)
  const early = Array.from({ length: 100 }, read)
  clock.advance(60_000)
  const late = Array.from({ length: 100 }, read)
  gate.resolve(7)
  expect(new Set(await Promise.all([...early, ...late]))).toEqual(new Set([7]))
  expect(count()).toBe(1)
})

test('a failure rejects all concurrent calls, and the next call loads again', async () => {
  const { read, count } = build(async (count) => {
    if (count === 1) throw new Error('away')
    return count
  })
  const results = await Promise.allSettled([read(), read()])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await read()).toBe(2)
  expect(count()).toBe(2)
})

test('a clock that steps back ends the lifetime', async () => {
  const { clock, read } = build(async (count) => count)
  await read()
  clock.set(clock.now() - 60_000)
  expect(await read()).toBe(2)
})
