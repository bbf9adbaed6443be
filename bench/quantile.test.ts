import { expect, test } from 'vitest'
import { findMedian, findQuantile } from './quantile.ts'

test('the median does not depend on the order of the values', () => {
  expect(findMedian([30, 10, 20])).toBe(20)
  expect(findMedian([40, 10, 20, 30])).toBe(25)
})

test('a quantile is one of the values and sorts them as numbers', () => {
  const values = Array.from({ length: 101 }, (_, index) => 100 - index)
  expect(findQuantile(values, 0.5)).toBe(50)
  expect(findQuantile(values, 0.99)).toBe(99)
  expect(findQuantile([9, 10, -1], 1)).toBe(10)
})

test('without values a quantile is 0', () => {
  expect(findQuantile([], 0.99)).toBe(0)
})
