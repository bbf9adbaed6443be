import type { Logger } from 'pino'
import type { Clock } from '../../../base/clock.ts'
import type { Random } from '../../../base/random.ts'
import type { RealtimeLimits } from '../frame/limits.ts'
import type { RealtimeApp } from '../frame/signature.ts'
import { buildChannelCache, type ChannelCache } from './channel-cache.ts'
import { buildChannelRegistry, type ChannelRegistry } from './channel-registry.ts'
import type { Connection, HeldToken } from './connection.ts'
import type { FleetMessage } from './fleet-message.ts'
import { buildRecentEndings, type RecentEndings } from './recent-endings.ts'

/** An application in this process. */
export interface Application {
  app: RealtimeApp
  registry: ChannelRegistry<Connection>
  cache: ChannelCache
  /** The open connections by socket id. */
  connections: Map<string, Connection>
  /** The open connections of each user who is known: by a sign-in, as a member, or from the authorization. */
  byUser: Map<string, Set<Connection>>
  /** The tokens with which something was permitted on open connections, by name. */
  tokens: Map<string, HeldToken>
  /** The last publishes, oldest first. */
  recent: RecentPublish[]
  endings: RecentEndings
}

/** Builds an application without connections. */
export function buildApplication(app: RealtimeApp, limits: RealtimeLimits): Application {
  return {
    app,
    registry: buildChannelRegistry(),
    cache: buildChannelCache(limits.cachedChannels),
    connections: new Map(),
    byUser: new Map(),
    tokens: new Map(),
    recent: [],
    endings: buildRecentEndings(),
  }
}

/** An event on its way to the subscribers of some channels. */
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
export interface RecentPublish {
  /** When this process delivered it. */
  at: Date
  event: string
  channels: readonly string[]
  /** Bytes of the data. */
  bytes: number
  source: PublishedEvent['source']
  /** The sender of a client event on a presence channel. */
  userId?: string | undefined
  /** Connections of this process that it was written to. */
  delivered: number
}

/** What happens in the server, for an inspector. `app` is the application's id. */
export type Observation = { app: string } & (
  | { kind: 'publish'; publish: RecentPublish; data: string }
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

/** What every part of the server works with. */
export interface RealtimeWorld {
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

/** The way to the other processes. */
export interface Relay {
  /** Resolves when the other processes can read the message; at once where there are none. */
  send(message: FleetMessage): Promise<void>
  /** Notes that the subscriptions of this process in a channel changed, and those of a member. */
  markChanged(application: Application, channel: string, userId?: string): void
}
