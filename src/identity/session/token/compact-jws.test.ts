import { describe, expect, test } from 'vitest'
import { checkTimes, decodeSegment, isSeconds, parseClaims, readClaim } from './compact-jws.ts'

test('a segment is canonical base64url', () => {
  expect(decodeSegment('YQ')?.toString()).toBe('a')
  expect(decodeSegment('_-8')).toEqual(Buffer.from([0xff, 0xef]))
  for (const text of ['', 'YR', 'YQ==', 'YQ ', ' YQ', 'Y+', 'Y/', 'Y', 'YQ\n'])
    expect(decodeSegment(text)).toBeUndefined()
})

test('claims are an object, in UTF-8, whose names occur once', () => {
  const parse = (text: string | Buffer) => parseClaims(Buffer.from(text as string))
  expect(parse('{"sub":"ä"}')).toEqual({ sub: 'ä' })
  for (const text of ['[]', 'null', '1', '"a"', '{', '', '\ufeff{}']) expect(parse(text)).toBe('json')
  expect(parse(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toBe('json')
  expect(parse('{"sub":1,"sub":2}')).toBe('duplicate_key')
})

test('a claim is an own member', () => {
  expect([readClaim({ sub: 'a' }, 'sub'), readClaim({}, 'toString')]).toEqual(['a', undefined])
})

test('a time is a whole second up to the year 9999', () => {
  for (const value of [0, 1, 253_402_300_799]) expect(isSeconds(value)).toBe(true)
  for (const value of [-1, 1.5, 253_402_300_800, '1', null, Number.NaN]) expect(isSeconds(value)).toBe(false)
})

describe('the times of a token', () => {
  const NOW = 1_000_000
  const check = (claims: object, more: { atMs?: number; maxLifetimeSeconds?: number } = {}) => {
    const { atMs = NOW * 1000, ...rest } = more
    return checkTimes({ iat: NOW, exp: NOW + 60, ...claims }, { now: new Date(atMs), leewaySeconds: 5, ...rest })
  }

  test('are those of the token while it is valid', () => {
    expect(check({})).toEqual({ iat: NOW, exp: NOW + 60 })
    expect(check({ nbf: NOW })).toEqual({ iat: NOW, exp: NOW + 60 })
  })

  test.each<[claims: object]>([
    [{ iat: undefined }],
    [{ exp: undefined }],
    [{ iat: '1' }],
    [{ exp: 1.5 }],
    [{ exp: NOW }],
    [{ exp: NOW - 1 }],
    [{ nbf: null }],
    [{ nbf: 'x' }],
  ])('are none for %j', (claims) => {
    expect(check(claims)).toBe('times')
  })

  test('end at the expiry, with the leeway', () => {
    expect(check({}, { atMs: (NOW + 65) * 1000 - 1 })).toMatchObject({ exp: NOW + 60 })
    expect(check({}, { atMs: (NOW + 65) * 1000 })).toBe('expired')
  })

  test('begin at the issue, or later by nbf, with the leeway', () => {
    expect(check({}, { atMs: (NOW - 5) * 1000 })).toMatchObject({ iat: NOW })
    expect(check({}, { atMs: (NOW - 5) * 1000 - 1 })).toBe('not_yet_valid')
    expect(check({ nbf: NOW + 10 }, { atMs: (NOW + 5) * 1000 })).toMatchObject({ iat: NOW })
    expect(check({ nbf: NOW + 10 }, { atMs: (NOW + 5) * 1000 - 1 })).toBe('not_yet_valid')
    expect(check({ nbf: 0 }, { atMs: (NOW - 6) * 1000 })).toBe('not_yet_valid')
  })

  test('are at most so far apart, where there is a limit', () => {
    expect(check({}, { maxLifetimeSeconds: 60 })).toMatchObject({ exp: NOW + 60 })
    expect(check({}, { maxLifetimeSeconds: 59 })).toBe('lifetime')
  })
})
