import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readNextPath as readAtService } from '../../../src/identity/sso/next-path.ts'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { readNextPath } from '../src/next-path.ts'

const pieces = fc.constantFrom(
  ...['/', '//', '\\', '..', '.', '%2e', '%2f', '%5C', '%00', '%09', '@', ':', '?', '#', 'evil.test', 'https:', 'a'],
  ...['\t', '\n', '\u0000', ' ', '\u0085', '\ufeff', '\u2028', '。', '\ud800', '\u{1f600}', '[', '%', '&', 'ü'],
)

test('the package and the service accept the same paths and write them alike', () => {
  const text = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(''))
  const near = fc.oneof(
    text,
    text.map((rest) => `/${rest}`),
    fc.string({ unit: anyCharacter, maxLength: 40 }).map((rest) => `/${rest}`),
    fc.integer({ min: 2040, max: 2055 }).map((length) => `/${'a'.repeat(length)}`),
  )
  fc.assert(
    fc.property(near, (path) => {
      expect(readNextPath(path)).toBe(readAtService(path))
    }),
    { numRuns: 6000 },
  )
})

test.each([7, null, undefined, ['/'], {}])('both refuse %j, which is no text', (value) => {
  expect([readNextPath(value), readAtService(value)]).toEqual([null, null])
})
