import { expect, test } from 'vitest'
import { readRate, readSeconds } from './rate.ts'

test.each([
  [10, 1, 10, undefined],
  [60, 60, 1, undefined],
  [90, 60, 1, 'the limit of 90 messages in 60 s becomes 1 a second'],
  [50, 60, null, 'the limit of 50 messages in 60 s is left out: 1 a second is the lowest here'],
  [1_000, 1, 1_000, undefined],
  [1_001, 1, 1_000, 'the limit of 1001 messages in 1 s becomes 1000 a second'],
  [0, 60, null, undefined],
  [-1, 1, null, undefined],
  ['10', 1, null, undefined],
  [Number.NaN, 1, null, undefined],
  [10, 0, null, undefined],
])('%j messages in %j s are %j a second', (count, seconds, maxPerSecond, note) => {
  expect(readRate(count, seconds)).toEqual({ maxPerSecond, notes: note === undefined ? [] : [note] })
})

test.each([
  ['1m0s', 60],
  ['1h2m3s', 3_723],
  ['30s', 30],
  [5, 5],
  ['', 1],
  ['soon', 1],
  [undefined, 1],
])('%j is a duration of %j s', (duration, seconds) => {
  expect(readSeconds(duration)).toBe(seconds)
})
