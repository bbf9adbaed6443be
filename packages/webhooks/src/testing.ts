import { decodeBase64, encodeBase64 } from './base64.ts'
import { buildSignedBytes, type RawBody, readRawBody } from './raw-body.ts'
import { readSecrets } from './secret.ts'

/** Options of `signDelivery`. */
export type SigningInput = {
  readonly secret: string
  /** The private key of the asymmetric signature, `whsk_...`, as `generateKeyPair` makes it; none without one. */
  readonly privateKey?: string | undefined
  readonly body: RawBody
  /** The event's id, sent as `webhook-id`. */
  readonly id: string
  /** Milliseconds since the Unix epoch; `Date.now` unless passed. */
  readonly now?: (() => number) | undefined
}

/**
 * Signs a body as Signalbox does (docs/contract/webhooks.md#signature) and returns the headers of both families, for
 * genuine deliveries in a receiver's tests. Throws `WebhookVerificationError` for a malformed secret.
 */
export async function signDelivery(input: SigningInput): Promise<Record<string, string>> {
  const [keys] = readSecrets(input.secret)
  const body = readRawBody(input.body)
  const seconds = Math.floor((input.now ?? Date.now)() / 1000)
  const service = await computeHmac(keys!['service-signature'], buildSignedBytes(`${seconds}.`, body))
  const signed = buildSignedBytes(`${input.id}.${seconds}.`, body)
  const v1 = `v1,${encodeBase64(await computeHmac(keys!['standard-webhooks'], signed))}`
  const hex = Array.from(service, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return {
    'content-type': 'application/json',
    'x-service-signature': `t=${seconds},v1=${hex}`,
    'webhook-id': input.id,
    'webhook-timestamp': String(seconds),
    'webhook-signature':
      input.privateKey === undefined ? v1 : `${v1} v1a,${await signAsymmetric(input.privateKey, signed)}`,
  }
}

/** Makes an Ed25519 key for the tests of a receiver: `whsk_...` and `whpk_...`. */
export async function generateKeyPair(): Promise<{ privateKey: string; publicKey: string }> {
  const made = (await globalThis.crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])) as CryptoKeyPair
  const jwk = await globalThis.crypto.subtle.exportKey('jwk', made.privateKey)
  const toBase64 = (text = '') => `${text.replaceAll('-', '+').replaceAll('_', '/')}=`
  return { privateKey: PRIVATE_PREFIX + toBase64(jwk.d), publicKey: `whpk_${toBase64(jwk.x)}` }
}

const PRIVATE_PREFIX = 'whsk_'

/** Bytes before the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410, section 7). */
const PKCS8_HEAD = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20]

async function signAsymmetric(privateKey: string, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const seed = privateKey.startsWith(PRIVATE_PREFIX) ? decodeBase64(privateKey.slice(PRIVATE_PREFIX.length)) : undefined
  if (seed?.length !== 32) throw new TypeError('privateKey is not whsk_ and base64 of 32 bytes')
  const subtle = globalThis.crypto.subtle
  const key = await subtle.importKey('pkcs8', new Uint8Array([...PKCS8_HEAD, ...seed]), 'Ed25519', false, ['sign'])
  return encodeBase64(new Uint8Array(await subtle.sign('Ed25519', key, bytes)))
}

async function computeHmac(key: Uint8Array<ArrayBuffer>, bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const subtle = globalThis.crypto.subtle
  const hmacKey = await subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  return new Uint8Array(await subtle.sign('HMAC', hmacKey, bytes))
}
