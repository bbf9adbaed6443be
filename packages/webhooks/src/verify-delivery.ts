import { type Envelope, parseEnvelope } from './envelope.ts'
import type { SignatureFamily } from './signed-claim.ts'
import { type RefusalReason, WebhookVerificationError } from './verification-error.ts'
import { type VerificationInput, verifySignature } from './verify-signature.ts'

export { type Envelope, type EventName, isEventName } from './envelope.ts'
export { EVENT_NAMES } from './event-names.generated.ts'
export type { HeadersInput } from './header-value.ts'
export { createKeySet, type KeySetOptions } from './key-set.ts'
export type { KeySource, PublicKeyInput } from './public-key.ts'
export type { RawBody } from './raw-body.ts'
export type { SecretInput } from './secret.ts'
export type { SignatureFamily } from './signed-claim.ts'
export { REFUSAL_REASONS, type RefusalReason, WebhookVerificationError } from './verification-error.ts'
export {
  type SignatureRequirement,
  TOLERANCE_SECONDS,
  type VerificationInput,
  type VerificationKeys,
} from './verify-signature.ts'

/** The result of `checkDelivery`. */
export type DeliveryCheck =
  | { readonly ok: true; readonly envelope: Envelope; readonly families: readonly SignatureFamily[] }
  | { readonly ok: false; readonly reason: RefusalReason; readonly message: string }

/**
 * Verifies a delivery and returns its envelope. Throws only `WebhookVerificationError`: answer such a request with 401,
 * which Signalbox retries on its schedule.
 */
export async function verifyDelivery(input: VerificationInput): Promise<Envelope> {
  const verified = await verifySignature(input)
  return parseEnvelope(verified.text)
}

/** Like `verifyDelivery`, but returns a refusal instead of throwing. */
export async function checkDelivery(input: VerificationInput): Promise<DeliveryCheck> {
  try {
    const verified = await verifySignature(input)
    return { ok: true, envelope: parseEnvelope(verified.text), families: verified.families }
  } catch (error) {
    if (error instanceof WebhookVerificationError) return { ok: false, reason: error.reason, message: error.message }
    throw error
  }
}
