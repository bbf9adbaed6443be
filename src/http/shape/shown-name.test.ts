import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Problem } from '../problem/problem.ts'
import { checkShownName, cleanShownName, findNameFault } from './shown-name.ts'

test.each([['Ada Lovelace'], ["O'Neil-Ö, Jr. <x>"], ['محمد'], ['שלום'], ['क्‍ष'], ['👩‍💻'], ['1']])(
  '%s is a name that others may read',
  (name) => {
    expect(findNameFault(name)).toBeUndefined()
    expect(cleanShownName(name)).toBe(name)
  },
)

test.each([
  ['an override', 'Bank \u202e'],
  ['an isolate', '\u2067Bank'],
  ['a mark of direction', 'Bank\u200f'],
  ['a zero-width space', 'Ba\u200bnk'],
  ['a line end', 'Bank\u2028Sign in'],
  ['a control', 'Bank\u0007'],
  ['half a surrogate pair', 'Bank\ud800'],
  ['a tag', 'Bank\u{e0041}'],
  ['a filler of Hangul', '\u3164'],
  ['a narrow filler of Hangul', 'Ba\uffa0nk'],
  ['a vowel that is not written', '\u17b5'],
  ['an annotation', 'Bank\ufff9'],
])('a name with %s is refused', (_, name) => {
  expect(findNameFault(name)).toBe('unsafe_character')
  const errors = [expect.objectContaining({ path: 'client_name', code: 'unsafe_character' })]
  expect(() => checkShownName(name, 'client_name')).toThrow(expect.objectContaining({ errors }))
  expect(() => checkShownName(name, 'client_name')).toThrow(Problem)
})

test.each(['', ' ', '\u00a0', '\u00ad\u00ad', '\u200d', '\u2800'])(
  'a name without anything visible is refused: %j',
  (name) => {
    expect(findNameFault(name)).toBe('blank')
    expect(cleanShownName(name)).toBeNull()
  },
)

test('every character that Unicode has nothing to show for is refused, or makes no name by itself', () => {
  const ignorable = Array.from({ length: 0x11_0000 }, (_, code) => code)
    .filter((code) => code < 0xd800 || code > 0xdfff)
    .map((code) => String.fromCodePoint(code))
    .filter((character) => /\p{Default_Ignorable_Code_Point}/u.test(character))
  expect(ignorable.length).toBeGreaterThan(4_000)
  expect(ignorable.filter((character) => findNameFault(character) === undefined)).toEqual([])
})

test('a cleaned name is one that is accepted, or none', () => {
  const text = fc.string({ unit: fc.constantFrom('a', ' ', '\u202e', '\u200b', '\ud800', '\udc00', '\u{e0001}', '👩') })
  fc.assert(
    fc.property(text, (name) => {
      const cleaned = cleanShownName(name)
      if (cleaned !== null) expect(findNameFault(cleaned)).toBeUndefined()
      else expect(name).not.toMatch(/a|👩/u)
    }),
  )
})
