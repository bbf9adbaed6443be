import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import type { WebSocket } from 'ws'
import type { Clock } from '../../../base/clock.ts'
import type { Random } from '../../../base/random.ts'
import type { Budget } from '../frame/budget.ts'
import type { ChannelName } from '../frame/channel-name.ts'
import type { RealtimeLimits } from '../frame/limits.ts'
import type { RealtimeApp } from '../frame/signature.ts'
import type { CachedEvent, ChannelCache } from './channel-cache.ts'
import type { ChannelRegistry, ChannelShare } from './channel-registry.ts'

export interface ChannelAccess {
  channel: string
  user: string
}

export interface Permission extends ChannelAccess {
  socketId: string
  /** Owner of the channel; opaque here. */
  owner?: string
  token?: { name: string; endsAtMs: number | null } | undefined
}

export interface RecentRevocations {
  /** Time of the withdrawal of a user's access to a channel. */
  withdrawals: Map<string, number>
  /** Time of the termination of a user's connections. */
  terminations: Map<string, number>
}

/** Messages between processes. `app` is the id of an application. */
export type FleetMessage =
  /** Requests the whole state of a process. */
  | { kind: 'ask'; to: string }
  /** The whole state of the sender in an application, for the requesting process. */
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
  /** Whether the sender receives what is sent by the bus. */
  | { kind: 'bus'; isOn: boolean }
  /** Requests what the bus carried, after a number. */
  | { kind: 'repeat'; to: string; after: number }
  /** Numbers of the requested messages in the table; older ones than `first` are lost. */
  | { kind: 'repeated'; to: string; first: number; upTo: number }
  /** The sender stops; `carried` is the number of its last message that the bus may have carried. */
  | { kind: 'bye'; carried: number }

/** A token of an authorization; opaque here. */
export interface PermittedToken {
  name: string
  user: string
  /** Time of the next check; null for one without an expiry. */
  endsAtMs: number | null
}

/** A token with the connections on which something was permitted with it. */
export interface HeldToken extends PermittedToken {
  connections: Set<Connection>
}

export interface Connection {
  application: Application
  socketId: string
  /** The group of its address, for the limits. */
  address: string
  webSocket: WebSocket
  /** The connection below the WebSocket. */
  socket: Duplex
  channels: Map<string, ChannelName>
  /** The user it signed in as. */
  userId?: string | undefined
  /** Every user it is known to act for. */
  users: Set<string>
  /** The users of channel authorizations, and the owner of the channel. */
  permitted: Map<string, { user: string; owner: string }>
  /** The name of the token with which each channel, or the sign-in (`SIGN_IN`), was authorized. */
  tokens: Map<string, string>
  /** Channels whose access was withdrawn. The signature of a subscription stays valid, so they are refused here. */
  withdrawn: Set<string>
  /** Ends its subscriptions. */
  release: () => void
  isAuthorized: boolean
  /** Whether it is closing: nothing more is sent or read. */
  isClosing: boolean
  openedAtMs: number
  lastSeenAtMs: number
  pingedAtMs?: number | undefined
  messages: Budget
  clientEvents: Budget
}

export interface Application {
  app: RealtimeApp
  registry: ChannelRegistry<Connection>
  cache: ChannelCache
  /** The open connections by socket id. */
  connections: Map<string, Connection>
  /** The open connections of each identified user: by a sign-in, as a member, or from the authorization. */
  byUser: Map<string, Set<Connection>>
  /** The tokens with permissions on open connections, by name. */
  tokens: Map<string, HeldToken>
  revocations: RecentRevocations
}

export interface PublishedEvent {
  event: string
  channels: readonly string[]
  data: string
  /** The connection that does not receive it. */
  socketId?: string | undefined
  /** The sender of a client event on a presence channel. */
  userId?: string | undefined
  source: 'api' | 'client'
}

/** A publish of this or another process, for the inspector. */
export interface ObservedPublish {
  /** Time at which this process delivered it. */
  at: Date
  event: string
  channels: readonly string[]
  bytes: number
  source: PublishedEvent['source']
  /** The sender of a client event on a presence channel. */
  userId?: string | undefined
  /** Connections of this process that it was written to. */
  delivered: number
}

/** Occurrences in the server, for an inspector. `app` is the application's id. */
export type Observation = { app: string } & (
  | { kind: 'publish'; publish: ObservedPublish; data: string }
  | { kind: 'channel_occupied' | 'channel_vacated'; channel: string }
  | { kind: 'member_added' | 'member_removed'; channel: string; user: string }
  | { kind: 'subscription_count'; channel: string; count: number }
  | { kind: 'permitted'; user: string; token?: string }
  | { kind: 'connected' | 'disconnected'; socketId: string }
)

/** Counts since the start of the process. */
export interface RealtimeCounts {
  connections: number
  opened: number
  refused: number
  /** Connections that were cut because their client did not read. */
  cut: number
  published: number
  delivered: number
}

/** State shared by the parts of the server. */
export interface RealtimeContext {
  clock: Clock
  random: Random
  logger: Logger
  limits: RealtimeLimits
  /** By id. */
  applications: ReadonlyMap<string, Application>
  counts: RealtimeCounts
  observe: (observation: Observation) => void
  relay: Relay
}

export interface Relay {
  /** Resolves when the other processes can read the message; at once where there are none. */
  send(message: FleetMessage): Promise<void>
  /** Records a change of the subscriptions of this process in a channel, and of those of a member. */
  markChanged(application: Application, channel: string, userId?: string): void
}
