import { EVENT_NAMES } from './event-names.generated.ts'
import { WebhookVerificationError } from './verification-error.ts'

/** An event name of the catalogue this version of the package was generated from. */
export type EventName = (typeof EVENT_NAMES)[number]

/**
 * The body of a delivery (docs/contract/webhooks.md#envelope). It has the id of the resource, not its content: read that at `data.url`.
 * Deduplicate on `id`: deliveries are at-least-once. There is no order between events.
 */
export type Envelope = {
  /** The event's id: the same for every subscriber, attempt and replay. */
  readonly id: string
  /** `<resource>.<action>`; a catalogue name, or one another service registered or a later version added. */
  readonly type: EventName | (string & {})
  /** `2026-09-11` at the time of this version. */
  readonly api_version: string
  /** When the event happened; ISO 8601, UTC. */
  readonly created_at: string
  /** The number of this POST of the dispatch, from 1; replays continue the count. */
  readonly attempt: number
  readonly data: {
    /** Id of the owning account; null where the event has none, and for purge events. */
    readonly account: string | null
    readonly resource: string
    readonly action: string
    /** `document_id` of the resource; null for an event without a single one. */
    readonly id: string | null
    /** Path of the call that reads the resource; null where none exists. */
    readonly url: string | null
  }
}

/** Whether `text` is an event name this version of the package knows. */
export function isEventName(text: string): text is EventName {
  return (EVENT_NAMES as readonly string[]).includes(text)
}

/** Parses a verified body as an envelope. Members it does not know are kept. Throws `body_not_json`, `envelope_malformed`. */
export function parseEnvelope(text: string): Envelope {
  const envelope = parseObject(text)
  checkCommonMembers(envelope)
  const data = envelope.data
  checkMember(isObject(data), 'data')
  if (isObject(data.user) && data.resource === undefined)
    throw refuseKind('a provisioning target', 'verifyProvisioning')
  checkMember(isTextOrNull(data.account), 'data.account')
  checkMember(isText(data.resource), 'data.resource')
  checkMember(isText(data.action), 'data.action')
  checkMember(isTextOrNull(data.id), 'data.id')
  checkMember(isTextOrNull(data.url), 'data.url')
  return envelope as Envelope
}

/** Parses JSON whose outermost value is an object. */
export function parseObject(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new WebhookVerificationError('body_not_json', 'The body is not valid JSON.')
  }
  if (!isObject(value)) throw new WebhookVerificationError('envelope_malformed', 'The body is not a JSON object.')
  return value
}

/** Checks the members that every kind of envelope has. */
export function checkCommonMembers(envelope: Record<string, unknown>): void {
  checkMember(isText(envelope.id), 'id')
  checkMember(isText(envelope.type), 'type')
  checkMember(isText(envelope.api_version), 'api_version')
  checkMember(isText(envelope.created_at), 'created_at')
  checkMember(Number.isSafeInteger(envelope.attempt) && (envelope.attempt as number) >= 1, 'attempt')
}

/** Throws a `WebhookVerificationError` that names the member, unless it is valid. */
export function checkMember(isValid: boolean, name: string): asserts isValid {
  if (!isValid) throw new WebhookVerificationError('envelope_malformed', `The member ${name} is not as documented.`)
}

/** The refusal of a genuine body of the other kind, with the function that verifies it. */
export function refuseKind(kind: string, verifier: 'verifyDelivery' | 'verifyProvisioning'): WebhookVerificationError {
  const path = verifier === 'verifyDelivery' ? '@signalbox/webhooks' : '@signalbox/webhooks/provisioning'
  return new WebhookVerificationError(
    'envelope_malformed',
    `The signature is right, and the body is for ${kind}.`,
    `Verify it with ${verifier} of ${path}.`,
  )
}

/** Whether `value` is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether `value` is a non-empty string. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || isText(value)
}
