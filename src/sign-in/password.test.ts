import { argon2Sync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { systemRandom } from '../random.ts'
import { hashPassword, isHashStale, isPasswordCorrect } from './password.ts'

const phc = (memory: number, passes: number, salt: Buffer, tag: Buffer) => {
  const encode = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memory},t=${passes},p=1$${encode(salt)}$${encode(tag)}`
}

describe('password hashes', () => {
  test('match only their password', async () => {
    const hash = await hashPassword('correct horse', systemRandom)
    expect(await isPasswordCorrect('correct horse', hash)).toBe(true)
    expect(await isPasswordCorrect('correct horsE', hash)).toBe(false)
    expect(await isPasswordCorrect('', hash)).toBe(false)
  })

  test('are PHC strings with the parameters of OWASP and a random salt', async () => {
    const [one, other] = await Promise.all([hashPassword('same', systemRandom), hashPassword('same', systemRandom)])
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(one).not.toBe(other)
    expect(isHashStale(one)).toBe(false)
  })

  test('of other parameters still match, and are reported as stale', async () => {
    const salt = Buffer.alloc(16, 7)
    const parameters = { nonce: salt, parallelism: 1, tagLength: 32, memory: 8192, passes: 3 }
    const stored = phc(8192, 3, salt, argon2Sync('argon2id', { ...parameters, message: Buffer.from('older') }))
    expect(await isPasswordCorrect('older', stored)).toBe(true)
    expect(await isPasswordCorrect('Older', stored)).toBe(false)
    expect(isHashStale(stored)).toBe(true)
  })

  test('match a composed and a decomposed letter alike', async () => {
    const hash = await hashPassword('caf\u00e9 au lait', systemRandom)
    expect(await isPasswordCorrect('cafe\u0301 au lait', hash)).toBe(true)
  })

  test.each([
    null,
    '',
    'plain text',
    '$2b$10$abcdefghijklmnopqrstuv',
    phc(4_194_304, 2, Buffer.alloc(16), Buffer.alloc(32)),
    phc(19_456, 0, Buffer.alloc(16), Buffer.alloc(32)),
    phc(4, 2, Buffer.alloc(16), Buffer.alloc(32)),
  ])('%s matches no password, and does not throw', async (stored) => {
    expect(await isPasswordCorrect('anything', stored)).toBe(false)
  })
})
