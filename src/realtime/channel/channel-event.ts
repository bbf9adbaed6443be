import { isStorableText } from '../../base/stored-text.ts'

/** The names of channel events: those of the webhooks of the Pusher protocol. */
export const CHANNEL_EVENT_NAMES = [
  'channel_occupied',
  'channel_vacated',
  'member_added',
  'member_removed',
  'client_event',
  'cache_miss',
  'subscription_count',
] as const

export type ChannelEventName = (typeof CHANNEL_EVENT_NAMES)[number]

/** An event of a channel. Of the data of a client event only the number of bytes is stored. */
export interface ChannelEvent {
  name: ChannelEventName
  channel: string
  userId: string | null
  /** For a client event: its name, and the bytes of its data. */
  event: string | null
  bytes: number | null
  subscriptionCount: number | null
}

const TEXT_LIMIT = 200

const INTEGER_LIMIT = 2_147_483_647

/** Reads an event of a webhook of the provider; undefined for an unknown one. Invalid members are null. Pure. */
export function readChannelEvent(given: Readonly<Record<string, unknown>>): ChannelEvent | undefined {
  const name = CHANNEL_EVENT_NAMES.find((name) => name === given.name)
  const channel = readText(given.channel)
  if (name === undefined || channel === null) return undefined
  const { data, subscription_count: count } = given
  return {
    name,
    channel,
    userId: readText(given.user_id),
    event: readText(given.event),
    bytes: typeof data === 'string' ? Buffer.byteLength(data) : null,
    subscriptionCount: Number.isInteger(count) && inBounds(count as number) ? (count as number) : null,
  }
}

const inBounds = (count: number): boolean => count >= 0 && count <= INTEGER_LIMIT

/** A text that PostgreSQL can keep, without U+0000 and without half a surrogate pair; null for every other value. */
export function readText(value: unknown): string | null {
  if (typeof value !== 'string' || value === '' || value.length > TEXT_LIMIT) return null
  return isStorableText(value) ? value : null
}
