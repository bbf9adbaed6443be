import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildExcerpt, pickResponseHeaders } from './post-result.ts'

describe('buildExcerpt', () => {
  test('returns the first 1024 bytes', () => {
    expect(buildExcerpt(Buffer.alloc(1024, 'a'))).toBe('a'.repeat(1024))
    expect(buildExcerpt(Buffer.alloc(1025, 'a'))).toBe('a'.repeat(1024))
    expect(buildExcerpt(Buffer.alloc(0))).toBe('')
  })

  test('leaves out a character that the limit cuts in two', () => {
    expect(buildExcerpt(Buffer.from(`${'a'.repeat(1023)}é`))).toBe('a'.repeat(1023))
    expect(buildExcerpt(Buffer.from(`${'a'.repeat(1022)}éb`))).toBe(`${'a'.repeat(1022)}é`)
  })

  test('returns text that PostgreSQL accepts, for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 1500 }), (bytes) => {
        const text = buildExcerpt(bytes)
        expect(text).not.toContain('\0')
        expect(text.isWellFormed()).toBe(true)
        expect(text.length).toBeLessThanOrEqual(1024)
      }),
    )
    expect(buildExcerpt(Buffer.from([0x61, 0, 0xff, 0x62]))).toBe('a\uFFFD\uFFFDb')
  })
})

describe('pickResponseHeaders', () => {
  test('returns diagnostic headers, and no cookie or credential', () => {
    const headers = {
      'content-type': 'text/html',
      'retry-after': '5',
      'set-cookie': ['session=secret'],
      authorization: 'Bearer x',
      'x-request-id': 'r-1',
    }
    expect(pickResponseHeaders(headers)).toEqual({
      'content-type': 'text/html',
      'retry-after': '5',
      'x-request-id': 'r-1',
    })
  })

  test('bounds each value and makes it printable', () => {
    const kept = pickResponseHeaders({ server: 'x'.repeat(513), via: ['a\u0000b', 'é'] })
    expect(kept).toEqual({ server: 'x'.repeat(512), via: 'a?b, ?' })
  })
})
