import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { IdMaker } from '../../base/id.ts'
import type { Random } from '../../base/random.ts'
import type { OpenBus } from '../../carriage/bus/bus.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { buildApplication } from './application/application.ts'
import { closeConnection, sendText } from './application/connection.ts'
import { forgetRevocations } from './application/recent-revocations.ts'
import type {
  Application,
  ChannelAccess,
  Observation,
  Permission,
  PermittedToken,
  RealtimeContext,
  RealtimeCounts,
} from './application/state.ts'
import {
  endTokenHere,
  listPermissionsHere,
  listUsersHere,
  permitHere,
  terminateHere,
  withdrawHere,
} from './application/user-access.ts'
import { buildDoor } from './connection/door.ts'
import { decideLiveness } from './connection/liveness.ts'
import { buildFleet, type Fleet, type FleetCounts } from './fleet/fleet.ts'
import { buildFleetSync, type FleetSync } from './fleet/fleet-sync.ts'
import { buildAddressBook } from './frame/address-book.ts'
import { buildLimits, type RealtimeLimits } from './frame/limits.ts'
import { PING_TEXT } from './frame/server-frame.ts'
import type { RealtimeApp } from './frame/signature.ts'
import { buildPublishApi } from './publish/publish-api.ts'

const CHECK_MS = 1_000

/** A stop spreads its closes over this time, so that the clients do not return at once. */
const DRAIN_MS = 1_000

/** Timeout of a stop, after which connections without an answer are ended. */
const DRAIN_LIMIT_MS = 2_000

export interface RealtimeServerDeps {
  apps: readonly RealtimeApp[]
  db: Database
  /** For LISTEN: PostgreSQL itself, or a pooler in session mode. */
  connectionString: string
  /** The bus between the processes (`FleetOptions`). */
  openBus?: OpenBus | undefined
  clock: Clock
  /** Whether the clock may be trusted (`FleetOptions`). */
  isTrusted: () => boolean
  random: Random
  ids: IdMaker
  logger: Logger
  /** Overrides of the defaults (`buildLimits`). */
  limits?: Partial<RealtimeLimits>
  /** Origins that may connect from a browser; undefined: all. */
  allowedOrigins?: readonly string[]
  /** The address of a request, for the limits: behind proxies it differs from that of the socket. */
  addressOf?: (request: IncomingMessage) => string
  /** Receives the occurrences in the server. Must not throw. */
  observe?: (observation: Observation) => void
  /** Waits in real time, for the stop; it bounds the network. */
  rest: Clock['sleep']
}

/** An occupied channel, over all processes. */
export interface OccupiedChannel {
  name: string
  connections: number
  /** Of a presence channel. */
  members?: number
}

/** Names an application, and a user's access in it. */
export type AppAccess = ChannelAccess & { app: string }

/** A running server of the Pusher protocol, version 7. */
export interface RealtimeServer {
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** Whether a request of the HTTP API has a valid signature. */
  isSigned(request: IncomingMessage): boolean
  /** Resolves when the server takes connections. */
  ready: Promise<void>
  /** Notes for whom a subscription was authorized, in every process, and permits the channel after a withdrawal. */
  notePermission(permission: Permission & { app: string }): Promise<void>
  /** The users that connections of this process were permitted a channel for. */
  listUsers(app: string): string[]
  /** The channels that connections of this process were permitted for a user, with what each belongs to. */
  listPermissions(user: { app: string; user: string }): ReadonlyMap<string, string> | undefined
  /** The tokens with permissions on the connections of this process, by name. */
  tokensOf(app: string): ReadonlyMap<string, PermittedToken>
  /** Records the expiry of a token, in this process. */
  extendToken(token: Omit<PermittedToken, 'user'> & { app: string }): void
  /** Ends the permissions of a token, in this process. */
  endToken(token: { app: string; name: string }): void
  /** Ends a user's subscriptions in a channel, everywhere, until `notePermission`. Resolves with the number here. */
  disconnectSubscription(access: AppAccess): Promise<number>
  /** Closes the connections of a user, in every process. Resolves with their number in this process. */
  terminateUser(user: { app: string; user: string }): Promise<number>
  listChannels(app: string): OccupiedChannel[]
  counts(): Readonly<RealtimeCounts>
  /** Messages to the other processes, and whether the bus is open for this one; undefined without one. */
  fleet(): Readonly<FleetCounts> & { isOnBus: boolean | undefined }
  /** Whether this is the oldest of the joined processes, which reports the observations of all. */
  isOldest(): boolean
  /** Refuses new connections, closes the open ones, and leaves the other processes. */
  stop(): Promise<void>
}

/** Starts the server: it joins the other processes on the same database, and then takes connections. */
export function startRealtimeServer(deps: RealtimeServerDeps): RealtimeServer {
  const { clock, logger } = deps
  const limits = buildLimits(deps.limits)
  const applications = new Map(deps.apps.map((app) => [app.id, buildApplication(app, limits)]))
  const addresses = buildAddressBook()
  const stopping = new AbortController()
  let isJoined = false
  const sync: FleetSync = buildFleetSync({ context: () => context, fleet: () => fleet })
  const counts = { connections: 0, opened: 0, refused: 0, cut: 0, published: 0, delivered: 0 }
  const observe = deps.observe ?? (() => {})
  const context: RealtimeContext = { ...deps, limits, applications, counts, observe, relay: sync }
  const fleet: Fleet = buildFleet({
    ...{ ...deps, ...sync, id: deps.ids.next<'process'>() },
    countConnections: () => counts.connections,
  })
  const addressOf = deps.addressOf ?? ((request) => request.socket.remoteAddress ?? '')
  const { allowedOrigins } = deps
  const isServing = () => isJoined && !stopping.signal.aborted
  const door = buildDoor({ context, addresses, addressOf, allowedOrigins, isServing })
  const api = buildPublishApi(context)

  function check(): void {
    const nowMs = clock.now()
    addresses.sweep(nowMs)
    for (const application of applications.values()) {
      forgetRevocations(application, nowMs)
      for (const connection of application.connections.values()) {
        const verdict = decideLiveness(connection, limits, nowMs)
        if (verdict === 'nothing') continue
        if (verdict !== 'ping') closeConnection(connection, verdict)
        else if (sendText(context, connection, PING_TEXT)) connection.pingedAtMs = nowMs
      }
    }
  }

  async function checkUntilStopped(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(CHECK_MS, stopping.signal)
      if (!stopping.signal.aborted) check()
    }
  }

  const ready = fleet.joined.then(() => {
    isJoined = true
  })
  const running = [fleet.run(), checkUntilStopped()]
  const find = (app: string): Application => {
    const application = applications.get(app)
    if (!application) throw new Error('no such realtime application')
    return application
  }
  return {
    handleUpgrade: door.handleUpgrade,
    handleRequest: api.handle,
    isSigned: api.isSigned,
    ready,
    notePermission: async (permission) => {
      permitHere(context, find(permission.app), permission)
      await fleet.send({ kind: 'permit', ...permission })
    },
    listUsers: (app) => listUsersHere(find(app)),
    listPermissions: ({ app, user }) => listPermissionsHere(find(app), user),
    tokensOf: (app) => find(app).tokens,
    extendToken: ({ app, name, endsAtMs }) => {
      const entry = find(app).tokens.get(name)
      if (entry) entry.endsAtMs = endsAtMs
    },
    endToken: ({ app, name }) => endTokenHere(context, find(app), name),
    disconnectSubscription: async (access) => {
      const ended = withdrawHere(context, find(access.app), access)
      await fleet.send({ kind: 'withdraw', ...access })
      return ended
    },
    terminateUser: async ({ app, user }) => {
      const ended = terminateHere(context, find(app), user)
      await fleet.send({ kind: 'terminate', app, user })
      return ended
    },
    listChannels: (app) => listOccupied(find(app)),
    counts: () => counts,
    fleet: () => ({ ...fleet.counts(), isOnBus: fleet.isOnBus() }),
    isOldest: () => fleet.isOldest(),
    stop: async () => {
      stopping.abort()
      await drain([...applications.values()], deps.rest)
      await fleet.stop()
      await Promise.all(running)
      logger.debug({ ...counts }, 'realtime server stopped')
    },
  }
}

function listOccupied({ registry }: Application): OccupiedChannel[] {
  return registry
    .list()
    .filter(({ kind }) => kind !== 'user')
    .map(({ name, kind }) => ({
      name,
      connections: registry.countConnections(name),
      ...(kind === 'presence' && { members: registry.countMembers(name) }),
    }))
}

/** Closes every connection with 4100, some at a time, and terminates the remaining ones. */
async function drain(applications: readonly Application[], rest: Clock['sleep']): Promise<void> {
  const open = applications.flatMap(({ connections }) => [...connections.values()])
  const steps = Math.min(10, Math.ceil(open.length / 50))
  for (let step = 0; step < steps; step += 1) {
    const first = Math.floor((step * open.length) / steps)
    const end = Math.floor(((step + 1) * open.length) / steps)
    for (const connection of open.slice(first, end)) closeConnection(connection, 'shutting-down')
    if (step < steps - 1) await rest(DRAIN_MS / steps)
  }
  const closed = open.map(
    ({ socket }) =>
      new Promise<void>((resolve) => (socket.destroyed ? resolve() : socket.once('close', () => resolve()))),
  )
  const limit = new AbortController()
  await Promise.race([Promise.all(closed), rest(DRAIN_LIMIT_MS, limit.signal)])
  limit.abort()
  for (const { webSocket } of open) webSocket.terminate()
}
