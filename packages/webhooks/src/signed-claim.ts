import { WebhookVerificationError } from './verification-error.ts'

/** The two ways a delivery is signed (docs/contract/webhooks.md#signature); every delivery carries both. */
export type SignatureFamily = 'service-signature' | 'standard-webhooks'

/** What one family of headers claims, parsed but not yet verified. */
export type SignedClaim = {
  readonly family: SignatureFamily
  /** Unix seconds at which the attempt says it was signed. */
  readonly timestampSeconds: number
  /** What stands before the body in the signed bytes. */
  readonly signedPrefix: string
  /** Candidate HMAC-SHA256 values, 32 bytes each, at least one. One match is enough. */
  readonly signatures: readonly Uint8Array<ArrayBuffer>[]
}

/** More candidates than this are refused: each costs one HMAC over the whole body. */
export const MAX_SIGNATURES = 8

const CANONICAL_SECONDS = /^(?:0|[1-9][0-9]{0,11})$/

/**
 * Parses Unix seconds in their one canonical spelling: no sign, no leading zero, no fraction, no spaces.
 * `undefined` for anything else. Twelve digits reach the year 33658 and stay exact in a double.
 */
export function parseUnixSeconds(text: string): number | undefined {
  return CANONICAL_SECONDS.test(text) ? Number(text) : undefined
}

/** The refusal for a header that breaks its grammar; the value itself stays out of the message. */
export function buildMalformed(header: string, fault: string): WebhookVerificationError {
  return new WebhookVerificationError('header_malformed', `The header ${header} ${fault}.`)
}
