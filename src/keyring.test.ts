import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { buildKeyring, KeyringError } from './keyring.ts'
import { systemRandom } from './random.ts'

const OLD = 'an-old-secret-key-of-more-than-32-bytes'
const NEW = 'a-new-secret-key-of-more-than-32-bytes!'

describe('secret box', () => {
  it('gives back what it sealed, for any text and context', () => {
    const box = buildKeyring([NEW], systemRandom)
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string(), (plain, context) => {
        expect(box.open(box.seal(plain, context), context)).toBe(plain)
      }),
    )
  })

  it('never shows the plain text, and never makes the same box twice', () => {
    const box = buildKeyring([NEW], systemRandom)
    const sealed = box.seal('whsec_plain', 'webhook:1')
    expect(sealed).not.toContain('whsec_plain')
    expect(Buffer.from(sealed.split('.')[3]!, 'base64url').toString('latin1')).not.toContain('whsec_plain')
    expect(box.seal('whsec_plain', 'webhook:1')).not.toBe(sealed)
  })

  it('does not open on another row', () => {
    const box = buildKeyring([NEW], systemRandom)
    const sealed = box.seal('secret', 'webhook:1')
    expect(() => box.open(sealed, 'webhook:2')).toThrow(KeyringError)
  })

  it('does not open when any character was changed', () => {
    const box = buildKeyring([NEW], systemRandom)
    const sealed = box.seal('secret', 'webhook:1')
    const start = sealed.lastIndexOf('.') + 1
    // The last character of base64url carries unused bits; all others count.
    for (let at = start; at < sealed.length - 1; at += 1) {
      const changed = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1)
      expect(() => box.open(changed, 'webhook:1')).toThrow(KeyringError)
    }
  })

  it('refuses a truncated tag', () => {
    const box = buildKeyring([NEW], systemRandom)
    const [version, id, iv] = box.seal('secret', 'c').split('.')
    expect(() => box.open([version, id, iv, 'AAAA'].join('.'), 'c')).toThrow()
  })

  it('opens boxes of every listed key, seals with the first, and tells the two apart', () => {
    const sealedOld = buildKeyring([OLD], systemRandom).seal('secret', 'c')
    const rotated = buildKeyring([NEW, OLD], systemRandom)
    expect(rotated.open(sealedOld, 'c')).toBe('secret')
    expect(sealedOld.startsWith(rotated.currentPrefix)).toBe(false)
    expect(rotated.seal('secret', 'c').startsWith(rotated.currentPrefix)).toBe(true)
  })

  it('names the missing key when it was taken out too early, and never what was in the box', () => {
    const sealed = buildKeyring([OLD], systemRandom).seal('whsec_plain', 'c')
    expect(() => buildKeyring([NEW], systemRandom).open(sealed, 'c')).toThrow(/SECRET_KEY no longer lists/)
    expect(() => buildKeyring([NEW], systemRandom).open(sealed, 'c')).not.toThrow(/whsec_plain/)
  })

  it('refuses what is no box', () => {
    const box = buildKeyring([NEW], systemRandom)
    for (const text of ['', 'v1', 'v2.a.b.c', 'whsec_plain', '....']) expect(() => box.open(text, 'c')).toThrow()
  })
})
