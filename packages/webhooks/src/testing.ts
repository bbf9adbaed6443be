import { encodeBase64 } from './base64.ts'
import { buildSignedBytes, type RawBody, readRawBody } from './raw-body.ts'
import { readSecrets } from './secret.ts'

/** Options of `signDelivery`. */
export type SigningInput = {
  readonly secret: string
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
  const standard = await computeHmac(keys!['standard-webhooks'], buildSignedBytes(`${input.id}.${seconds}.`, body))
  const hex = Array.from(service, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return {
    'content-type': 'application/json',
    'x-service-signature': `t=${seconds},v1=${hex}`,
    'webhook-id': input.id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${encodeBase64(standard)}`,
  }
}

async function computeHmac(key: Uint8Array<ArrayBuffer>, bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const subtle = globalThis.crypto.subtle
  const hmacKey = await subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  return new Uint8Array(await subtle.sign('HMAC', hmacKey, bytes))
}
