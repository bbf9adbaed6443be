import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { systemClock } from '../base/clock.ts'
import type { EqualEntries } from '../event/recording/equal-entries.ts'
import type { RateLimiter } from '../http/rate-limit/rate-limit.ts'
import { findForeignSign, readOrigin } from '../http/request/local-request.ts'
import type { UpgradeRouter } from '../http/server/upgrade.ts'
import type { Metrics } from '../operations/metrics/metrics.ts'
import type { MetricsListener } from '../operations/metrics/metrics-listener.ts'
import type { HttpSender } from '../outbound/send/http-sender.ts'
import type { CellWatch } from './cell/cell-watch.ts'
import type { MountedRealtime } from './feature/realtime-server.ts'
import type { AppOptions } from './part/app-options.ts'
import type { Workers } from './work/workers.ts'

/** Logs that counts of equal refusals could not be written. */
export const warnOfCounts =
  (logger: Pick<AppOptions['logger'], 'warn'>) =>
  (err: unknown): void =>
    logger.warn({ err }, 'counts of refused calls not written: see docs/operations.md, database')

/** Time limit for requests in flight after a stop was requested. */
const REQUEST_GRACE_MS = 6_000

/** Parts that start and stop with the app. */
export interface RunningParts {
  server: FastifyInstance
  workers: Workers
  cells: Pick<CellWatch, 'run' | 'stop'>
  limiter: RateLimiter
  equalEntries: EqualEntries
  realtimeServer: MountedRealtime | undefined
  feed: { stop(): Promise<void> }
  upgrades: UpgradeRouter
  sender: Pick<HttpSender, 'close'>
  tracing: { stop(): Promise<void> }
  /** Checks the identity engine, and logs its faults. */
  checkEngine: (() => Promise<void>) | undefined
  announceStop: () => void
}

/** Builds the announcement of a stop: by `/readyz`, and by `Connection: close` on kept connections (RFC 9112, 9.6). */
export function buildStopAnnouncement(server: FastifyInstance): {
  isStopping: () => boolean
  announceStop: () => void
} {
  let isStopping = false
  return {
    isStopping: () => isStopping,
    announceStop: () => {
      if (isStopping) return
      isStopping = true
      server.server.prependListener('request', (_request, response) => response.setHeader('connection', 'close'))
    },
  }
}

/** The start and the stop of the app. */
export interface Lifecycle {
  /** The actual port of METRICS_PORT, once started. */
  metricsPort(): number | undefined
  /** Listens on the port (a process of any role has health and metrics), and starts the workers of its roles. */
  start(): Promise<void>
  /** From now on `/readyz` is 503 and each answer closes its connection. Requests are still accepted. */
  announceStop(): void
  /** Stops gracefully: no new requests, POSTs in flight end or are released, workers end. The database stays open. */
  stop(): Promise<void>
}

/** Builds the start and the stop of the app. */
export function buildLifecycle(options: AppOptions, parts: RunningParts): Lifecycle {
  const { config, logger } = options
  const { server, workers, limiter, equalEntries, realtimeServer, feed, upgrades, sender, tracing, checkEngine } = parts
  const running: Promise<void>[] = []
  let metricsListener: MetricsListener | undefined
  return {
    metricsPort: () => metricsListener?.port,
    start: async () => {
      await server.listen({ host: config.host, port: config.port })
      await realtimeServer?.start()
      metricsListener = await openMetricsPort(options, workers.metrics)
      workers.start()
      running.push(parts.cells.run())
      if (config.roles.includes('api')) running.push(limiter.run(), equalEntries.run())
      void checkEngine?.()
    },
    announceStop: parts.announceStop,
    stop: async () => {
      parts.announceStop()
      limiter.stop()
      equalEntries.stop()
      // Realtime clients are closed with a code before their connections end.
      const drained = Promise.resolve(realtimeServer?.stop())
        .then(feed.stop)
        .finally(() => upgrades.close())
      // Requests and POSTs in flight end in parallel, to stay within 10 s.
      await Promise.all([closeServer(server), workers.stop(), parts.cells.stop(), drained])
      // No request is left that counts another one.
      await equalEntries.flush().catch(warnOfCounts(logger))
      // Last, when every span has ended.
      await Promise.all([sender.close(), tracing.stop(), metricsListener?.close(), ...running])
    },
  }
}

async function openMetricsPort({ config, logger }: AppOptions, metrics: Metrics): Promise<MetricsListener | undefined> {
  const { host, metricsPort: port } = config
  if (port === undefined) return undefined
  const { listenForScrapes } = await import('../operations/metrics/metrics-listener.ts')
  const isLocalOnly = config.appEnv === 'development'
  const isAllowed = (request: IncomingMessage) => !isLocalOnly || findForeignSign(readOrigin(request)) === undefined
  return listenForScrapes({ host, port, metrics, logger, isAllowed })
}

/** Waits for requests in flight, then closes the connections that remain. */
async function closeServer(server: FastifyInstance): Promise<void> {
  const closed = server.close()
  const grace = new AbortController()
  // Real time, because it bounds the network.
  void systemClock.sleep(REQUEST_GRACE_MS, grace.signal).then(() => {
    if (!grace.signal.aborted) server.server.closeAllConnections()
  })
  await closed
  grace.abort()
}
