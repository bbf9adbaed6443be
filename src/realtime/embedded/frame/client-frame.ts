/** A frame of a client, or its fault. Names and tokens are not checked here. */
export type ClientFrame =
  | { kind: 'ping' }
  | { kind: 'pong' }
  | { kind: 'subscribe'; channel: string; auth: string; channelData: string | undefined }
  | { kind: 'unsubscribe'; channel: string }
  | { kind: 'signin'; auth: string; userData: string }
  /** The forwarded `data`: text unchanged, all else as JSON. */
  | { kind: 'client-event'; channel: string; event: string; data: string }
  | { kind: 'fault'; message: string }

/** Maximum length of an event name, in characters. */
export const EVENT_NAME_LIMIT = 200

/** Reads a text frame. Never throws. */
export function parseClientFrame(text: string): ClientFrame {
  const frame = parseObject(text)
  if (!frame) return fault('A message is one JSON object')
  const { event, data } = frame
  if (typeof event !== 'string') return fault('The message has no event')
  if (event.startsWith('client-')) return readClientEvent(event, frame)
  switch (event) {
    case 'pusher:ping':
      return { kind: 'ping' }
    case 'pusher:pong':
      return { kind: 'pong' }
    case 'pusher:subscribe':
      return readSubscribe(asObject(data))
    case 'pusher:unsubscribe': {
      const channel = asObject(data)?.channel
      return typeof channel === 'string' ? { kind: 'unsubscribe', channel } : fault('The message names no channel')
    }
    case 'pusher:signin':
      return readSignin(asObject(data))
    default:
      return fault('Clients send pusher:* and client-* events only')
  }
}

function readSubscribe(data: Record<string, unknown> | undefined): ClientFrame {
  const { channel, auth = '', channel_data: channelData } = data ?? {}
  if (typeof channel !== 'string') return fault('The message names no channel')
  if (auth !== null && typeof auth !== 'string') return fault('auth is not a string')
  if (channelData !== undefined && channelData !== null && typeof channelData !== 'string')
    return fault('channel_data is not a string')
  return { kind: 'subscribe', channel, auth: auth ?? '', channelData: channelData ?? undefined }
}

function readSignin(data: Record<string, unknown> | undefined): ClientFrame {
  const { auth, user_data: userData } = data ?? {}
  if (typeof auth !== 'string' || typeof userData !== 'string') return fault('A sign-in has auth and user_data')
  return { kind: 'signin', auth, userData }
}

function readClientEvent(event: string, { channel, data }: Record<string, unknown>): ClientFrame {
  if (event.length > EVENT_NAME_LIMIT) return fault(`An event name has at most ${EVENT_NAME_LIMIT} characters`)
  if (typeof channel !== 'string') return fault('The message names no channel')
  const text = typeof data === 'string' ? data : JSON.stringify(data ?? null)
  return { kind: 'client-event', channel, event, data: text }
}

/** The user of `channel_data` or `user_data`. */
export interface NamedUser {
  id: string
  /** `user_info`, shown to other members; undefined without one. */
  info: unknown
}

/** Reads `channel_data`: `{ user_id, user_info? }`. A number is read as text, as the client libraries send both. */
export function readChannelData(channelData: string): NamedUser | undefined {
  const data = parseObject(channelData)
  const id = data?.user_id
  if (typeof id !== 'string' && typeof id !== 'number') return undefined
  return { id: String(id), info: data?.user_info }
}

/** Reads `user_data`: `{ id, ... }`. */
export function readUserData(userData: string): NamedUser | undefined {
  const data = parseObject(userData)
  return typeof data?.id === 'string' ? { id: data.id, info: data.user_info } : undefined
}

/** The JSON object of a text; undefined for any other text. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return undefined
  }
}

function asObject(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}

function fault(message: string): ClientFrame {
  return { kind: 'fault', message }
}
