/** Version of the message a client reads, that of the envelope (docs/contract/webhooks.md#envelope). */
const MESSAGE_API_VERSION = '2026-09-11'

/** Provider's limit of bytes of a message (documentation of Pusher Channels, "HTTP API reference"). */
export const MAX_MESSAGE_BYTES = 10_240

/** Provider's limit of characters of an event name. */
export const MAX_EVENT_NAME_LENGTH = 200

/** Maximum UTF-8 bytes of a text of the message; a longer one is omitted, so that the message is never too large. */
const MAX_TEXT_BYTES = 1_600

/** Facts of an event in a message. Thin: never the resource itself. */
export interface MessageEvent {
  id: string
  /** The event type, `<resource>.<action>`: the name of the message on its channels. */
  type: string
  createdAt: Date
  account: string | null
  resource: string
  action: string
  resourceId: string | null
  url: string | null
}

/** A message as a client reads it. */
export interface MessageView {
  id: string
  type: string | null
  api_version: string
  created_at: string
  data: {
    account: string | null
    resource: string | null
    action: string | null
    id: string | null
    url: string | null
  }
}

/**
 * The message of an event (docs/contract/realtime.md#published-events): the envelope of a webhook without `attempt`. Its
 * JSON is always smaller than `MAX_MESSAGE_BYTES`: text that no event of the service has is replaced by null. Pure.
 */
export function describeMessage(event: MessageEvent): MessageView {
  return {
    id: event.id,
    type: bounded(event.type),
    api_version: MESSAGE_API_VERSION,
    created_at: event.createdAt.toISOString(),
    data: {
      account: event.account,
      resource: bounded(event.resource),
      action: bounded(event.action),
      id: bounded(event.resourceId),
      url: bounded(event.url),
    },
  }
}

/** The message of an event as JSON text. Pure. */
export function buildMessage(event: MessageEvent): string {
  return JSON.stringify(describeMessage(event))
}

/** The text, or null when it is too long as JSON, where a character may take six bytes. */
function bounded(text: string | null): string | null {
  return text === null || Buffer.byteLength(JSON.stringify(text)) <= MAX_TEXT_BYTES ? text : null
}
