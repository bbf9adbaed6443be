import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Random } from '../base/random.ts'
import { signAsymmetric } from './asymmetric-signature.ts'

/** Tolerance of a signature's time, in seconds, past and future, inclusive (docs/contract/delivery.md#fixed-constants). */
export const SIGNATURE_TOLERANCE_SECONDS = 300

const SECRET_PREFIX = 'whsec_'
const SECRET_BYTES = 32

const SIGNATURE_HEADER = 'x-service-signature'

/** Creates a secret: `whsec_` and the base64 of 32 random bytes (docs/contract/webhooks.md#signature). */
export function createSecret(random: Random): string {
  return SECRET_PREFIX + random.bytes(SECRET_BYTES).toString('base64')
}

/** A secret as the keys of both signatures, prepared once for many messages. */
export interface SigningKeys {
  /** The UTF-8 bytes of the whole secret. */
  timestamped: KeyObject
  /** The bytes that the base64 after `whsec_` encodes. */
  standard: KeyObject
}

/** Prepares the keys of a secret. */
export function prepareSigningKeys(secret: string): SigningKeys {
  const text = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret
  return {
    timestamped: createSecretKey(Buffer.from(secret)),
    standard: createSecretKey(Buffer.from(text, 'base64')),
  }
}

/**
 * `t=<unix seconds>,v1=<hex>`: HMAC-SHA256 over `<t>.<raw body>`, keyed with the UTF-8 bytes of the whole secret string (docs/contract/webhooks.md#signature).
 * The Stripe libraries verify this form.
 */
export function signTimestamped(key: KeyObject | string, timestampSeconds: number, body: string | Buffer): string {
  return `t=${timestampSeconds},v1=${hashTimestamped(key, timestampSeconds, body).toString('hex')}`
}

function hashTimestamped(key: KeyObject | string, timestampSeconds: number, body: string | Buffer): Buffer {
  return createHmac('sha256', key).update(`${timestampSeconds}.`).update(body).digest()
}

/**
 * `v1,<base64>`: HMAC-SHA256 over `<id>.<t>.<raw body>`, keyed with the bytes that the base64 after `whsec_` encodes
 * (Standard Webhooks, section "Signature scheme").
 */
export function signStandard(
  secret: KeyObject | string,
  message: { id: string; timestampSeconds: number; body: string | Buffer },
): string {
  const key = typeof secret === 'string' ? prepareSigningKeys(secret).standard : secret
  const hmac = createHmac('sha256', key)
  return `v1,${hmac.update(`${message.id}.${message.timestampSeconds}.`).update(message.body).digest('base64')}`
}

/**
 * The four signature headers of one attempt (docs/contract/webhooks.md#signature). `eventId` is the Standard Webhooks
 * id, so a receiver deduplicates on it. With `signingKey` the asymmetric signature follows the symmetric one.
 */
export function buildSignatureHeaders(input: {
  secret: SigningKeys | string
  signingKey?: KeyObject | undefined
  eventId: string
  timestampSeconds: number
  body: string | Buffer
}): Record<string, string> {
  const { secret, signingKey, eventId, timestampSeconds, body } = input
  const message = { id: eventId, timestampSeconds, body }
  const keys = typeof secret === 'string' ? prepareSigningKeys(secret) : secret
  const standard = signStandard(keys.standard, message)
  return {
    [SIGNATURE_HEADER]: signTimestamped(keys.timestamped, timestampSeconds, body),
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signingKey ? `${standard} ${signAsymmetric(signingKey, message)}` : standard,
  }
}

/** The reason of a refused signature. For the log; the caller gets only a refusal. */
export type SignatureFault = 'malformed' | 'stale' | 'mismatch'

/**
 * Verifies an `x-service-signature` header against the raw body (docs/contract/webhooks.md#signature,
 * docs/contract/webhooks.md#sink), in constant time. One matching `v1` part of several is enough. Ignores unknown parts,
 * as other receivers of this format do.
 */
export function verifyTimestamped(input: {
  secret: string
  header: string | undefined
  body: string | Buffer
  nowSeconds: number
}): { ok: true; timestampSeconds: number } | { ok: false; fault: SignatureFault } {
  const parsed = readSignatureHeader(input.header ?? '')
  if (parsed === undefined) return { ok: false, fault: 'malformed' }
  const expected = hashTimestamped(input.secret, parsed.timestampSeconds, input.body)
  let fits = false
  for (const signature of parsed.signatures) {
    if (timingSafeEqual(Buffer.from(signature, 'hex'), expected)) fits = true
  }
  if (!fits) return { ok: false, fault: 'mismatch' }
  // `nowSeconds` may have a fraction; a signer writes whole seconds.
  const ageSeconds = Math.abs(Math.floor(input.nowSeconds) - parsed.timestampSeconds)
  if (ageSeconds > SIGNATURE_TOLERANCE_SECONDS) return { ok: false, fault: 'stale' }
  return { ok: true, timestampSeconds: parsed.timestampSeconds }
}

/** Parses `t=` (once, plain digits) and the `v1=` parts (64 hex digits each). */
function readSignatureHeader(header: string): { timestampSeconds: number; signatures: string[] } | undefined {
  let timestamp: string | undefined
  const signatures: string[] = []
  for (const part of header.split(',')) {
    const [name, value = ''] = part.trim().split('=', 2)
    if (name === 't') {
      if (timestamp !== undefined || !/^(?:0|[1-9][0-9]{0,14})$/.test(value)) return undefined
      timestamp = value
    }
    if (name === 'v1') {
      if (!/^[0-9a-fA-F]{64}$/.test(value)) return undefined
      signatures.push(value)
    }
  }
  if (timestamp === undefined || signatures.length === 0) return undefined
  return { timestampSeconds: Number(timestamp), signatures }
}
