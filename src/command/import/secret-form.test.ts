import fc from 'fast-check'
import { expect, test } from 'vitest'
import { systemRandom } from '../../base/random.ts'
import { toSecretForm } from './secret-form.ts'

const random = (length: number) => systemRandom.bytes(length).toString('base64')

test('a Standard Webhooks secret stays as it is, with or without its padding', () => {
  fc.assert(
    fc.property(fc.integer({ min: 24, max: 64 }), (length) => {
      const secret = `whsec_${random(length)}`
      expect(toSecretForm(secret)).toEqual({ ok: true, secret, isKept: true })
      expect(toSecretForm(secret.replace(/=+$/, ''))).toEqual({ ok: true, secret, isKept: true })
    }),
  )
})

test('any other text of 24 to 64 bytes keys the same HMAC, as the bytes of its own', () => {
  const text = 'b4c2d1e0-7f6a-4b3c-9d8e-1a2b3c4d5e6f'
  const form = toSecretForm(text)
  expect(form).toMatchObject({ ok: true, isKept: false })
  if (form.ok) expect(Buffer.from(form.secret.slice(6), 'base64').toString()).toBe(text)
  expect(toSecretForm('ä1b2c3d4e5f6g7h8i9j0klm')).toMatchObject({ ok: true })
})

test.each([
  [undefined, 'the source does not show it'],
  ['', 'it has not 24 to 64 bytes'],
  ['whsk_abcdefghijklmnopqrstuvwxyz', 'it is the private key of an asymmetric signature'],
  ['a'.repeat(23), 'it has not 24 to 64 bytes'],
  ['a'.repeat(24), 'it is weak'],
  ['some***********', 'it has not 24 to 64 bytes'],
  [`whsec_${random(65)}`, 'it has not 24 to 64 bytes'],
  [`whsec_${random(23)}`, 'it has not 24 to 64 bytes'],
  ['x'.repeat(1_048_576), 'it has not 24 to 64 bytes'],
])('a secret that cannot be taken is told by its rule alone', (given, why) => {
  expect(toSecretForm(given)).toEqual({ ok: false, why })
})
