import { expect, test } from 'vitest'
import { parseXml } from './parse-xml.ts'
import { isSpace, textOf } from './xml-document.ts'

function textOfDocument(text: string) {
  const document = parseXml(Buffer.from(`<a>${text}</a>`), { comments: 'refuse' })
  if (typeof document === 'string') throw new Error(document)
  return textOf(document.root)
}

test('the text of an element is without the white space of XML around it, and with any other', () => {
  expect(textOfDocument('&#32;&#9;&#10;&#13;a b&#13;&#10;&#9;&#32;')).toBe('a b')
  expect(textOfDocument('\u00a0a\u3000')).toBe('\u00a0a\u3000')
  expect([textOfDocument(''), textOfDocument(' \n ')]).toEqual(['', ''])
  expect(textOfDocument('a<b/>')).toBeUndefined()
})

test('white space is a space, a tab, a line feed and a carriage return', () => {
  expect(Array.from({ length: 0x3001 }, (_, code) => code).filter(isSpace)).toEqual([0x09, 0x0a, 0x0d, 0x20])
  expect(isSpace(Number.NaN)).toBe(false)
})
