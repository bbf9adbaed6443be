import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../test/harness/run/any-text.ts'
import { buildKeyring, KeyringError } from './keyring.ts'
import { systemRandom } from './random.ts'

const OLD = 'an-old-secret-key-of-more-than-32-bytes'
const NEW = 'a-new-secret-key-of-more-than-32-bytes!'

describe('keyring', () => {
  test('decrypts what it encrypted, for any text and context', () => {
    const box = buildKeyring([NEW], systemRandom)
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), fc.string(), (plain, context) => {
        expect(box.open(box.seal(plain, context), context)).toBe(plain)
      }),
    )
  })

  test('does not contain the plain text, and differs for each encryption', () => {
    const box = buildKeyring([NEW], systemRandom)
    const sealed = box.seal('whsec_plain', 'webhook:1')
    expect(sealed).not.toContain('whsec_plain')
    expect(Buffer.from(sealed.split('.')[3]!, 'base64url').toString('latin1')).not.toContain('whsec_plain')
    expect(box.seal('whsec_plain', 'webhook:1')).not.toBe(sealed)
  })

  test('does not decrypt on another row', () => {
    const box = buildKeyring([NEW], systemRandom)
    const sealed = box.seal('secret', 'webhook:1')
    expect(() => box.open(sealed, 'webhook:2')).toThrow(KeyringError)
  })

  test('does not decrypt when any character was changed', () => {
    const box = buildKeyring([NEW], systemRandom)
    const sealed = box.seal('secret', 'webhook:1')
    const start = sealed.lastIndexOf('.') + 1
    // The last character of base64url carries unused bits; all others count.
    for (let at = start; at < sealed.length - 1; at += 1) {
      const changed = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1)
      expect(() => box.open(changed, 'webhook:1')).toThrow(KeyringError)
    }
  })

  test('refuses a truncated tag', () => {
    const box = buildKeyring([NEW], systemRandom)
    const [version, id, iv] = box.seal('secret', 'c').split('.')
    expect(() => box.open([version, id, iv, 'AAAA'].join('.'), 'c')).toThrow()
  })

  test('decrypts under every listed key, encrypts under the first, and distinguishes both by the prefix', () => {
    const sealedOld = buildKeyring([OLD], systemRandom).seal('secret', 'c')
    const rotated = buildKeyring([NEW, OLD], systemRandom)
    expect(rotated.open(sealedOld, 'c')).toBe('secret')
    expect(sealedOld.startsWith(rotated.currentPrefix)).toBe(false)
    expect(rotated.seal('secret', 'c').startsWith(rotated.currentPrefix)).toBe(true)
  })

  test('names the key that is not listed, and not the plain text', () => {
    const sealed = buildKeyring([OLD], systemRandom).seal('whsec_plain', 'c')
    expect(() => buildKeyring([NEW], systemRandom).open(sealed, 'c')).toThrow(/SECRET_KEY no longer lists/)
    expect(() => buildKeyring([NEW], systemRandom).open(sealed, 'c')).not.toThrow(/whsec_plain/)
  })

  test('refuses text in another form', () => {
    const box = buildKeyring([NEW], systemRandom)
    for (const text of ['', 'v1', 'v2.a.b.c', 'whsec_plain', '....']) expect(() => box.open(text, 'c')).toThrow()
  })
})
