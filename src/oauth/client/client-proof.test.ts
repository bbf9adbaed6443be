import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type ClientProof, checkProof, DEFAULT_PROOF } from './client-proof.ts'

/** A public RSA key of so many bits. Nothing checks that its modulus is a product of primes. */
function rsaOf(bits: number): Record<string, unknown> {
  const modulus = Buffer.alloc(Math.ceil(bits / 8), 0xff)
  modulus[0] = 0xff >> ((8 - (bits % 8)) % 8)
  return { kty: 'RSA', n: modulus.toString('base64url'), e: 'AQAB' }
}

const keyOf = (curve: string) =>
  generateKeyPairSync('ec', { namedCurve: curve }).publicKey.export({ format: 'jwk' }) as Record<string, unknown>
const EC = keyOf('P-256')
const KEYED = { ...DEFAULT_PROOF, authMethod: 'private_key_jwt' as const }
const KEYS_URI = 'https://app.example.com/keys'

function findFault(proof: Partial<ClientProof>, type: 'confidential' | 'public' = 'confidential'): string | undefined {
  try {
    checkProof({ ...DEFAULT_PROOF, type, ...proof })
    return undefined
  } catch (error) {
    return (error as { errors: { path: string }[] }).errors[0]?.path
  }
}

describe('the proof of a client', () => {
  test.each<[name: string, fault: string | undefined, proof: Partial<ClientProof>]>([
    ['a secret', undefined, {}],
    ['keys', undefined, { ...KEYED, jwks: { keys: [EC] } }],
    ['an address of keys', undefined, { ...KEYED, jwksUri: KEYS_URI }],
    ['no keys', 'jwks', KEYED],
    ['keys and an address', 'jwks_uri', { ...KEYED, jwks: { keys: [EC] }, jwksUri: KEYS_URI }],
    ['keys beside a secret', 'jwks', { jwks: { keys: [EC] } }],
    ['an address beside a secret', 'jwks_uri', { jwksUri: KEYS_URI }],
    ['an address without TLS', 'jwks_uri', { ...KEYED, jwksUri: 'http://app.example.com/keys' }],
    ['an address that is none', 'jwks_uri', { ...KEYED, jwksUri: 'keys' }],
  ])('%s: the fault is in %s', (_name, fault, proof) => {
    expect(findFault(proof)).toBe(fault)
  })

  test('of a public client is none', () => {
    expect(findFault({}, 'public')).toBeUndefined()
    expect(findFault({ ...KEYED, jwks: { keys: [EC] } }, 'public')).toBe('token_endpoint_auth_method')
  })

  test.each<[name: string, isTaken: boolean, jwk: Record<string, unknown>]>([
    ['RSA with 2047 bits', false, rsaOf(2_047)],
    ['RSA with 2048 bits', true, rsaOf(2_048)],
    ['RSA with 4096 bits', true, rsaOf(4_096)],
    ['RSA with 4097 bits', false, rsaOf(4_097)],
    ['EC with P-256', true, EC],
    ['EC with P-384', false, keyOf('P-384')],
    ['Ed25519', true, generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }) as Record<string, unknown>],
    ['X25519', false, generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }) as Record<string, unknown>],
    ['a private key', false, { ...EC, d: EC.x }],
    ['a symmetric key', false, { kty: 'oct', k: 'AAAA' }],
    ['no key', false, {}],
  ])('%s is a key: %s', (_name, isTaken, jwk) => {
    expect(findFault({ ...KEYED, jwks: { keys: [EC, jwk] } })).toBe(isTaken ? undefined : 'jwks.keys.1')
  })

  test('has at most 8192 characters of keys', () => {
    const sized = (length: number) => {
      const jwks = (pad: number) => ({ keys: [{ ...EC, kid: 'k'.repeat(pad) }] })
      return jwks(length - JSON.stringify(jwks(0)).length)
    }
    expect(findFault({ ...KEYED, jwks: sized(8_192) })).toBeUndefined()
    expect(findFault({ ...KEYED, jwks: sized(8_193) })).toBe('jwks')
  })
})
