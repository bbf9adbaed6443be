import type { PublishedEvent } from '../application/state.ts'
import { parseChannelName } from '../frame/channel-name.ts'
import { EVENT_NAME_LIMIT, parseObject } from '../frame/client-frame.ts'
import { isSocketId } from '../frame/socket-id.ts'
import { type ApiAnswer, refuse } from './api-request.ts'

const CHANNELS_LIMIT = 100

const BATCH_LIMIT = 10

/** Attributes of a channel that a request may ask for. */
const ATTRIBUTES = ['user_count', 'subscription_count', 'cache'] as const

export type Attribute = (typeof ATTRIBUTES)[number]

/** An event to publish, and the attributes of its channels to answer with. */
export interface PublishRequest {
  event: PublishedEvent
  info: readonly Attribute[]
}

/** Reads the body of `POST /apps/{id}/events`. */
export function readEvent(body: string, eventBytes: number): PublishRequest | ApiAnswer {
  const members = parseObject(body)
  return members ? readMembers(members, eventBytes) : refuse(400, 'The body is not a JSON object')
}

/** Reads the body of `POST /apps/{id}/batch_events`. */
export function readBatch(body: string, eventBytes: number): PublishRequest[] | ApiAnswer {
  const batch = parseObject(body)?.batch
  if (!Array.isArray(batch) || batch.length === 0) return refuse(400, 'batch must be a list of events')
  if (batch.length > BATCH_LIMIT) return refuse(400, `A batch has at most ${BATCH_LIMIT} events`)
  const requests: PublishRequest[] = []
  for (const [index, members] of batch.entries()) {
    const isObject = typeof members === 'object' && members !== null && !Array.isArray(members)
    const request = isObject ? readMembers(members, eventBytes) : refuse(400, 'an event must be an object')
    if ('status' in request) return refuse(request.status, `batch[${index}]: ${request.body}`)
    requests.push(request)
  }
  return requests
}

function readMembers(members: Record<string, unknown>, eventBytes: number): PublishRequest | ApiAnswer {
  const { name, data, socket_id: socketId } = members
  if (typeof name !== 'string' || name === '') return refuse(400, 'name must be a string')
  if (name.length > EVENT_NAME_LIMIT) return refuse(400, `name must have at most ${EVENT_NAME_LIMIT} characters`)
  if (/^pusher(?:_internal)?:/.test(name)) return refuse(400, 'name must not begin with pusher: or pusher_internal:')
  if (typeof data !== 'string') return refuse(400, 'data must be a string')
  if (Buffer.byteLength(data) > eventBytes) return refuse(413, `data must have at most ${eventBytes} bytes`)
  if (socketId !== undefined && socketId !== null && !isSocketId(socketId))
    return refuse(400, 'socket_id must be two numbers with a point between them')
  const channels = readChannels(members)
  if ('status' in channels) return channels
  const info = readAttributes(members.info ?? '')
  if (!info) return refuse(400, `info must list some of ${ATTRIBUTES.join(', ')}`)
  return { event: { event: name, channels, data, socketId: socketId ?? undefined, source: 'api' }, info }
}

function readChannels({ channel, channels }: Record<string, unknown>): string[] | ApiAnswer {
  const given = channels ?? (channel === undefined ? undefined : [channel])
  if (!Array.isArray(given) || given.length === 0) return refuse(400, 'channels must be a list of names')
  if (given.length > CHANNELS_LIMIT) return refuse(400, `An event has at most ${CHANNELS_LIMIT} channels`)
  const names = new Set<string>()
  let hasEncrypted = false
  for (const item of given) {
    const parsed = parseChannelName(item)
    if (!parsed) return refuse(400, 'A channel name is invalid')
    hasEncrypted ||= parsed.kind === 'encrypted'
    names.add(parsed.name)
  }
  if (hasEncrypted && names.size > 1) return refuse(400, 'An event of an encrypted channel has no other channel')
  return [...names]
}

/** Reads a comma-separated list of attributes; undefined when it names another one. */
export function readAttributes(text: unknown): Attribute[] | undefined {
  if (typeof text !== 'string') return undefined
  const names = text.split(',').filter((name) => name !== '')
  const isKnown = (name: string): name is Attribute => (ATTRIBUTES as readonly string[]).includes(name)
  return names.every(isKnown) ? names : undefined
}
