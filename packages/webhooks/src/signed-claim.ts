import { WebhookVerificationError } from './verification-error.ts'

/** The two families of HMAC signatures (docs/contract/webhooks.md#signature); every delivery has both. */
export type SymmetricFamily = 'service-signature' | 'standard-webhooks'

/** The families of signatures; `asymmetric` is the Ed25519 one of a webhook with a public key. */
export type SignatureFamily = SymmetricFamily | 'asymmetric'

/** The parsed, unverified headers of one family. */
export type SignedClaim = {
  readonly family: SignatureFamily
  /** The claimed time of the signature, in Unix seconds. */
  readonly timestampSeconds: number
  /** The signed bytes before the body. */
  readonly signedPrefix: string
  /** Candidates, at least one: HMAC-SHA256 values of 32 bytes, or Ed25519 signatures of 64. One match is enough. */
  readonly signatures: readonly Uint8Array<ArrayBuffer>[]
}

/** More candidates than this are refused: each costs one HMAC over the whole body. */
export const MAX_SIGNATURES = 8

const CANONICAL_SECONDS = /^(?:0|[1-9][0-9]{0,11})$/

/**
 * Parses Unix seconds in canonical form: no sign, no leading zero, no fraction, no spaces. `undefined` for other text.
 * Twelve digits reach the year 33658 and are exact in a double.
 */
export function parseUnixSeconds(text: string): number | undefined {
  return CANONICAL_SECONDS.test(text) ? Number(text) : undefined
}

/** The error for a malformed header, without its value. */
export function buildMalformed(header: string, fault: string): WebhookVerificationError {
  return new WebhookVerificationError('header_malformed', `The header ${header} ${fault}.`)
}
