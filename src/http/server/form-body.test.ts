import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseForm } from './form-body.ts'

describe('a form', () => {
  test('is read as browsers write it', () => {
    expect(parseForm('email=a%40b.test&note=one+two%0D%0A%C3%BC&empty=&flag')).toEqual({
      email: 'a@b.test',
      note: 'one two\r\nü',
      empty: '',
      flag: '',
    })
  })

  test('with a repeated field has a list', () => {
    expect(parseForm('a=1&a=2&a=3')).toEqual({ a: ['1', '2', '3'] })
  })

  test.each(['a=%', 'a=%zz', 'a=%ff', 'a=%00', 'a%00=1', '__proto__=1', 'a=\xff'])('%j is refused', (text) => {
    expect(() => parseForm(text)).toThrow()
  })

  test('gives back every text that URLSearchParams writes', () => {
    const field = fc.string({ unit: 'grapheme' }).filter((text) => text.isWellFormed() && !text.includes('\0'))
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(field, field), { selector: ([name]) => name, maxLength: 5 }), (pairs) => {
        const known = pairs.filter(([name]) => name !== '__proto__')
        const parsed = parseForm(new URLSearchParams(known).toString())
        expect(new Map(Object.entries(parsed))).toEqual(new Map(known))
      }),
    )
  })

  test('of any text is parsed or refused with one kind of error', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii' }), (text) => {
        try {
          parseForm(text)
        } catch (error) {
          expect(['URIError', 'Problem']).toContain((error as Error).name)
        }
      }),
    )
  })
})
