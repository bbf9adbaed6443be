import { decodeBase64 } from './base64.ts'
import type { SignedClaim } from './signed-claim.ts'
import { WebhookVerificationError } from './verification-error.ts'

/** Where public keys come from, as `createKeySet` builds it. */
export interface KeySource {
  /** The present keys. `after`: those under which a signature was not found valid, so they may be out of date. */
  list(after?: readonly Uint8Array<ArrayBuffer>[]): Promise<readonly Uint8Array<ArrayBuffer>[]>
}

/**
 * The public key of a webhook, `whpk_...`, several during a rotation, or its key set (`createKeySet`). Unset ones are left
 * out; without any the delivery is refused as `public_key_missing`.
 */
export type PublicKeyInput = string | undefined | readonly (string | undefined)[] | KeySource

/** More keys than this are refused: each costs up to `MAX_SIGNATURES` verifications. */
export const MAX_PUBLIC_KEYS = 4

const PREFIX = 'whpk_'
export const KEY_BYTES = 32

/**
 * Parses public keys: `whpk_` and the base64 of 32 bytes (Standard Webhooks). Throws `public_key_missing`,
 * `public_key_malformed`.
 */
export function readPublicKeys(input: PublicKeyInput): KeySource {
  if (isKeySource(input)) return input
  const listed: readonly unknown[] = Array.isArray(input) ? input : [input]
  const given = listed.filter((key) => key !== undefined && key !== null && key !== '')
  if (given.length === 0)
    throw new WebhookVerificationError('public_key_missing', 'The public key is empty or not set.')
  if (given.length > MAX_PUBLIC_KEYS)
    throw new WebhookVerificationError('public_key_malformed', `More than ${MAX_PUBLIC_KEYS} public keys were passed.`)
  const keys = given.map(readPublicKey)
  return { list: async () => keys }
}

function isKeySource(input: unknown): input is KeySource {
  return typeof input === 'object' && input !== null && typeof (input as { list?: unknown }).list === 'function'
}

function readPublicKey(text: unknown): Uint8Array<ArrayBuffer> {
  if (typeof text !== 'string' || !text.startsWith(PREFIX))
    throw new WebhookVerificationError('public_key_malformed', `The public key does not begin with "${PREFIX}".`)
  const bytes = decodeBase64(text.slice(PREFIX.length))
  if (bytes?.length === KEY_BYTES) return bytes
  throw new WebhookVerificationError('public_key_malformed', `What follows "${PREFIX}" is not base64 of 32 bytes.`)
}

/**
 * Whether one of the claim's signatures is valid under one of the keys. Tries every key with every signature, also after
 * a valid one.
 */
export async function hasAsymmetricSignature(
  claim: SignedClaim,
  keys: readonly Uint8Array<ArrayBuffer>[],
  signedBytes: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const subtle = globalThis.crypto?.subtle
  if (!subtle) throw new WebhookVerificationError('crypto_unavailable', 'WebCrypto is not available.')
  let isSigned = false
  for (const bytes of keys) {
    const key = await subtle.importKey('raw', bytes, 'Ed25519', false, ['verify']).catch(throwUnavailable)
    for (const signature of claim.signatures) {
      if (await subtle.verify('Ed25519', key, signature, signedBytes)) isSigned = true
    }
  }
  return isSigned
}

function throwUnavailable(): never {
  throw new WebhookVerificationError('crypto_unavailable', 'WebCrypto has no Ed25519.')
}
