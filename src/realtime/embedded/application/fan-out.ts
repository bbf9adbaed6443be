import { parseChannelName } from '../frame/channel-name.ts'
import { encodeTextFrame, writeEvent, writeMemberAdded, writeMemberRemoved } from '../frame/server-frame.ts'
import type { Transition } from './channel-registry.ts'
import { sendFrame } from './connection.ts'
import type { Application, Connection, PublishedEvent, RealtimeContext } from './state.ts'

/** Delivers an event to the subscribers of this process. */
export function deliver(context: RealtimeContext, application: Application, published: PublishedEvent): void {
  const { event, channels, data, socketId, userId, source } = published
  const nowMs = context.clock.now()
  let delivered = 0
  for (const channel of channels) {
    if (source === 'api' && parseChannelName(channel)?.isCache) {
      const expiresAtMs = nowMs + context.limits.cacheSeconds * 1000
      application.cache.put(channel, { event, data, expiresAtMs })
    }
    const subscribers = application.registry.subscribersOf(channel)
    if (!subscribers) continue
    const frame = encodeTextFrame(writeEvent({ event, channel, data, userId }))
    for (const connection of subscribers.keys())
      if (connection.socketId !== socketId && sendFrame(context, connection, frame)) delivered += 1
  }
  context.counts.published += 1
  context.counts.delivered += delivered
  const bytes = Buffer.byteLength(data)
  const publish = { at: new Date(nowMs), event, channels, bytes, source, userId, delivered }
  context.observe({ app: application.app.id, kind: 'publish', publish, data })
}

/** Notifies the subscribers of this process of joined and left members, except `joined` itself. */
export function announce(
  context: RealtimeContext,
  application: Application,
  { transitions, joined }: { transitions: readonly Transition[]; joined?: Connection },
): void {
  const app = application.app.id
  for (const transition of transitions) {
    const { name: channel } = transition.channel
    switch (transition.kind) {
      case 'occupied':
      case 'vacated':
        context.observe({ app, kind: `channel_${transition.kind}`, channel })
        break
      case 'member_added':
        sendToAll(context, application, { channel, text: writeMemberAdded(channel, transition.member), except: joined })
        context.observe({ app, kind: 'member_added', channel, user: transition.member.id })
        break
      case 'member_removed':
        sendToAll(context, application, { channel, text: writeMemberRemoved(channel, transition.userId) })
        context.observe({ app, kind: 'member_removed', channel, user: transition.userId })
        break
    }
  }
}

function sendToAll(
  context: RealtimeContext,
  { registry }: Application,
  { channel, text, except }: { channel: string; text: string; except?: Connection | undefined },
): void {
  const frame = encodeTextFrame(text)
  for (const connection of registry.subscribersOf(channel)?.keys() ?? [])
    if (connection !== except) sendFrame(context, connection, frame)
}
