import { describe, expect, test } from 'vitest'
import { certifyKey, inventRsaKey } from '../../../../../test/harness/fakes/saml-idp/saml-key.ts'
import { readCertificate } from './idp-certificate.ts'

const readDer = (der: Buffer) => readCertificate(der.toString('base64'))
const readKey = async (key: Parameters<typeof inventRsaKey>[0]) => readDer(await certifyKey(inventRsaKey(key)))

describe('a certificate', () => {
  test.each([
    ['2,040 bits', { bits: 2_040 }, 'this one has 2040'],
    ['8,200 bits', { bits: 8_200 }, 'this one has 8200'],
    ['an exponent of 3', { exponent: 3n }, 'RSA key'],
    ['an exponent of 32 bits and one', { exponent: 2n ** 32n }, 'RSA key'],
  ])('has no key of %s', async (_name, key, message) => {
    const params = { least: 2_048, most: 8_192 }
    expect(await readKey(key)).toEqual({ code: 'key_size', message: expect.stringContaining(message), params })
  })

  test.each([
    ['2,048 bits', { bits: 2_048 }],
    ['8,192 bits', { bits: 8_192 }],
    ['an exponent of 32 bits', { exponent: 2n ** 32n - 1n }],
  ])('may have a key of %s', async (_name, key) => {
    expect(await readKey(key)).toMatchObject({ pem: expect.any(String), notAfter: new Date('2030-01-01T00:00:00Z') })
  })

  test('whose key cannot be decoded is refused as damaged', async () => {
    const key = inventRsaKey()
    // The last arc of rsaEncryption.
    key[key.indexOf(Buffer.from('2a864886f70d010101', 'hex')) + 8] = 0x63
    expect(readDer(await certifyKey(key))).toMatchObject({ code: 'not_a_certificate' })
  })

  test.each([
    ['begin', '260101000000Z'],
    ['end', '300101000000Z'],
  ])('of which the %s is no time is refused as damaged', async (_name, time) => {
    const der = await certifyKey(inventRsaKey())
    expect(readDer(der)).toHaveProperty('pem')
    der.write('991399999999Z', der.indexOf(time))
    expect(readDer(der)).toMatchObject({ code: 'not_a_certificate' })
  })
})
