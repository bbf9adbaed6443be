import type { PublishedEvent } from './application.ts'
import type { CachedEvent } from './channel-cache.ts'
import type { ChannelShare } from './channel-registry.ts'
import type { Permission } from './user-access.ts'

/** What the processes tell each other. `app` is the id of an application. */
export type FleetMessage =
  /** Asks a process for its whole state. */
  | { kind: 'ask'; to: string }
  /** The whole state of the sender in an application, for the process that asked. */
  | { kind: 'state'; to: string; app: string; shares: ChannelShare[]; cache: [channel: string, event: CachedEvent][] }
  /** The sender's share of channels that changed. */
  | { kind: 'shares'; app: string; shares: ChannelShare[] }
  | { kind: 'publish'; app: string; events: readonly PublishedEvent[] }
  /** Ends the connections of a user. */
  | { kind: 'terminate'; app: string; user: string }
  /** Withdraws the access of a user to a channel. */
  | { kind: 'withdraw'; app: string; channel: string; user: string }
  /** A subscription of a socket was authorized for a user. */
  | ({ kind: 'permit'; app: string } & Permission)
  /** The sender stops. */
  | { kind: 'bye' }

/** PostgreSQL limits the payload of a notification to 7,999 bytes. */
const NOTE_LIMIT_BYTES = 7_900

/** The notification of a message: process, number, and the message itself where it is small enough. */
export function writeNote(process: string, number: number, payload: string): string {
  const head = `${process} ${number}`
  const fits = Buffer.byteLength(payload) + head.length + 1 <= NOTE_LIMIT_BYTES
  return fits ? `${head} ${payload}` : head
}

/** A notification, as it arrives. */
export interface FleetNote {
  process: string
  number: number
  /** Undefined when the message stands in the table only. */
  payload: string | undefined
}

/** Reads a notification; undefined for a text that is none. */
export function readNote(text: string): FleetNote | undefined {
  const [, process = '', number, payload] = /^([0-9a-f-]{36}) (\d{1,15})(?: ([\s\S]*))?$/.exec(text) ?? []
  return number === undefined ? undefined : { process, number: Number(number), payload }
}
