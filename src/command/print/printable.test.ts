import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { toPrintable, toPrintableLine } from './printable.ts'

test.each([
  ['plain text, äöü 東京 👩‍🚀', 'plain text, äöü 東京 👩‍🚀'],
  ['\u001b[31mred\u001b[0m', '\\u001b[31mred\\u001b[0m'],
  ['\u001b]0;title\u0007', '\\u001b]0;title\\u0007'],
  ['\u009b2J', '\\u009b2J'],
  ['over\rwritten\b\u007f', 'over\\u000dwritten\\u0008\\u007f'],
  ['\u202egpj.exe', '\\u202egpj.exe'],
  ['a\tb\u2028c\ud800', 'a\\u0009b\\u2028c\\ud800'],
  ['\u{e0041}', '\\udb40\\udc41'],
])('%j is printed as %j', (text, printed) => {
  expect(toPrintable(text)).toBe(printed)
})

test('only a text of several lines keeps its line ends', () => {
  expect(toPrintable('one\ntwo')).toBe('one\ntwo')
  expect(toPrintableLine('one\nok  forged')).toBe('one\\nok  forged')
})

test('JSON stays the same JSON', () => {
  fc.assert(
    fc.property(fc.array(anyCharacter), (characters) => {
      const value = { text: characters.join('') }
      const printed = toPrintable(JSON.stringify(value, null, 2))
      expect(JSON.parse(printed)).toEqual(value)
      expect(printed.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202a-\u202e]/u)
    }),
  )
})
