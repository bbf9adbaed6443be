import type { ACCOUNT_EVENT_NAMES } from './event-names.generated.ts'

/** An event type of the API that is published on channels; platforms add their own. */
export type ApiEventName = (typeof ACCOUNT_EVENT_NAMES)[number]

/** The name of an event: of the API, with completion, or of the platform. */
export type EventName = ApiEventName | (`${string}.${string}` & {})

/** The name of a private channel. */
export type ChannelName = `private-account-${string}` | `private-contract-${string}`

/** The channel of everything that happens in an account. */
export function accountChannel(id: string): ChannelName {
  return `private-account-${id}`
}

/** The channel of one contract. */
export function contractChannel(id: string): ChannelName {
  return `private-contract-${id}`
}

/** The name of a presence channel: who joins it is shown to the others. */
export type PresenceName = `presence-account-${string}` | `presence-contract-${string}`

/** The channel of the users who look at an account. */
export function accountPresence(id: string): PresenceName {
  return `presence-account-${id}`
}

/** The channel of the users who look at a contract. */
export function contractPresence(id: string): PresenceName {
  return `presence-contract-${id}`
}

/** A message: thin, so what changed is read through the API. It is delivered once. */
export interface RealtimeMessage<Name extends EventName = EventName> {
  /** The id of the event. */
  id: string
  /** The event type. */
  type: Name
  api_version: string
  /** ISO 8601, UTC. */
  created_at: string
  data: {
    account: string
    resource: string
    action: string
    /** The id of the resource. */
    id: string | null
    /** The path of the call that reads it. */
    url: string | null
  }
}

/**
 * The state of a channel:
 * - `connecting`: on the way, or on the way back after an interruption;
 * - `live`: messages arrive, and those of an interruption have arrived, unless `onMissed` says otherwise. What happened before
 *   the channel was first live has to be read through the API;
 * - `denied`: the service refuses, with its reason. Asks again after 15 s, and less often up to every five minutes;
 * - `unavailable`: there is no connection at the moment, or realtime is not configured. Goes on trying.
 */
export type ChannelState =
  | { kind: 'connecting' }
  | { kind: 'live' }
  | { kind: 'denied'; reason: string }
  | { kind: 'unavailable' }
