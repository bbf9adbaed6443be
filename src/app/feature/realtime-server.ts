import type { FastifyInstance } from 'fastify'
import { systemClock } from '../../base/clock.ts'
import { mayDelete } from '../../base/database-clock.ts'
import type { IdMaker, UserId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { OpenBus } from '../../carriage/bus/bus.ts'
import type { RateLimiter } from '../../http/rate-limit/rate-limit.ts'
import { findClientAddress } from '../../http/request/client-address.ts'
import { mountProtocol } from '../../http/server/mount-protocol.ts'
import type { UpgradeRouter } from '../../http/server/upgrade.ts'
import type { Metrics } from '../../operations/metrics/metrics.ts'
import type { RealtimeMetrics } from '../../operations/metrics/realtime-metrics.ts'
import { buildEmbeddedGrants } from '../../realtime/authorization/embedded-grants.ts'
import type { ChannelEvent } from '../../realtime/channel/channel-event.ts'
import { buildChannelFeed, type ChannelFeed } from '../../realtime/channel/channel-feed.ts'
import { readObservation } from '../../realtime/channel/observed-event.ts'
import type { Observation } from '../../realtime/embedded/application/state.ts'
import type { RealtimeApp } from '../../realtime/embedded/frame/signature.ts'
import { type RealtimeServer, startRealtimeServer } from '../../realtime/embedded/realtime-server.ts'
import { EMBEDDED_CLUSTER } from '../../realtime/provider/provider-settings.ts'
import { buildOwnOrigin } from '../config/base-url.ts'
import type { Config } from '../config/config.ts'
import type { AppOptions } from '../part/app-options.ts'
import type { EmbeddedRealtime } from '../part/realtime-parts.ts'
import { prepareRealtimeBus } from './realtime-bus.ts'

/** Maximum wait of a start for the listening connection; the server takes connections once it is there. */
const JOIN_LIMIT_MS = 5_000

/** The embedded realtime server of a process. */
export interface MountedRealtime {
  app: RealtimeApp
  /** The running server; undefined before `start`. */
  server(): RealtimeServer | undefined
  /** Starts the server, and waits until it has joined the other processes and accepts connections; 5 s at most. */
  start(): Promise<void>
  stop(): Promise<void>
}

export interface RealtimeMount {
  options: AppOptions
  upgrades: UpgradeRouter
  limiter: RateLimiter
  ids: IdMaker
  app: RealtimeApp
  openBus: OpenBus | undefined
  metrics: Pick<RealtimeMetrics, 'watchBus'>
  onGrant: (userId: UserId, token?: string) => void
  onChannelEvent: (event: ChannelEvent) => void
}

/** The embedded server of a process, before it is mounted. */
export interface PreparedRealtime {
  publishing: EmbeddedRealtime
  /** Mounts the server where this process has the role `api`. */
  mount(server: FastifyInstance, parts: Omit<RealtimeMount, 'app' | 'openBus'>): Promise<MountedRealtime | undefined>
}

/** Prepares the embedded server; undefined where the settings ask for none. */
export function prepareEmbeddedRealtime(
  config: Config,
  parts: { keyring: Keyring; baseUrl: () => string; findPort: () => number | undefined },
): PreparedRealtime | undefined {
  if (config.realtime.kind !== 'embedded') return undefined
  const { keys } = config.realtime
  const app = keys ? { id: keys.appId, key: keys.key, secret: keys.secret } : deriveApp(parts.keyring)
  const isApi = config.roles.includes('api')
  const ownOrigin = isApi ? buildOwnOrigin(config, parts.findPort) : undefined
  let mounted: MountedRealtime | undefined
  return {
    publishing: describePublishing(app, { baseUrl: parts.baseUrl, ownOrigin, server: () => mounted?.server() }),
    mount: async (server, mount) => {
      if (!isApi) return undefined
      const openBus = prepareRealtimeBus(config, { keyring: parts.keyring, logger: mount.options.logger })
      mounted = await mountRealtimeServer(server, { ...mount, app, openBus })
      return mounted
    },
  }
}

/** The embedded server as publishing sees it: this process if it runs one, else BASE_URL, where clients connect. */
function describePublishing(
  app: RealtimeApp,
  parts: { baseUrl: () => string; ownOrigin: (() => string) | undefined; server: () => RealtimeServer | undefined },
): EmbeddedRealtime {
  const { baseUrl, ownOrigin, server } = parts
  return {
    app: () => {
      const url = new URL(baseUrl())
      const isTls = url.protocol === 'https:'
      const port = Number(url.port) || (isTls ? 443 : 80)
      return {
        ...{ appId: app.id, key: app.key, secret: app.secret, cluster: EMBEDDED_CLUSTER },
        origin: ownOrigin?.() ?? url.origin,
        socket: { host: url.hostname, port, isTls },
      }
    },
    access: ownOrigin && {
      grants: buildEmbeddedGrants(app.id, server),
      ends: {
        endSubscription: async ({ channel, userId }) => {
          await server()?.disconnectSubscription({ app: app.id, channel, user: userId })
        },
        endConnections: async (userId) => {
          await server()?.terminateUser({ app: app.id, user: userId })
        },
      },
    },
  }
}

/** Mounts `GET /app/{key}` and the HTTP API below `/apps` (docs/contract/realtime-server.md): 503 until `start`. */
async function mountRealtimeServer(server: FastifyInstance, mount: RealtimeMount): Promise<MountedRealtime> {
  const { options, upgrades, limiter, app } = mount
  const { config, clock, random, logger } = options
  let running: RealtimeServer | undefined
  upgrades.mount('/app', (request, socket, head) => {
    if (running) running.handleUpgrade(request, socket, head)
    else socket.end('HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
  })
  await mountProtocol(server, {
    prefix: '/apps',
    // A publisher is one caller with many requests, known by its signature: its address has no limit.
    limit: (request, reply) => {
      if (!running?.isSigned(request.raw)) limiter.limitVisit(request, reply)
    },
    handle: (request, response) => {
      if (running) return running.handleRequest(request, response)
      response.writeHead(503, { 'retry-after': '1' }).end()
    },
  })
  if (mount.openBus) mount.metrics.watchBus(() => running?.fleet())
  return {
    app,
    server: () => running,
    start: async () => {
      running = startRealtimeServer({
        ...{ apps: [app], clock, random, logger, ids: mount.ids },
        db: (options.workerDatabase ?? options.database).db,
        connectionString: options.connectionString,
        openBus: mount.openBus,
        isTrusted: () => mayDelete(options.time),
        rest: systemClock.sleep,
        limits: { connections: config.httpMaxConnections, ...config.realtimeLimits },
        ...(config.realtimeOrigins && { allowedOrigins: config.realtimeOrigins }),
        observe: (observation) => report(mount, observation, running?.isOldest() === true),
        addressOf: ({ socket, headers }) => {
          const header = headers['x-forwarded-for']
          const forwardedFor = Array.isArray(header) ? header.join(',') : header
          return findClientAddress({ peer: socket.remoteAddress ?? '', forwardedFor, trust: config.trustProxy }).address
        },
      })
      const limit = new AbortController()
      await Promise.race([running.ready, systemClock.sleep(JOIN_LIMIT_MS, limit.signal)])
      limit.abort()
    },
    stop: async () => running?.stop(),
  }
}

/** Builds the feed of channel events of the embedded server. */
export function buildAppChannelFeed(
  { database, workerDatabase, clock, logger }: AppOptions,
  workerId: string,
  { realtime }: Metrics,
): ChannelFeed {
  const { db } = workerDatabase ?? database
  return buildChannelFeed({ db, clock, logger, workerId, countEvent: realtime.countChannelEvent })
}

/** Passes on the observations of the server. The oldest process reports the channel events that all observe. */
function report({ onGrant, onChannelEvent }: RealtimeMount, observation: Observation, isReporter: boolean): void {
  if (observation.kind === 'permitted') onGrant(observation.user as UserId, observation.token)
  const event = isReporter ? readObservation(observation) : undefined
  if (event) onChannelEvent(event)
}

/** The application of a development server: the same in every process and after every restart with these secrets. */
function deriveApp(keyring: Keyring): RealtimeApp {
  const derive = (purpose: string) => (keyring.deriveKeys(purpose)[0] ?? Buffer.alloc(0)).toString('hex')
  return { id: 'signalbox', key: derive('realtime key').slice(0, 20), secret: derive('realtime secret') }
}
