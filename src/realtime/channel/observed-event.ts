import type { Observation } from '../embedded/application/state.ts'
import { type ChannelEvent, readText } from './channel-event.ts'

/** The channel event of an observation of the embedded server; undefined for others, such as a publish. Pure. */
export function readObservation(observation: Observation): ChannelEvent | undefined {
  const nothing = { userId: null, event: null, bytes: null, subscriptionCount: null }
  switch (observation.kind) {
    case 'channel_occupied':
    case 'channel_vacated':
      return ofClients({ ...nothing, name: observation.kind, channel: observation.channel })
    case 'member_added':
    case 'member_removed':
      return { ...nothing, name: observation.kind, channel: observation.channel, userId: observation.user }
    case 'subscription_count': {
      const { channel, count } = observation
      return ofClients({ ...nothing, name: 'subscription_count', channel, subscriptionCount: count })
    }
    case 'publish': {
      const { source, event, channels, bytes, userId } = observation.publish
      const [channel] = channels
      if (source !== 'client' || channel === undefined) return undefined
      return { ...nothing, name: 'client_event', channel, event: readText(event), bytes, userId: userId ?? null }
    }
    default:
      return undefined
  }
}

/** Excludes the server's own channel of a signed-in user. */
function ofClients(event: ChannelEvent): ChannelEvent | undefined {
  return event.channel.startsWith('#') ? undefined : event
}
