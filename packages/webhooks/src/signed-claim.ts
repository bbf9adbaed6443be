import { WebhookVerificationError } from './verification-error.ts'

/** The two signature families (docs/contract/webhooks.md#signature); every delivery has both. */
export type SignatureFamily = 'service-signature' | 'standard-webhooks'

/** The parsed, unverified headers of one family. */
export type SignedClaim = {
  readonly family: SignatureFamily
  /** The claimed time of the signature, in Unix seconds. */
  readonly timestampSeconds: number
  /** The signed bytes before the body. */
  readonly signedPrefix: string
  /** Candidate HMAC-SHA256 values, 32 bytes each, at least one. One match is enough. */
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
