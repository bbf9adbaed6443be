import type { ChannelName, ChannelState, EventName, PresenceName, RealtimeMessage } from './channel.ts'
import { buildChannelSubscription, type ChannelSubscription } from './channel-subscription.ts'
import type { ClientEventLine } from './client-events.ts'
import { buildConnection, logLibrary } from './connection.ts'
import { isDebugWanted } from './debug.ts'
import { buildMemberList, type Member, type MemberList } from './presence.ts'
import type { Position } from './resume-merge.ts'
import { buildService, type Service, type TokenProvider } from './service-call.ts'

export type {
  ApiEventName,
  ChannelName,
  ChannelState,
  EventName,
  PresenceName,
  RealtimeMessage,
} from './channel.ts'
export { accountChannel, accountPresence, contractChannel, contractPresence } from './channel.ts'
export type {
  ClientEventHandler,
  ClientEventLine,
  ClientEventName,
  ClientEventSender,
  ClientEvents,
} from './client-events.ts'
export { defineClientEvents } from './client-events.ts'
export { ACCOUNT_EVENT_NAMES } from './event-names.generated.ts'
export type { Member } from './presence.ts'
export type { TokenProvider } from './service-call.ts'

/** Options of the connection to Signalbox. */
export interface RealtimeOptions {
  /** Where Signalbox is: `https://id.example.com`. */
  service: string
  /** Returns the access token of the user; called for each authorization. */
  token: TokenProvider
  fetch?: typeof fetch
  /** Whether to log verbosely. Default: what the page asks for (`realtime_debug`). */
  debug?: boolean
  /** Takes the lines of the debug log. Default: the console. */
  log?: (line: string) => void
}

/** Members of every joined channel. */
export interface Joined extends ClientEventLine {
  read(): ChannelState
  /** Calls `listener` when the state changes; returns the function that ends this. */
  onState(listener: () => void): () => void
  /** Leaves; the channel is unsubscribed when all who joined it have left. */
  leave(): void
}

/** A joined channel. */
export interface JoinedChannel extends Joined {
  name: ChannelName
  /** Calls `listener` when messages were missed: the displayed data has to be read again. Returns the function that ends this. */
  onMissed(listener: () => void): () => void
  /** Calls `handler` with each message of this event type, once; returns the function that ends this. */
  on<Name extends EventName>(event: Name, handler: (message: RealtimeMessage<Name>) => void): () => void
}

/** A joined presence channel. */
export interface JoinedPresence extends Joined {
  name: PresenceName
  /** Who is present, this user included, the longest first; the last known ones while the channel is not live. */
  members(): readonly Member[]
  /** Calls `listener` when the members change; returns the function that ends this. */
  onMembers(listener: () => void): () => void
}

/** One connection to the realtime server, shared by all channels. */
export interface Realtime {
  join(channel: ChannelName): JoinedChannel
  /** Joins a presence channel: the user is shown to its other members, who have access to the account or the contract too. */
  joinPresence(channel: PresenceName): JoinedPresence
  close(): void
}

/** Connects to the realtime server that the service names, at the first channel that is joined. */
export function createRealtime(options: RealtimeOptions): Realtime {
  const service = buildService({ ...options, fetch: options.fetch ?? globalThis.fetch.bind(globalThis) })
  if (options.debug ?? isDebugWanted()) {
    // biome-ignore lint/suspicious/noConsole: what a user asks for by the debug switch
    const log = options.log ?? ((line: string) => console.debug(line))
    logLibrary(log)
  }
  const joined = new Map<string, OpenChannel>()
  const line = buildConnection({ service, list: () => [...joined.values()].map((item) => item.subscription) })

  /** Joins the channel, which is opened by the first who joins it. */
  function join(name: ChannelName | PresenceName): { channel: OpenChannel; shared: Joined } {
    let channel = joined.get(name)
    if (channel?.subscription.read().kind === 'denied' && channel.users === 0) channel = undefined
    if (!channel) {
      channel = openChannel(service, name)
      joined.set(name, channel)
      line.add(channel.subscription)
    }
    const { subscription } = channel
    channel.users += 1
    let hasLeft = false
    const shared: Joined = {
      read: subscription.read,
      onState: subscription.onState,
      onClient: ({ checks }, event, handler) =>
        subscription.onClient(event, handler as (data: unknown) => void, (data) => checks[event]?.(data) ?? true),
      send: (_events, event, data) => subscription.send(event, data),
      leave: () => {
        const own = joined.get(name)
        if (hasLeft || own?.subscription !== subscription) return
        hasLeft = true
        own.users -= 1
        if (own.users > 0) return
        joined.delete(name)
        line.remove(subscription)
      },
    }
    return { channel, shared }
  }

  return {
    join: (name) => {
      const { channel, shared } = join(name)
      const { subscription } = channel
      return {
        ...{ ...shared, name, onMissed: subscription.onMissed },
        on: (event, handler) => subscription.on(event, handler as (message: RealtimeMessage) => void),
      }
    },
    joinPresence: (name) => {
      const { channel, shared } = join(name)
      return { ...shared, name, members: channel.members.read, onMembers: channel.members.onChange }
    },
    close: () => {
      for (const { subscription } of joined.values()) subscription.end()
      joined.clear()
      line.close()
    },
  }
}

/** A channel with those who joined it; the members stay empty but for a presence channel. */
interface OpenChannel {
  subscription: ChannelSubscription
  members: MemberList
  users: number
}

function openChannel(service: Service, channel: ChannelName | PresenceName): OpenChannel {
  const members = buildMemberList()
  const parts = channel.startsWith('presence-')
    ? { follow: members.take }
    : { ask: (position: Position) => service.resume({ channel, ...position }) }
  const subscription = buildChannelSubscription(channel, parts)
  subscription.onState(() => {
    if (subscription.read().kind === 'denied') members.clear()
  })
  return { subscription, members, users: 0 }
}
