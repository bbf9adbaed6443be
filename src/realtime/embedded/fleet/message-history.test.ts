import { expect, test } from 'vitest'
import { buildMessageHistory } from './message-history.ts'

const build = (from: number, to: number, payload = '{}') =>
  Array.from({ length: to - from + 1 }, (_, index) => ({ number: from + index, payload }))
const numbers = ({ messages }: { messages: readonly { number: number }[] }) => messages.map(({ number }) => number)

test('messages are read by their numbers, without those that were not sent', () => {
  const history = buildMessageHistory()
  history.add(build(1, 6), 1_000)
  history.remove(build(4, 4))
  expect(history.read(2, 5)).toMatchObject({ first: 1 })
  expect(numbers(history.read(2, 5))).toEqual([3, 5])
})

test('they are kept for a minute', () => {
  const history = buildMessageHistory()
  history.add(build(1, 2), 1_000)
  history.add(build(3, 3), 60_999)
  expect(numbers(history.read(0, 9))).toEqual([1, 2, 3])
  history.add(build(4, 4), 61_000)
  expect(history.read(0, 9)).toMatchObject({ first: 3 })
  expect(numbers(history.read(0, 9))).toEqual([3, 4])
  expect(history.readSince(61_000).map(({ number }) => number)).toEqual([4])
})

test('they are 20,000 and 16 MiB at most, the last ones', () => {
  const many = buildMessageHistory()
  many.add(build(1, 20_001), 0)
  expect(many.read(0, 30_000)).toMatchObject({ first: 2 })
  expect(numbers(many.read(0, 3))).toEqual([2, 3])
  const large = buildMessageHistory()
  for (let n = 1; n <= 17; n += 1) large.add(build(n, n, 'x'.repeat(2 ** 20)), 0)
  expect(large.read(0, 99)).toMatchObject({ first: 2 })
})
