import { expect, test } from 'vitest'
import { buildEntityTag, holdsTag } from './entity-tag.ts'

test('a tag is that of its payload alone', () => {
  expect(buildEntityTag('{}')).toMatch(/^"[A-Za-z0-9_-]{16}"$/)
  expect(buildEntityTag('{}')).toBe(buildEntityTag('{}'))
  expect(buildEntityTag('{ }')).not.toBe(buildEntityTag('{}'))
})

const TAG = '"abc"'
test.each([
  [undefined, false],
  ['', false],
  [TAG, true],
  [`W/${TAG}`, true],
  [`"other" , ${TAG}`, true],
  ['*', true],
  ['abc', false],
  ['"abcd"', false],
  [`${'"x",'.repeat(10_000)}${TAG}`, true],
])('If-None-Match %s: %s', (header, isHeld) => {
  expect(holdsTag(header, TAG)).toBe(isHeld)
})
