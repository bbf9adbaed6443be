import type { KeyObject } from 'node:crypto'
import { buildSignatureHeaders, type SigningKeys } from '../../outbound/signature.ts'

/**
 * Every header of one attempt at `timestampSeconds` (docs/contract/webhooks.md#signature,
 * docs/contract/webhooks.md#delivery-headers).
 */
export function buildDeliveryHeaders(input: {
  userAgent: string
  secret: SigningKeys | string
  /** The private key of the asymmetric signature; none without one. */
  signingKey?: KeyObject | undefined
  eventId: string
  eventType: string
  deliveryId: string
  attempt: number
  timestampSeconds: number
  body: string
}): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': input.userAgent,
    'x-service-event': input.eventType,
    'x-service-delivery': input.deliveryId,
    'x-service-attempt': String(input.attempt),
    ...buildSignatureHeaders(input),
  }
}
