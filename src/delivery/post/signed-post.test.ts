import { expect, test } from 'vitest'
import { describeOutcome, endSpan } from './signed-post.ts'

test.each([
  [{ statusCode: 204 }, { 'http.response.status_code': 204 }],
  [{ statusCode: 503 }, { 'http.response.status_code': 503, 'error.type': 'http_5xx' }],
  [{ errorClass: 'timeout' as const }, { 'error.type': 'timeout' }],
])('the span of an attempt with %j says so, and is an error unless it delivered', (result, attributes) => {
  const described = { durationMs: 7, attributes, isError: 'error.type' in attributes }
  expect(describeOutcome({ durationMs: 7, result } as Parameters<typeof describeOutcome>[0])).toEqual(described)
})

test('the span of an attempt that was not made ends once, as the own fault, which goes on to the caller', () => {
  const ends: unknown[] = []
  const fault = new Error('no socket is left')
  const end = endSpan({ end: (outcome) => void ends.push(outcome) })
  expect(() => end(fault)).toThrow(fault)
  expect(ends).toEqual([{ durationMs: 0, attributes: { 'error.type': 'own_fault' }, isError: true }])
})
