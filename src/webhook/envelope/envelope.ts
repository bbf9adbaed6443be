/** Version of the body a subscriber reads (docs/contract/webhooks.md#envelope). */
const ENVELOPE_API_VERSION = '2026-09-11'

/** Facts of an event in an envelope. Thin: never the resource itself. */
export interface EnvelopeEvent {
  /** The event's id: the same for every webhook and attempt; subscribers deduplicate on it. */
  id: string
  /** The event type, `<resource>.<action>`. */
  type: string
  createdAt: Date
  /** The owning account; null without one and for a purge. */
  account: string | null
  resource: string
  action: string
  /** `document_id` of the resource; null where the operation has none. */
  resourceId: string | null
  /** Path of the call that reads the resource; null where none exists. */
  url: string | null
}

/**
 * The raw body of one attempt (docs/contract/webhooks.md#envelope), serialized once: exactly this text, as UTF-8, is
 * signed and sent. The order of the members is part of the contract. `attempt` is 1-based and counts over the
 * dispatch's life.
 */
export function buildEnvelope(input: { event: EnvelopeEvent; attempt: number }): string {
  const { event, attempt } = input
  return JSON.stringify({
    id: event.id,
    type: event.type,
    api_version: ENVELOPE_API_VERSION,
    created_at: event.createdAt.toISOString(),
    attempt,
    data: {
      account: event.account,
      resource: event.resource,
      action: event.action,
      id: event.resourceId,
      url: event.url,
    },
  })
}
