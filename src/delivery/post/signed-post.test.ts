import { expect, test } from 'vitest'
import { describeOutcome } from './signed-post.ts'

test.each([
  [{ statusCode: 204 }, { 'http.response.status_code': 204 }],
  [{ statusCode: 503 }, { 'http.response.status_code': 503, 'error.type': 'http_5xx' }],
  [{ errorClass: 'timeout' as const }, { 'error.type': 'timeout' }],
])('the span of an attempt with %j says so, and is an error unless it delivered', (result, attributes) => {
  const described = { durationMs: 7, attributes, isError: 'error.type' in attributes }
  expect(describeOutcome({ durationMs: 7, result } as Parameters<typeof describeOutcome>[0])).toEqual(described)
})
