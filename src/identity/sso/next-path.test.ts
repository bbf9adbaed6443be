import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { NEXT_LENGTH_LIMIT, readNextPath } from './next-path.ts'

const ORIGIN = 'https://b.example.test'

describe('a path is accepted and written as the URL parser does', () => {
  test.each([
    ['/', '/'],
    ['/orders', '/orders'],
    ['/orders?page=2&sort=-id', '/orders?page=2&sort=-id'],
    ['/a/../b', '/b'],
    ['/a/./b', '/a/b'],
    ['/%61', '/%61'],
    ['/größe?q=ü', '/gr%C3%B6%C3%9Fe?q=%C3%BC'],
    ['/a#fragment', '/a'],
    ['/?next=https://evil.test//x', '/?next=https://evil.test//x'],
    ['/?a=%2f%5c%0d', '/?a=%2f%5c%0d'],
    ['/a//b', '/a//b'],
    ['/@evil.test', '/@evil.test'],
    ['/:80', '/:80'],
    ['/https://evil.test', '/https://evil.test'],
    ['/a:b@c', '/a:b@c'],
  ])('%j', (text, expected) => {
    expect(readNextPath(text)).toBe(expected)
  })
})

describe('another text is refused', () => {
  test.each<[string, unknown]>([
    ['another host', '//evil.test'],
    ['another host behind three slashes', '///evil.test'],
    ['another host behind a backslash', '/\\evil.test'],
    ['another host behind two backslashes', '\\\\evil.test'],
    ['another host behind a tab', '/\t/evil.test'],
    ['another host behind a line feed', '/\n/evil.test'],
    ['another host behind a carriage return', '/\r/evil.test'],
    ['another host behind a NUL', '/\u0000/evil.test'],
    ['user-info and another host', '//b.example.test@evil.test'],
    ['an ideographic full stop', '//evil。test'],
    ['an absolute URL', 'https://evil.test/'],
    ['an absolute URL of the target', 'https://b.example.test/orders'],
    ['an origin as a prefix', 'https://b.example.test.evil.test'],
    ['the target as user-info', 'https://b.example.test@evil.test'],
    ['the target with two slashes', 'https://b.example.test//evil.test'],
    ['a blob of the target', 'blob:https://b.example.test/x'],
    ['a script', 'javascript:alert(1)'],
    ['a data URL', 'data:text/html,x'],
    ['a path that leaves by a parent', '/..//evil.test'],
    ['a path that leaves by a dot', '/.//evil.test'],
    ['a path that leaves from below', '/a/..//evil.test'],
    ['a path that leaves by encoded dots', '/%2e%2e//evil.test'],
    ['a path that leaves by one encoded dot', '/%2e//evil.test'],
    ['an encoded slash', '/%2fevil.test'],
    ['an encoded slash in upper case', '/%2Fevil.test'],
    ['an encoded backslash', '/%5cevil.test'],
    ['an encoded NUL', '/%00'],
    ['an encoded line feed', '/%0aSet-Cookie:a=b'],
    ['an encoded carriage return', '/%0d%0aLocation:x'],
    ['an encoded tab', '/%09/evil.test'],
    ['a space before', ' /orders'],
    ['a space inside', '/or ders'],
    ['a byte order mark', '\ufeff/orders'],
    ['a line separator', '/orders\u2028'],
    ['a paragraph separator', '/orders\u2029'],
    ['a C1 control', '/orders\u0085'],
    ['a delete', '/orders\u007f'],
    ['half a surrogate pair', '/\ud800'],
    ['a relative path', 'orders'],
    ['a query alone', '?a=b'],
    ['nothing', ''],
    ['a number', 7],
    ['a list', ['/']],
    ['an object that prints as a path', { toString: () => '/' }],
    ['null', null],
    ['undefined', undefined],
  ])('%s', (_name, text) => {
    expect(readNextPath(text)).toBeNull()
  })

  test('a path of 2048 characters is accepted, one of 2049 is not', () => {
    const longest = `/${'a'.repeat(NEXT_LENGTH_LIMIT - 1)}`
    expect(readNextPath(longest)).toBe(longest)
    expect(readNextPath(`${longest}a`)).toBeNull()
  })

  test('a path is refused when its written form is too long', () => {
    expect(readNextPath(`/${'ü'.repeat(400)}`)).toBeNull()
  })
})

/** Texts near the border: pieces that parsers treat specially, in any order. */
const hostile = fc
  .array(
    fc.constantFrom(
      ...['/', '//', '\\', '..', '.', '%2e', '%2f', '%5c', '%00', '%09', '@', ':', '?', '#', 'evil.test', 'https:'],
      ...['\t', '\n', '\r', '\u0000', ' ', '\ufeff', '\u2028', '。', '／', '\u00ad', '[', ']', '%', '&', '=', 'ü', 'a'],
    ),
    { maxLength: 12 },
  )
  .map((pieces) => pieces.join(''))
const anything = fc.oneof(
  hostile,
  hostile.map((text) => `/${text}`),
  fc.string({ unit: anyCharacter, maxLength: 60 }),
  fc.webPath(),
)

describe('properties', () => {
  test('what is returned stays on any origin, however it is used', () => {
    fc.assert(
      fc.property(anything, (text) => {
        const path = readNextPath(text)
        if (path === null) return
        for (const base of [ORIGIN, 'http://localhost:3000', 'https://[::1]:8443']) {
          const url = new URL(path, base)
          // Used once more as a path of its own, and behind the origin as a text.
          const uses = [url, new URL(url.pathname, base), new URL(`${base}${path}`)].map(({ origin }) => origin)
          // One comparison: each `expect` takes more work than the function that is tested.
          expect(`${url.pathname}${url.search} ${uses}`).toBe(`${path} ${[base, base, base]}`)
        }
      }),
      { numRuns: 5000 },
    )
  })

  test('what is returned is returned again', () => {
    fc.assert(
      fc.property(anything, (text) => {
        const path = readNextPath(text)
        if (path !== null) expect(readNextPath(path)).toBe(path)
      }),
      { numRuns: 3000 },
    )
  })

  test('what is returned is printable ASCII that begins with one slash', () => {
    fc.assert(
      fc.property(anything, (text) => {
        const path = readNextPath(text)
        if (path !== null) expect(path).toMatch(/^\/(?!\/)[\x21-\x7e]*$/)
      }),
      { numRuns: 3000 },
    )
  })

  test('every plain path with a query is accepted', () => {
    const segment = fc.stringMatching(/^[a-zA-Z0-9_~-]{1,12}$/)
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 6 }), fc.option(segment), (segments, query) => {
        const path = `/${segments.join('/')}${query === null ? '' : `?q=${query}`}`
        expect(readNextPath(path)).toBe(path)
      }),
    )
  })
})
