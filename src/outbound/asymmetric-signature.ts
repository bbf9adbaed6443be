import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { Random } from '../base/random.ts'

const PRIVATE_PREFIX = 'whsk_'
const PUBLIC_PREFIX = 'whpk_'
const SEED_BYTES = 32

/** Prefixes of Ed25519 keys of 32 bytes: a private one in PKCS #8 (RFC 8410, section 7), a public one in SPKI. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')
const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex')

/** An Ed25519 key as Standard Webhooks serialises it: `whsk_` and `whpk_`, each with the base64 of its 32 bytes. */
export interface SigningKeyPair {
  privateKey: string
  publicKey: string
}

/** Creates an Ed25519 key (docs/contract/webhooks.md#asymmetric-signature). */
export function createSigningKeyPair(random: Random): SigningKeyPair {
  const privateKey = PRIVATE_PREFIX + random.bytes(SEED_BYTES).toString('base64')
  const spki = createPublicKey(prepareSigningKey(privateKey)).export({ format: 'der', type: 'spki' })
  return { privateKey, publicKey: PUBLIC_PREFIX + spki.subarray(SPKI_HEAD.length).toString('base64') }
}

/** Prepares a private key, `whsk_...`, for many messages. */
export function prepareSigningKey(privateKey: string): KeyObject {
  const seed = Buffer.from(privateKey.slice(PRIVATE_PREFIX.length), 'base64')
  return createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' })
}

/** `v1a,<base64>`: Ed25519 (RFC 8032) over `<id>.<t>.<raw body>` (Standard Webhooks, section "Signature scheme"). */
export function signAsymmetric(
  key: KeyObject,
  message: { id: string; timestampSeconds: number; body: string | Buffer },
): string {
  const head = Buffer.from(`${message.id}.${message.timestampSeconds}.`)
  return `v1a,${sign(null, Buffer.concat([head, Buffer.from(message.body)]), key).toString('base64')}`
}

/** A public key as a JWK (RFC 8037). Its `kid` is its thumbprint (RFC 7638). */
export interface VerificationJwk {
  kty: 'OKP'
  crv: 'Ed25519'
  x: string
  kid: string
  alg: 'EdDSA'
  use: 'sig'
}

/** The JWK of a public key, `whpk_...`. Pure. */
export function toVerificationJwk(publicKey: string): VerificationJwk {
  const x = Buffer.from(publicKey.slice(PUBLIC_PREFIX.length), 'base64').toString('base64url')
  const [crv, kty] = ['Ed25519', 'OKP'] as const
  const kid = createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url')
  return { kty, crv, x, kid, alg: 'EdDSA', use: 'sig' }
}
