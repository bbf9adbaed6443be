/** The remedy for each reason of a refusal. The keys are the closed list of reasons. */
const REMEDIES = {
  crypto_unavailable:
    'Run on Node 20 or newer, Deno, Bun or a worker; in a browser the page must be a secure context (https or localhost).',
  secret_missing:
    'Pass the secret shown once when the webhook was created or rotated; an environment variable that is not set is the usual cause.',
  secret_malformed:
    'Pass the whole secret as shown, from "whsec_" to the last character, without quotes, spaces or a line break.',
  public_key_missing:
    'Pass the public_key of the webhook, or its key set; an environment variable that is not set is the usual cause. asymmetric_signature of the webhook switches it on.',
  public_key_malformed:
    'Pass the whole public key as shown, from "whpk_" to the last character, or the https URL of the key set.',
  keys_unavailable:
    'Check from this machine that the URL of the key set answers 200; it ends when the webhook is inactive or deleted, or has no asymmetric signature.',
  body_not_raw:
    'Pass the bytes as they arrived (string, Uint8Array or ArrayBuffer). The signature covers those bytes: a body that was parsed and written out again differs in spaces, key order or escapes. Take the body before a JSON parser sees it.',
  body_too_large: 'Signalbox envelopes are a few hundred bytes; raise maxBodyBytes only if you know why you need it.',
  header_missing:
    'Pass all request headers; a proxy that drops unknown headers must let x-service-signature, webhook-id, webhook-timestamp and webhook-signature through.',
  header_malformed:
    'Pass the header values unchanged. Signalbox never sends this form, so refuse the request; if every delivery fails here, look for a proxy that rewrites or doubles headers.',
  timestamp_too_old:
    'More than 300 seconds lie between signing and now: refuse it, Signalbox signs each retry afresh. If every delivery fails here, set the clock of this machine (NTP), and verify on arrival, before any queue of yours.',
  timestamp_too_new:
    'It was signed more than 300 seconds in the future of this machine. If every delivery fails here, set the clock of this machine (NTP).',
  signature_mismatch:
    'Check that the secret is the one of this webhook (a rotated secret replaces the old one at once) and that the body is the raw bytes, not a parsed and re-written copy.',
  body_not_json:
    'The signature is right but the body is not JSON in UTF-8, so Signalbox did not send it as an envelope.',
  envelope_malformed:
    'The signature is right but a member of the envelope is missing or of another type; update this package, or check that this secret belongs to this kind of delivery.',
} as const

/** The reason of a refusal. A closed list, stable across minor versions. */
export type RefusalReason = keyof typeof REMEDIES

/** Every reason, for exhaustive handling and for metrics labels. */
export const REFUSAL_REASONS = Object.keys(REMEDIES) as readonly RefusalReason[]

/**
 * A refused delivery. `reason` is for programs; `message` has the cause and the remedy. It contains no secret, signature or
 * part of the body, so it may be logged and sent back.
 */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
  readonly reason: RefusalReason

  constructor(reason: RefusalReason, finding: string, remedy: string = REMEDIES[reason]) {
    super(`${finding} ${remedy}`)
    this.reason = reason
  }
}
