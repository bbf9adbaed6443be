import { expect, test } from 'vitest'
import { cleanName } from './clean-profile.ts'

test.each([
  ['Ada Lovelace', 'Ada Lovelace'],
  [' Ada\nLovelace\u2028', 'Ada Lovelace'],
  ['👩'.repeat(201), '👩'.repeat(200)],
  [' \u0000\n', null],
  ['', null],
  [7, null],
  [undefined, null],
])('the name %j becomes %j', (given, name) => {
  expect(cleanName(given)).toBe(name)
})
