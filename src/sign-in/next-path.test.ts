import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readNextPath } from './next-path.ts'

describe('next', () => {
  test.each([
    ['/', '/'],
    ['/auth/devices', '/auth/devices'],
    ['/a/../b?c=%2F#d', '/b?c=%2F'],
    ['/a?next=//evil.test', '/a?next=//evil.test'],
  ])('%s continues at %s', (text, expected) => {
    expect(readNextPath(text)).toBe(expected)
  })

  test.each([
    undefined,
    '',
    'a',
    'https://evil.test',
    '//evil.test',
    '///evil.test',
    '/\\evil.test',
    '/\t/evil.test',
    '/\n/evil.test',
    '\\\\evil.test',
    '//b.example.test@evil.test',
    '//evil。test',
    'https://b.example.test.evil.test',
    'https://b.example.test@evil.test',
    'https://b.example.test//evil.test',
    '/..//evil.test',
    '/.//evil.test',
    '/a/..//evil.test',
    '/a/%2e%2e//evil.test',
    '/%2f/evil.test',
    '/%5cevil.test',
    '/%09/evil.test',
    '/%0d%0aLocation:x',
    '/%00',
    '/a b',
    '/a\u2028b',
    '/\ufeff',
    '/\ud800',
    'blob:https://b.example.test/x',
    'javascript:alert(1)',
    `/${'a'.repeat(2048)}`,
  ])('%j is refused', (text) => {
    expect(readNextPath(text)).toBeUndefined()
  })

  test('never leaves the origin, also when a program reads its result a second time', () => {
    const parts = ['/', '//', '\\', '.', '..', '@', 'evil.test', '%2f', '%5c', '\t', ':', '?', '#', '。', 'https:']
    const hostile = fc.array(fc.oneof(fc.constantFrom(...parts), fc.string({ unit: 'binary', maxLength: 3 })), {
      maxLength: 8,
    })
    fc.assert(
      fc.property(hostile, (texts) => {
        const path = readNextPath(`/${texts.join('')}`)
        if (path === undefined) return
        expect(new URL(path, 'https://own.test').origin).toBe('https://own.test')
        expect(readNextPath(path)).toBe(path)
      }),
      { numRuns: 3000 },
    )
  })
})
