import { expect, test } from 'vitest'
import { isEmailAddress } from './formats.ts'

test.each([
  'a@b.c',
  'first.last@example.com',
  "o'hara+tag@mail.example.co.uk",
  '!#$%&*/=?^_`{|}~-@example.com',
  'A@EXAMPLE.COM',
  'a@1.2',
  `${'a'.repeat(242)}@example.com`,
])('%s is an e-mail address', (text) => {
  expect(isEmailAddress(text)).toBe(true)
})

test.each([
  '',
  '@',
  'a',
  'a@',
  '@b.c',
  'a@b',
  'a@b.',
  'a@.b',
  'a@b..c',
  '.a@b.c',
  'a.@b.c',
  'a..b@b.c',
  'a@-b.c',
  'a@b-.c',
  'a@b.c-',
  'a b@b.c',
  'a@b@c.d',
  'a@b_c.d',
  'ä@b.c',
  'a@b.c\n',
  `a@${'b'.repeat(64)}.c`,
  `${'a'.repeat(243)}@example.com`,
])('%j is not an e-mail address', (text) => {
  expect(isEmailAddress(text)).toBe(false)
})
