import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { quoteName } from './quoted-name.ts'

test.each([
  ['Rail', '"Rail"'],
  ['Acme Inc.', '"Acme Inc."'],
  ['R&D, Zürich (West) – 東京', '"R& D, Zürich (West) – 東京"'],
  ['acme.io', '"acme. io"'],
  ['https://evil.example/reset?x=1', '"https: / / evil. example/ reset? x= 1"'],
  ['www.evil.example', '"www. evil. example"'],
  ['evil。example', '"evil。 example"'],
  ['mailto:thief@evil.example', '"mailto: thief @ evil. example"'],
  ['" at Bank. Open “this” now', `"' at Bank. Open 'this' now"`],
  ['one\r\nBcc: x\u2028two', '"one Bcc: x two"'],
  ['\u202egpj.exe\u2066\u200f\u061c', '"gpj. exe"'],
  ['\u200bin\u200bvisible\u0000\u001b[31m', '"in visible [31m"'],
  ['x'.repeat(101), `"${'x'.repeat(100)}…"`],
  ['x'.repeat(100), `"${'x'.repeat(100)}"`],
])('%j is shown as %s', (name, shown) => {
  expect(quoteName(name)).toBe(shown)
})

test('no name becomes a link, leaves its quotation marks or its line, or turns the direction of the text', () => {
  const piece = fc.oneof(
    anyCharacter,
    fc.constantFrom('http://', 'www.', 'evil.example', 'a@b.example', '"', '\u202e', '\n'),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const inner = quoteName(pieces.join('')).slice(1, -1)
      expect(inner).not.toMatch(/"|[\p{C}\p{Zl}\p{Zp}]/u)
      expect(inner).not.toMatch(/:\/|\S@|@\S|[.。．]\S/u)
    }),
  )
})
