import fc from 'fast-check'
import { expect, test } from 'vitest'
import { systemRandom } from '../../base/random.ts'
import { Problem } from '../../http/problem/problem.ts'
import { checkImportedSecret } from './imported-secret.ts'

const wrap = (bytes: Buffer | string) => `whsec_${Buffer.from(bytes).toString('base64')}`

/** The code of the refusal on `secret`; `ok` without one. */
function judge(secret: string): string {
  try {
    checkImportedSecret(secret)
    return 'ok'
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    expect(JSON.stringify([error.message, error.errors])).not.toContain(secret.slice(6, 20) || 'whsec_w')
    return error.errors?.[0]?.code ?? 'none'
  }
}

test('24 to 64 random bytes are taken, and no other length', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 80 }), (length) => {
      expect(judge(wrap(systemRandom.bytes(length)))).toBe(length >= 24 && length <= 64 ? 'ok' : 'pattern')
    }),
  )
})

test.each([
  [23, 'pattern'],
  [24, 'ok'],
  [64, 'ok'],
  [65, 'pattern'],
])('%d bytes: %s', (length, code) => {
  expect(judge(wrap(systemRandom.bytes(length)))).toBe(code)
})

const GOOD = systemRandom.bytes(32).fill(0xfb, 0, 2).toString('base64')
test.each([
  ['without its prefix', GOOD],
  ['of another prefix', `whsk_${GOOD}`],
  ['in capitals', `WHSEC_${GOOD}`],
  ['in base64url', `whsec_${GOOD.replaceAll('+', '-').replaceAll('/', '_')}`],
  ['without padding', `whsec_${GOOD.slice(0, -1)}`],
  ['with bits that no byte has', `whsec_${'A'.repeat(42)}B=`],
  ['with a space', `whsec_${GOOD} `],
  ['with a line end', `whsec_${GOOD}\n`],
  ['with a NUL', `whsec_${GOOD}\0`],
  ['with a lone surrogate', `whsec_\ud800${GOOD}`],
  ['of nothing', ''],
  ['of its prefix alone', 'whsec_'],
])('a secret %s is refused', (_what, secret) => {
  expect(judge(secret)).toBe('pattern')
})

const counting = (step: number) => Buffer.from(Array.from({ length: 32 }, (_, index) => index * step))
test.each([
  ['one byte repeated', Buffer.alloc(32, 7), 'weak'],
  ['nine different bytes', Buffer.from('abcdefghiabdcefghiahbcdegf'), 'weak'],
  ['ten different bytes', Buffer.from('abcdefghijabdcefghiahbcdegf'), 'ok'],
  [
    'a half that comes twice',
    Buffer.concat([Buffer.from('a1b2c3d4e5f6g7h8'), Buffer.from('a1b2c3d4e5f6g7h8')]),
    'weak',
  ],
  ['a part repeated, and cut', Buffer.from('a1b2c3d4e5f6a1b2c3d4e5f6a1b2'), 'weak'],
  ['a last byte like the first', Buffer.from('a1b2c3d4e5f6g7h8i9j0k1l2a'), 'ok'],
  ['bytes that count up', counting(1), 'weak'],
  ['bytes that count down by three', counting(-3), 'weak'],
  ['hexadecimal digits', Buffer.from('8f14e45fceea167a5a36dedd4bea2543'), 'ok'],
])('%s: %s', (_what, bytes, code) => {
  expect(judge(wrap(bytes))).toBe(code)
})
