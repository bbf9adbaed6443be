import { argon2Sync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { testPasswords } from '../../../test/harness/app/small-hash.ts'
import { systemRandom } from '../../base/random.ts'
import { DEFAULT_HASH_COST, HASH_MEMORY_LIMIT, HASH_MEMORY_MIN, HASH_PASSES_LIMIT } from './hash-cost.ts'
import { buildPasswordHashing } from './password.ts'

const phc = (memory: number, passes: number, salt: Buffer, tag: Buffer) => {
  const encode = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memory},t=${passes},p=1$${encode(salt)}$${encode(tag)}`
}
const build = (memory: number, passes: number) => buildPasswordHashing({ memory, passes }, systemRandom)

describe('password hashes', () => {
  test('match only their password', async () => {
    const passwords = buildPasswordHashing(DEFAULT_HASH_COST, systemRandom)
    const hash = await passwords.hash('correct horse')
    expect(await passwords.isCorrect('correct horse', hash)).toBe(true)
    expect(await passwords.isCorrect('correct horsE', hash)).toBe(false)
    expect(await passwords.isCorrect('', hash)).toBe(false)
  })

  test('are PHC strings with the parameters of OWASP by default and a random salt', async () => {
    const passwords = buildPasswordHashing(DEFAULT_HASH_COST, systemRandom)
    const [hash, other] = await Promise.all([passwords.hash('same'), passwords.hash('same')])
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(hash).not.toBe(other)
    expect(passwords.isStale(hash)).toBe(false)
  })

  test('of a program with other parameters still match, and are reported as stale', async () => {
    const salt = Buffer.alloc(16, 7)
    const parameters = { nonce: salt, parallelism: 1, tagLength: 32, memory: 8192, passes: 3 }
    const stored = phc(8192, 3, salt, argon2Sync('argon2id', { ...parameters, message: Buffer.from('older') }))
    expect(await testPasswords.isCorrect('older', stored)).toBe(true)
    expect(await testPasswords.isCorrect('Older', stored)).toBe(false)
    expect(testPasswords.isStale(stored)).toBe(true)
  })

  test.each([
    ['more memory', 128, 1],
    ['less memory', 32, 1],
    ['more passes', 64, 2],
  ])('match after a change of the cost to %s, and are stale both ways', async (_name, memory, passes) => {
    const changed = build(memory, passes)
    for (const [before, after] of [
      [testPasswords, changed],
      [changed, testPasswords],
    ] as const) {
      const hash = await before.hash('correct horse')
      expect(await after.isCorrect('correct horse', hash)).toBe(true)
      expect(await after.isCorrect('wrong horse', hash)).toBe(false)
      expect([before.isStale(hash), after.isStale(hash)]).toEqual([false, true])
    }
  })

  test('of the lowest cost match, and those of the highest are readable', async () => {
    const lowest = build(HASH_MEMORY_MIN, 1)
    expect(await lowest.isCorrect('correct horse', await lowest.hash('correct horse'))).toBe(true)
    const ofHighest = phc(HASH_MEMORY_LIMIT, HASH_PASSES_LIMIT, Buffer.alloc(16), Buffer.alloc(32))
    expect(build(HASH_MEMORY_LIMIT, HASH_PASSES_LIMIT).isStale(ofHighest)).toBe(false)
  })

  test('match a composed and a decomposed letter alike', async () => {
    const hash = await testPasswords.hash('caf\u00e9 au lait')
    expect(await testPasswords.isCorrect('cafe\u0301 au lait', hash)).toBe(true)
  })

  test.each([
    null,
    '',
    'plain text',
    '$2b$10$abcdefghijklmnopqrstuv',
    phc(4_194_304, 2, Buffer.alloc(16), Buffer.alloc(32)),
    phc(19_456, 2, Buffer.alloc(16), Buffer.alloc(32)).replace(',p=1$', ',p=0$'),
    phc(262_145, 2, Buffer.alloc(16), Buffer.alloc(32)),
    phc(19_456, 11, Buffer.alloc(16), Buffer.alloc(32)),
    phc(19_456, 0, Buffer.alloc(16), Buffer.alloc(32)),
    phc(4, 2, Buffer.alloc(16), Buffer.alloc(32)),
  ])('%s matches no password, and does not throw', async (stored) => {
    expect(await testPasswords.isCorrect('anything', stored)).toBe(false)
    if (stored !== null) expect(testPasswords.isStale(stored)).toBe(true)
  })
})
