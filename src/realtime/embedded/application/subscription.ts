import { type ChannelName, isUserId, parseChannelName } from '../frame/channel-name.ts'
import { type ClientFrame, readChannelData } from '../frame/client-frame.ts'
import { type RefusalName, SUBSCRIPTION_REFUSALS } from '../frame/close-reason.ts'
import {
  type Member,
  writeCacheMiss,
  writeError,
  writeEvent,
  writeSubscribed,
  writeSubscriptionError,
} from '../frame/server-frame.ts'
import { buildSubscriptionText, classifyToken } from '../frame/signature.ts'
import { noteUser, sendText } from './connection.ts'
import { announce } from './fan-out.ts'
import { wasWithdrawn } from './recent-revocations.ts'
import type { Connection, RealtimeContext } from './state.ts'

type SubscribeFrame = Extract<ClientFrame, { kind: 'subscribe' }>

/** A judged subscription: refused, or accepted for a channel and, where the client names one, a user. */
type Verdict = { refusal: RefusalName } | { channel: ChannelName; user?: Member | undefined }

const TOKEN_REFUSALS = {
  missing: 'auth-missing',
  'wrong-key': 'wrong-key',
  'wrong-signature': 'wrong-signature',
} as const

/** Subscribes a connection, or refuses to. */
export function subscribe(context: RealtimeContext, connection: Connection, frame: SubscribeFrame): void {
  if (connection.channels.has(frame.channel)) {
    sendText(context, connection, writeError(`Existing subscription to channel ${frame.channel}`))
    return
  }
  const verdict = decideSubscription(context, connection, frame)
  if ('refusal' in verdict) return void refuse(context, connection, { channel: frame.channel, name: verdict.refusal })
  const { channel, user } = verdict
  const { registry } = connection.application
  const member = channel.kind === 'presence' ? user : undefined
  if (channel.kind !== 'public') connection.isAuthorized = true
  if (user) noteUser(connection, user.id)
  connection.channels.set(channel.name, channel)
  const transitions = registry.join(channel, connection, member)
  context.relay.markChanged(connection.application, channel.name, member?.id)
  sendText(context, connection, writeSubscribed(channel.name, member && registry.membersOf(channel.name)))
  announce(context, connection.application, { transitions, joined: connection })
  if (channel.isCache) sendCached(context, connection, channel.name)
}

/** Sends `pusher:subscription_error` to the channel and, as the hosted service does, `pusher:error` to the connection. */
function refuse(
  context: RealtimeContext,
  connection: Connection,
  { channel, name }: { channel: string; name: RefusalName },
): void {
  const refusal = SUBSCRIPTION_REFUSALS[name]
  sendText(context, connection, writeSubscriptionError(channel, refusal))
  sendText(context, connection, writeError(`${refusal.error}: ${channel.slice(0, 200)}`))
}

function decideSubscription(context: RealtimeContext, connection: Connection, frame: SubscribeFrame): Verdict {
  const { limits } = context
  const channel = parseChannelName(frame.channel)
  if (!channel) return { refusal: 'invalid-name' }
  if (connection.channels.size >= limits.channelsPerConnection) return { refusal: 'too-many-channels' }
  const isWithdrawnFrom = (user: string) => wasWithdrawn(connection.application, user, channel.name)
  if (connection.withdrawn.has(channel.name) || [...connection.users].some(isWithdrawnFrom))
    return { refusal: 'access-ended' }
  if (channel.kind === 'public') return { channel }
  if (channel.kind === 'user') return connection.userId === channel.userId ? { channel } : { refusal: 'not-signed-in' }
  const { channelData } = frame
  if (channelData !== undefined && Buffer.byteLength(channelData) > limits.memberBytes)
    return { refusal: 'data-too-large' }
  const { app, registry } = connection.application
  const token = classifyToken(app, frame.auth, buildSubscriptionText(connection.socketId, channel.name, channelData))
  if (token !== 'valid') return { refusal: TOKEN_REFUSALS[token] }
  if (channelData === undefined && channel.kind !== 'presence') return { channel }
  const user = readChannelData(channelData ?? '')
  if (!user || !isUserId(user.id)) return { refusal: 'invalid-data' }
  if (isWithdrawnFrom(user.id)) return { refusal: 'access-ended' }
  const isNew = channel.kind === 'presence' && !registry.hasMember(channel.name, user.id)
  if (isNew && registry.countMembers(channel.name) >= limits.members) return { refusal: 'too-many-members' }
  return { channel, user }
}

function sendCached(context: RealtimeContext, connection: Connection, channel: string): void {
  const cached = connection.application.cache.find(channel, context.clock.now())
  if (!cached) return void sendText(context, connection, writeCacheMiss(channel))
  sendText(context, connection, writeEvent({ event: cached.event, channel, data: cached.data }))
}

/** Ends a subscription, if any. The protocol has no answer to it. */
export function unsubscribe(context: RealtimeContext, connection: Connection, channel: string): boolean {
  if (!connection.channels.delete(channel)) return false
  const { registry } = connection.application
  const userId = registry.subscribersOf(channel)?.get(connection)
  const transitions = registry.leave(channel, connection)
  context.relay.markChanged(connection.application, channel, userId)
  announce(context, connection.application, { transitions })
  return true
}

/** Withdraws a connection's access to a channel until `permit`. Returns whether a subscription ended. */
export function withdraw(context: RealtimeContext, connection: Connection, channel: string): boolean {
  connection.withdrawn.add(channel)
  connection.permitted.delete(channel)
  connection.tokens.delete(channel)
  if (!unsubscribe(context, connection, channel)) return false
  sendText(context, connection, writeSubscriptionError(channel, SUBSCRIPTION_REFUSALS['access-ended']))
  return true
}
