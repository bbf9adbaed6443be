import { expect, test } from 'vitest'
import { ACKNOWLEDGED, type AttemptResult, classifyResult, isOwnAttempt } from './attempt-result.ts'

test.each([
  [199, 'http_unexpected'],
  [200, undefined],
  [299, undefined],
  [300, 'redirect'],
  [399, 'redirect'],
  [400, 'http_4xx'],
  [499, 'http_4xx'],
  [500, 'http_5xx'],
  [599, 'http_5xx'],
  [600, 'http_unexpected'],
])('the status %i is classed as %s', (statusCode, errorClass) => {
  expect(classifyResult({ statusCode })).toBe(errorClass)
})

test('an attempt without a status has its failure class, and an acknowledged one has none', () => {
  expect(classifyResult({ errorClass: 'timeout' })).toBe('timeout')
  expect(classifyResult(ACKNOWLEDGED)).toBeUndefined()
})

test.each<[AttemptResult, boolean]>([
  [{ statusCode: 200 }, true],
  [{ statusCode: 500 }, true],
  [{ errorClass: 'timeout' }, true],
  [{ errorClass: 'lease_expired' }, false],
  [{ errorClass: 'returned' }, false],
  [ACKNOWLEDGED, false],
])('an attempt that ended by %j took the time of this service: %s', (result, isOwn) => {
  expect(isOwnAttempt(result)).toBe(isOwn)
})
