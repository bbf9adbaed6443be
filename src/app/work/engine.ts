import { systemClock } from '../../base/clock.ts'
import type { Loop } from '../../base/rounds.ts'
import type { Relay } from '../../carriage/relay/relay.ts'
import { buildDispatcher, type Dispatcher } from '../../delivery/dispatcher/dispatcher.ts'
import type { JobRunner } from '../../delivery/job/job-runner.ts'
import type { KeptLease } from '../../delivery/lease-timer.ts'
import { buildRouter, type Router } from '../../delivery/routing/router.ts'
import { buildActivityCounter } from '../../operations/activity/activity-counter.ts'
import type { Metrics } from '../../operations/metrics/metrics.ts'
import type { Invalidation } from '../../postgres/connection/invalidated-cache.ts'
import { buildNotifier, type Notifier } from '../../postgres/connection/notify.ts'
import { buildOutcomeCounter } from '../../webhook/activity/outcome-counter.ts'
import type { LeaseEnder } from '../../webhook/pull/lease-end.ts'
import type { PullDeps } from '../../webhook/pull/pull.ts'
import { buildReplayWorker } from '../../webhook/replay/replay-job-worker.ts'
import type { RealtimeParts } from '../part/realtime-parts.ts'
import { buildAppRelay } from './event-log-relay.ts'
import type { Maintenance } from './maintenance.ts'
import { buildAppDelivery } from './webhook-workers.ts'
import { buildAppMaintenance, buildAppRealtime, buildKeptLease, startRealtime } from './worker-builders.ts'
import type { WorkerParts } from './worker-parts.ts'

export interface EngineOptions {
  metrics: Metrics
  /** Whether this process claims rows of the database, here or in other workers. */
  isWorker: boolean
  /** Runs for each invalidation; without it the process does not listen for them. */
  onChange?: ((change: Invalidation) => void) | undefined
  /** Runs when the connection of notifications was opened again, behind the dispatchers. */
  onReconnect?: () => void
  onNotifyFailed: (error: unknown) => void
  onDispatcherPoint?: WorkerParts['onCrashPoint']
}

/** The workers of a process that every database with webhooks has: home and each cell. */
export interface Engine {
  lease: KeptLease
  /** Parts that other dispatchers of the process share with those of the engine. */
  own: { lease: KeptLease; onOwnFault: Metrics['countOwnFault'] }
  dispatcher: Dispatcher
  /** Publishes realtime messages; undefined in log-only mode. */
  realtimeDispatcher: Dispatcher | undefined
  dispatchers: readonly Dispatcher[]
  realtime: RealtimeParts
  router: Router
  relay: Relay | undefined
  notifier: Notifier
  replayWorker: JobRunner
  pulls: PullDeps
  leaseEnder: LeaseEnder
  maintenance: Maintenance
  /** Workers of the role maintenance. */
  housekeeping: readonly Loop[]
  /** Notifies this process and the others of work. Never throws. */
  notify(): void
  /** Starts the workers of the roles but those of maintenance; their ends are added to `running`. */
  start(running: Promise<void>[]): void
}

/** Builds the engine of a database, and lets its workers notify each other: recorded, routed, posted. */
export function buildEngine(parts: WorkerParts, options: EngineOptions): Engine {
  const { config, database, clock, logger, workerId } = parts
  const { db } = database
  const { metrics, isWorker, onChange, onReconnect, onNotifyFailed, onDispatcherPoint } = options
  const [isDispatcher, isPublisher] = [config.roles.includes('dispatcher'), config.roles.includes('realtime')]
  const relay = buildAppRelay(parts, metrics)
  const lease = buildKeptLease(parts, () => notifier.isListening())
  const { isTrusted } = lease
  const own = { lease, onOwnFault: metrics.countOwnFault }
  const fixture = { clock, rest: systemClock.sleep, logger, workerId, isEnabled: config.enableApiEventQueue, ...own }
  const { policy, pulls, leaseEnder } = buildAppDelivery(parts, metrics, () => notifier.notify())
  const dispatcher: Dispatcher = buildDispatcher({
    ...fixture,
    policy,
    onRoom: () => router.notifyRoom(),
    ...(onDispatcherPoint && { onDispatcherPoint }),
  })
  const realtime = buildAppRealtime(parts, metrics, () => realtimeDispatcher?.notify())
  const realtimeDispatcher = realtime.policy && buildDispatcher({ ...fixture, policy: realtime.policy })
  const dispatchers = realtimeDispatcher ? ([dispatcher, realtimeDispatcher] as const) : ([dispatcher] as const)
  const router = buildRouter({ ...fixture, db, dispatchers })
  // The router finds due rows, and notifies the dispatchers; those of a process without a router poll.
  const onWork = () => (isDispatcher ? router.notify() : realtimeDispatcher?.notify())
  const notifier = buildNotifier({
    ...{ connectionString: parts.connectionString, clock, random: parts.random },
    ...(isWorker && {
      onWork,
      workerId,
      hasPeers: () => lease.hasPeers() && (dispatcher.measureRoom().fastSlots === 0 || !isPublisher),
    }),
    ...(onChange && { onChange }),
    // A promoted standby may still have claims whose results only the lost primary recorded.
    onReconnect: () => {
      for (const each of dispatchers) each.expectLeak()
      onReconnect?.()
    },
    onError: onNotifyFailed,
  })
  const replayWorker = buildReplayWorker({ db, clock, logger, workerId, isTrusted, onQueued: () => notifier.notify() })
  const maintenance = buildAppMaintenance(parts, metrics)
  const counters = [buildOutcomeCounter({ db, clock, logger }), buildActivityCounter({ db, clock, logger })]
  return {
    ...{ lease, own, dispatcher, realtimeDispatcher, dispatchers, realtime, router, relay, notifier, replayWorker },
    ...{ pulls, leaseEnder, maintenance, housekeeping: [maintenance, leaseEnder, ...counters] },
    notify: () => void [notifier, relay].map((item) => item?.notify()),
    start: (running) => {
      running.push(notifier.run(), ...(relay ? [relay.run()] : []))
      if (isWorker) running.push(lease.run())
      if (isDispatcher) running.push(router.run(), dispatcher.run(), replayWorker.run())
      if (isPublisher) startRealtime(realtime, realtimeDispatcher, running)
    },
  }
}
