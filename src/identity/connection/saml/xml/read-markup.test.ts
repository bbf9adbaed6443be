import { describe, expect, test } from 'vitest'
import { escapeXml } from './escape-xml.ts'
import { parseXml } from './parse-xml.ts'
import { listElements } from './xml-document.ts'

function read(text: string) {
  const document = parseXml(Buffer.from(text), { comments: 'skip' })
  return typeof document === 'string' ? document : document.root
}

function readRoot(text: string) {
  const root = read(text)
  if (typeof root === 'string') throw new Error(root)
  return root
}

test('an element has its place in the text, from its start to behind its end', () => {
  const text = ' <a x="1">b<c/><d>e<f></f></d></a> '
  const places = listElements(readRoot(text)).map(({ start, end }) => text.slice(start, end))
  expect(places).toEqual(['<a x="1">b<c/><d>e<f></f></d></a>', '<c/>', '<d>e<f></f></d>', '<f></f>'])
})

test('an attribute may have space around its sign, and the namespace of xml without a declaration', () => {
  const root = readRoot(`<a b = "1"\n c\t=\t'2' xml:lang="en"><b xml:lang="de"/></a>`)
  expect([...root.attributes]).toEqual([
    ['b', '1'],
    ['c', '2'],
  ])
  const lang = '{http://www.w3.org/XML/1998/namespace}lang'
  expect([root, ...root.children].map(({ foreignAttributes }) => foreignAttributes.get(lang))).toEqual(['en', 'de'])
})

test('a prefix is that of the nearest element that declares it', () => {
  const root = readRoot('<p:a xmlns:p="urn:1"><p:b xmlns:p="urn:2"><p:c/></p:b><p:d/></p:a>')
  expect(listElements(root).map(({ namespace }) => namespace)).toEqual(['urn:1', 'urn:2', 'urn:2', 'urn:1'])
})

describe('an element inside of another', () => {
  test.each([
    ['with space in its end', '<a><b></b ></a>'],
    ['with more in its end', '<a><b></bx></a>'],
    ['with space behind its slash', '<a><b/ ></a>'],
    ['with a name behind its slash', '<a><b/c></a>'],
    ['with another sign than that of an attribute', '<a><b c+"1"/></a>'],
    ['with letters as the quotes of an attribute', '<a><b c=x1x/></a>'],
    ['with an attribute that does not end', '<a><b c="1/></a>'],
    ['with a prefix of the name of declarations', '<a><b xmlns:xmlns="urn:x"/></a>'],
    ['with a comment that does not end', '<a><!-- x'],
  ])('%s is not read', (_what, text) => {
    expect(read(text)).toBe('not_xml')
  })
})

describe('a reference', () => {
  test.each([0x09, 0x0a, 0x0d, 0x20, 0x84, 0x86, 0x2027, 0x2029, 0xd7ff, 0xe000, 0xfffd, 0x10000, 0x10ffff])(
    'to %i is that character',
    (code) => {
      const written = `a${String.fromCodePoint(code)}b`
      expect(read(`<a>a&#${code};b</a>`)).toMatchObject({ text: written })
      expect(read(`<a>a&#x${code.toString(16)};b</a>`)).toMatchObject({ text: written })
    },
  )

  test.each([0x00, 0x08, 0x0b, 0x0c, 0x0e, 0x1f, 0x85, 0x2028, 0xd800, 0xdfff, 0xfffe, 0xffff, 0x110000])(
    'to %i is not read',
    (code) => {
      expect(read(`<a>&#${code};</a>`)).toBe('not_xml')
      expect(read(`<a b="&#x${code.toString(16)};"/>`)).toBe('not_xml')
    },
  )

  test.each(['&#;', '&#x;', '&#xg;', '&#6a;', '&#12345678;', '&#x1234567;', '&#-65;', '&# 65;'])(
    'in another form than a number, %s, is not read',
    (text) => {
      expect(read(`<a>${text}</a>`)).toBe('not_xml')
    },
  )
})

test('text that is escaped reads as it was, as content and as an attribute', () => {
  const text = `<a b="c">&amp;'\t\n\r</a>`
  const escaped = escapeXml(text)
  expect(escaped).not.toMatch(/[<>"\t\n\r]/)
  expect(readRoot(`<x>${escaped}</x>`).text).toBe(text)
  expect(readRoot(`<x y="${escaped}"/>`).attributes.get('y')).toBe(text)
})
