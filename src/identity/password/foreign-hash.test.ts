import { argon2Sync, pbkdf2Sync } from 'node:crypto'
import { hashSync } from 'bcryptjs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { testPasswords } from '../../../test/harness/app/small-hash.ts'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { findForeignFault, parseForeignHash, readStoredForeignHash, storeForeignHash } from './foreign-hash.ts'

const PASSWORD = 'correct horse'
const SALT = Buffer.from('a salt of 16 byt')
const b64 = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')

const argon2 = (algorithm: 'argon2id' | 'argon2i' | 'argon2d', password = PASSWORD, passes = 4) => {
  const parameters = { nonce: SALT, parallelism: 1, tagLength: 32, memory: 1024, passes }
  const tag = argon2Sync(algorithm, { ...parameters, message: Buffer.from(password) })
  return `$${algorithm}$v=19$m=1024,t=${passes},p=1$${b64(SALT)}$${b64(tag)}`
}
const pbkdf2 = (digest: string, length: number, password = PASSWORD) =>
  `$pbkdf2-${digest}$i=1000$${b64(SALT)}$${b64(pbkdf2Sync(password, SALT, 1000, length, digest))}`

const store = (text: string) => {
  const hash = parseForeignHash(text)
  if (!hash) throw new Error('the hash was not read')
  expect(findForeignFault(hash)).toBeUndefined()
  return storeForeignHash(hash)
}

describe('hashes of other systems', () => {
  test.each([
    ['argon2id', argon2('argon2id')],
    ['argon2i', argon2('argon2i')],
    ['argon2d', argon2('argon2d')],
    ['PBKDF2 with SHA-1', pbkdf2('sha1', 20)],
    ['PBKDF2 with SHA-256, of more than one block', pbkdf2('sha256', 64)],
    ['PBKDF2 with SHA-512', pbkdf2('sha512', 64)],
    ['bcrypt, $2b$', hashSync(PASSWORD, 8)],
    ['bcrypt, $2y$', hashSync(PASSWORD, 8).replace('$2b$', '$2y$')],
    ['bcrypt, $2a$', hashSync(PASSWORD, 8).replace('$2b$', '$2a$')],
  ])('match their password only, and are stale: %s', async (_name, text) => {
    const stored = store(text)
    expect(stored).toMatch(/^imported\$/)
    expect(await testPasswords.isCorrect(PASSWORD, stored)).toBe(true)
    expect(await testPasswords.isCorrect('correct horsE', stored)).toBe(false)
    expect(await testPasswords.isCorrect('', stored)).toBe(false)
    expect(testPasswords.isStale(stored)).toBe(true)
  })

  test('match the password as it was typed, which other systems do not normalize', async () => {
    const typed = 'cafe\u0301 au lait'
    const stored = store(argon2('argon2id', typed))
    expect(await testPasswords.isCorrect(typed, stored)).toBe(true)
    expect(await testPasswords.isCorrect(typed.normalize('NFC'), stored)).toBe(false)
  })

  test('match as they were made elsewhere: the vectors of bcrypt and of RFC 6070', async () => {
    const ofBcrypt = '$2a$08$HqWuK6/Ng6sg9gQzbLrgb.Tl.ZHfXLhvt/SgVyWhQqgqcZ7ZuUtye'
    expect(await testPasswords.isCorrect('', store(ofBcrypt))).toBe(true)
    const tag = Buffer.from('3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038', 'hex')
    const salt = Buffer.from('saltSALTsaltSALTsaltSALTsaltSALTsalt')
    const ofRfc = store(`$pbkdf2-sha1$i=4096$${b64(salt)}$${b64(tag)}`)
    expect(await testPasswords.isCorrect('passwordPASSWORDpassword', ofRfc)).toBe(true)
  })

  test('that nobody has tagged as imported match nothing', async () => {
    for (const text of [argon2('argon2i'), pbkdf2('sha256', 32), hashSync(PASSWORD, 8)])
      expect(await testPasswords.isCorrect(PASSWORD, text)).toBe(false)
  })
})

describe('limits of hashes of other systems', () => {
  const ofCost = (memory: number, passes: number, parallelism = 1) =>
    `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${b64(SALT)}$${b64(Buffer.alloc(32))}`
  const ofIterations = (count: number) => `$pbkdf2-sha256$i=${count}$${b64(SALT)}$${b64(Buffer.alloc(32))}`
  const ofBcryptCost = (cost: number) => `$2b$${String(cost).padStart(2, '0')}$${'a'.repeat(22)}${'a'.repeat(31)}`

  test.each([
    ['4 GiB', ofCost(4_194_304, 1), 'too_costly'],
    ['256 MiB and six passes', ofCost(262_144, 6), 'too_costly'],
    ['256 MiB and five passes', ofCost(262_144, 5), undefined],
    ['the default of Logto', ofCost(4096, 256), undefined],
    ['the default of Keycloak', ofCost(7168, 5), undefined],
    ['over 256 MiB', ofCost(262_145, 1), 'too_costly'],
    ['more passes than 1024', ofCost(8, 1025), 'too_costly'],
    ['1024 passes', ofCost(8, 1024), undefined],
    ['one pass over 4 KiB', ofCost(8, 1), 'too_weak'],
    ['4095 KiB in one pass', ofCost(4095, 1), 'too_weak'],
    ['4096 KiB in one pass', ofCost(4096, 1), undefined],
    ['no pass', ofCost(4096, 0), 'unknown'],
    ['no lane', ofCost(4096, 1, 0), 'unknown'],
    ['less memory than its lanes need', ofCost(4096, 1, 513), 'unknown'],
    ['1,500,001 iterations', ofIterations(1_500_001), 'too_costly'],
    ['1,500,000 iterations', ofIterations(1_500_000), undefined],
    ['999 iterations', ofIterations(999), 'too_weak'],
    ['1000 iterations', ofIterations(1000), undefined],
    ['cost 31', ofBcryptCost(31), 'too_costly'],
    ['cost 15', ofBcryptCost(15), 'too_costly'],
    ['cost 14', ofBcryptCost(14), undefined],
    ['cost 8', ofBcryptCost(8), undefined],
    ['cost 7', ofBcryptCost(7), 'too_weak'],
    ['a salt of 7 bytes', ofIterations(1000).replace(b64(SALT), b64(SALT.subarray(0, 7))), 'unknown'],
    ['a tag of 15 bytes', ofIterations(1000).replace(b64(Buffer.alloc(32)), b64(Buffer.alloc(15))), 'unknown'],
  ])('%s', (_name, text, fault) => {
    const hash = parseForeignHash(text)
    expect(hash && findForeignFault(hash)).toBe(fault)
    expect(readStoredForeignHash(`imported${text}`) === undefined).toBe(fault !== undefined)
  })

  test.each([
    ['plain', 'password'],
    ['MD5', '5f4dcc3b5aa765d61d8327deb882cf99'],
    ['SHA-1', '5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8'],
    ['scrypt of Firebase', '$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=ou==$salt$hash'],
    ['Argon2 1.0', argon2('argon2id').replace('v=19', 'v=16')],
    ['a tail', `${argon2('argon2id')}\n`],
    ['bits that no byte has', `${hashSync(PASSWORD, 8).slice(0, -1)}/`],
    ['nothing', ''],
  ])('%s is no hash that is kept', (_name, text) => {
    expect(parseForeignHash(text)).toBeUndefined()
  })

  test('any text is read or refused without an error, and what is kept is read again as it was', () => {
    const part = fc.constantFrom(
      '$',
      'argon2id',
      'v=19',
      'm=4096,t=1,p=1',
      'i=1000',
      'pbkdf2-sha1',
      '2b',
      '10',
      b64(SALT),
    )
    const text = fc.oneof(
      fc.string({ unit: anyCharacter, maxLength: 200 }),
      fc.array(part, { maxLength: 12 }).map((parts) => parts.join('')),
      fc.array(part, { maxLength: 8 }).map((parts) => `$${parts.join('$')}`),
    )
    fc.assert(
      fc.property(text, (given) => {
        const hash = parseForeignHash(given)
        if (!hash || findForeignFault(hash) !== undefined) return
        const stored = storeForeignHash(hash)
        expect(storeForeignHash(readStoredForeignHash(stored) as typeof hash)).toBe(stored)
      }),
    )
    const bytes = (min: number) => fc.uint8Array({ minLength: min, maxLength: 64 }).map((all) => Buffer.from(all))
    const argon = fc.record({ memory: fc.integer({ min: 4096, max: 65_536 }), passes: fc.integer({ min: 1, max: 10 }) })
    fc.assert(
      fc.property(argon, bytes(8), bytes(16), ({ memory, passes }, salt, tag) => {
        const made = `$argon2i$v=19$m=${memory},t=${passes},p=2$${b64(salt)}$${b64(tag)}`
        expect(readStoredForeignHash(store(made))).toEqual(parseForeignHash(made))
      }),
    )
  })

  test('a megabyte of nonsense is refused in linear time', () => {
    for (const text of [
      '$'.repeat(1 << 20),
      `$argon2id$v=19$m=${'1'.repeat(1 << 20)}`,
      `$2b$10$${'a'.repeat(1 << 20)}`,
    ])
      expect(parseForeignHash(text)).toBeUndefined()
  })
})
