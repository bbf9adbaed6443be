import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildOtpauthUrl, computeTotp, encodeBase32, findStep, matchTotp } from './totp.ts'

/** The secret of the test vectors of RFC 6238 appendix B, for SHA-1. */
const SECRET = Buffer.from('12345678901234567890')

describe('codes', () => {
  test.each([
    [59, '94287082'],
    [1111111109, '07081804'],
    [1111111111, '14050471'],
    [1234567890, '89005924'],
    [2000000000, '69279037'],
    [20000000000, '65353130'],
  ])('at %i s the code is that of RFC 6238 appendix B', (seconds, code) => {
    expect(computeTotp(SECRET, findStep(seconds * 1000), 8)).toBe(code)
    expect(computeTotp(SECRET, findStep(seconds * 1000))).toBe(code.slice(-6))
  })

  test.each([
    [0, '755224'],
    [1, '287082'],
    [5, '254676'],
    [9, '520489'],
  ])('for counter %i the code is that of RFC 4226 appendix D', (counter, code) => {
    expect(computeTotp(SECRET, counter)).toBe(code)
  })
})

/** RFC 4226 section 5.3, step by step. */
function computeByHand(secret: Buffer, counter: number): string {
  const moving = Buffer.alloc(8)
  moving.writeBigUInt64BE(BigInt(counter))
  const mac = createHmac('sha1', secret).update(moving).digest()
  const number = mac.readUInt32BE(mac.readUInt8(19) & 15) & 0x7fff_ffff
  return String(number % 1_000_000).padStart(6, '0')
}

test('the code of any secret and any step is that of RFC 4226 section 5.3', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 80 }), fc.maxSafeNat(), (bytes, step) => {
      const secret = Buffer.from(bytes)
      expect(computeTotp(secret, step)).toBe(computeByHand(secret, step))
    }),
  )
})

describe('matching', () => {
  const at = 1_800_000_000_000
  const step = findStep(at)
  const match = (code: string, nowMs: number, after: number | null = null) => matchTotp(SECRET, code, { nowMs, after })

  test('a code is accepted from the start of the step before to the end of the step after, and no longer', () => {
    const code = computeTotp(SECRET, step)
    expect(match(code, (step - 1) * 30_000)).toBe(step)
    expect(match(code, (step - 1) * 30_000 - 1)).toBeUndefined()
    expect(match(code, (step + 2) * 30_000 - 1)).toBe(step)
    expect(match(code, (step + 2) * 30_000)).toBeUndefined()
  })

  test('a code of the last accepted step or an earlier one is refused', () => {
    expect(match(computeTotp(SECRET, step), at, step)).toBeUndefined()
    expect(match(computeTotp(SECRET, step - 1), at, step)).toBeUndefined()
    expect(match(computeTotp(SECRET, step + 1), at, step)).toBe(step + 1)
  })

  test('text that is not six ASCII digits is refused', () => {
    const code = computeTotp(SECRET, step)
    for (const text of ['', code.slice(1), `${code}0`, ` ${code}`, '١٢٣٤٥٦', 'abcdef', `${code}\n`])
      expect(match(text, at)).toBeUndefined()
  })

  test('the first steps of 1970 do not fail', () => {
    expect(match(computeTotp(SECRET, 0), 0)).toBe(0)
  })
})

describe('enrolment', () => {
  test.each([
    ['', ''],
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foob', 'MZXW6YQ'],
    ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI'],
  ])('base32 of "%s" is that of RFC 4648 section 10', (text, encoded) => {
    expect(encodeBase32(Buffer.from(text))).toBe(encoded)
  })

  test('the address has what authenticator apps read', () => {
    expect(buildOtpauthUrl(SECRET, { service: 'Our: Service', user: 'ada@example.com' })).toBe(
      'otpauth://totp/Our%20%20Service:ada%40example.com?issuer=Our%20%20Service' +
        '&secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&algorithm=SHA1&digits=6&period=30',
    )
  })

  test('the address names the service and the user, whatever characters they hold', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), fc.emailAddress(), (service, user) => {
        const url = new URL(buildOtpauthUrl(SECRET, { service, user }))
        expect(url.searchParams.get('secret')).toBe(encodeBase32(SECRET))
        expect(url.searchParams.get('issuer')).toBe(service.replaceAll(':', ' '))
        expect(decodeURIComponent(url.pathname)).toBe(`/${service.replaceAll(':', ' ')}:${user}`)
      }),
    )
  })
})
