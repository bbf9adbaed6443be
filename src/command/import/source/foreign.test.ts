import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../../test/harness/run/any-text.ts'
import { isLine } from '../../../http/route/schema.ts'
import { findTextMap, findTexts, isFilled, readId, toLine } from './foreign.ts'

test('any text becomes a line that a name may be, or nothing', () => {
  fc.assert(
    fc.property(fc.array(anyCharacter), fc.integer({ min: 1, max: 200 }), (characters, length) => {
      const line = toLine(characters.join(''), length)
      if (line === undefined) return
      expect(isLine(line, length)).toBe(true)
      expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u)
    }),
  )
  expect(toLine('😀😀', 3)).toBe('😀')
  expect(toLine(' \u0000\ud800 ', 10)).toBeUndefined()
})

test('an id is a whole text of 1 to 1024 characters', () => {
  expect(readId({ id: 'x'.repeat(1024) }, 'id')).toHaveLength(1024)
  for (const id of ['', 'x'.repeat(1025), '\ud800', 7, null, undefined, {}, ['a']])
    expect(() => readId({ id }, 'id')).toThrow('no usable id')
})

test('lists and maps of texts are taken whole or not at all', () => {
  expect(findTexts(['a', 'b', 'a'])).toEqual(['a', 'b'])
  for (const value of [null, 'a', ['a', 1], Array.from({ length: 1001 }, String)])
    expect(findTexts(value)).toBeUndefined()
  expect(findTextMap(JSON.parse('{"__proto__":"a"}'))).toEqual(new Map([['__proto__', 'a']]))
  expect(findTextMap(null)).toEqual(new Map())
  for (const value of ['a', ['a'], { a: 1 }]) expect(findTextMap(value)).toBeUndefined()
})

test.each([
  [null, false],
  [{}, false],
  [[], false],
  [{ headers: {}, body: null }, false],
  [{ headers: { a: 'b' } }, true],
  [['a'], true],
  [{ a: false }, true],
])('the filter %j leaves something out: %s', (value, isIt) => {
  expect(isFilled(value)).toBe(isIt)
})
