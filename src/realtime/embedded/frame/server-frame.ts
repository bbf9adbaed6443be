import type { SubscriptionRefusal } from './close-reason.ts'

/** The texts of the server's frames. `data` is a string of JSON, as the protocol requires of the server. */

/** An event for the subscribers of a channel. `userId` names the sender of a client event on a presence channel. */
export interface ChannelEvent {
  event: string
  channel: string
  data: string
  userId?: string | undefined
}

/** The event of a channel. */
export function writeEvent({ event, channel, data, userId }: ChannelEvent): string {
  return JSON.stringify({ event, channel, data, ...(userId !== undefined && { user_id: userId }) })
}

/** The first frame. `activityTimeoutSeconds` is the silence after which a client pings. */
export function writeHello(socketId: string, activityTimeoutSeconds: number): string {
  return writeData('pusher:connection_established', { socket_id: socketId, activity_timeout: activityTimeoutSeconds })
}

export const PING_TEXT = '{"event":"pusher:ping","data":"{}"}'
export const PONG_TEXT = '{"event":"pusher:pong","data":"{}"}'

export interface Member {
  id: string
  info: unknown
}

/** The answer to a subscription; `members` of a presence channel. */
export function writeSubscribed(channel: string, members?: Iterable<Member>): string {
  return writeData('pusher_internal:subscription_succeeded', members ? describeMembers(members) : {}, channel)
}

function describeMembers(members: Iterable<Member>) {
  // Without a prototype, so that a user may be called __proto__.
  const hash: Record<string, unknown> = Object.create(null)
  const ids: string[] = []
  for (const { id, info } of members) {
    ids.push(id)
    hash[id] = info ?? null
  }
  return { presence: { ids, hash, count: ids.length } }
}

/** A user who now has a connection on the channel. */
export function writeMemberAdded(channel: string, { id, info }: Member): string {
  return writeData(
    'pusher_internal:member_added',
    { user_id: id, ...(info !== undefined && { user_info: info }) },
    channel,
  )
}

/** A user who has no connection on the channel any more. */
export function writeMemberRemoved(channel: string, id: string): string {
  return writeData('pusher_internal:member_removed', { user_id: id }, channel)
}

/** The channel has no cached event. */
export function writeCacheMiss(channel: string): string {
  return JSON.stringify({ event: 'pusher:cache_miss', channel, data: '{}' })
}

/** The answer to a sign-in. */
export function writeSignedIn(userData: string): string {
  return writeData('pusher:signin_success', { user_data: userData })
}

/** A fault that concerns the connection. `data` is an object here, as the hosted service sends it. */
export function writeError(message: string, code: number | null = null): string {
  return JSON.stringify({ event: 'pusher:error', data: { message, code } })
}

/** A refused or ended subscription. */
export function writeSubscriptionError(channel: string, refusal: SubscriptionRefusal): string {
  const { type, error, status } = refusal
  return JSON.stringify({ event: 'pusher:subscription_error', channel, data: { type, error, status } })
}

function writeData(event: string, data: unknown, channel?: string): string {
  return JSON.stringify({ event, ...(channel !== undefined && { channel }), data: JSON.stringify(data) })
}

/** Encodes a text as one unmasked, final WebSocket frame (RFC 6455 section 5.2), to be written to many sockets. */
export function encodeTextFrame(text: string): Buffer {
  const length = Buffer.byteLength(text)
  const headLength = length < 126 ? 2 : length < 65_536 ? 4 : 10
  const frame = Buffer.allocUnsafe(headLength + length)
  frame[0] = 0x81
  if (headLength === 2) frame[1] = length
  else if (headLength === 4) {
    frame[1] = 126
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = 127
    frame.writeUInt32BE(0, 2)
    frame.writeUInt32BE(length, 6)
  }
  frame.write(text, headLength)
  return frame
}
