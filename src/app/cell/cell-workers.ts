import { systemClock } from '../../base/clock.ts'
import type { IntakeCounts } from '../../carriage/intake/intake.ts'
import type { Relay } from '../../carriage/relay/relay.ts'
import type { EventLogSettings } from '../../carriage/settings.ts'
import { buildDispatcher, type Dispatcher } from '../../delivery/dispatcher/dispatcher.ts'
import { buildRouter, type Router } from '../../delivery/routing/router.ts'
import { buildActivityCounter } from '../../operations/activity/activity-counter.ts'
import type { Metrics } from '../../operations/metrics/metrics.ts'
import type { Invalidation } from '../../postgres/connection/invalidated-cache.ts'
import { buildNotifier } from '../../postgres/connection/notify.ts'
import { buildOutcomeCounter } from '../../webhook/activity/outcome-counter.ts'
import type { PullDeps } from '../../webhook/pull/pull.ts'
import { buildReplayWorker } from '../../webhook/replay/replay-job-worker.ts'
import { buildAppRelay } from '../work/event-log-relay.ts'
import { buildAppDelivery } from '../work/webhook-workers.ts'
import { buildAppMaintenance, buildAppRealtime, buildKeptLease, startRealtime } from '../work/worker-builders.ts'
import type { WorkerParts } from '../work/worker-parts.ts'
import { buildAppIntake } from './app-intake.ts'

/** The workers of this process on one cell. */
export interface CellWorkers {
  dispatcher: Dispatcher
  router: Router
  pulls: PullDeps
  relay: Relay | undefined
  /** Notifies this process and the others of work in the cell. Never throws. */
  notify(): void
  isLive(withinMs?: number): boolean
  start(): void
  stop(): Promise<void>
}

/**
 * Builds the workers of a cell, by the roles of the process: those of `buildWorkers` whose rows are in cells. `parts` has
 * the pools of the cell. The clock of a process follows that of home alone.
 */
export function buildCellWorkers(
  parts: Omit<WorkerParts, 'time'>,
  shared: { metrics: Metrics; eventLog: EventLogSettings; home: string; cell: string; counts: IntakeCounts },
): CellWorkers {
  const { config, database, clock, logger, workerId } = parts
  const { db } = database
  const { metrics, eventLog, home, cell, counts } = shared
  const hasRole = (role: (typeof config.roles)[number]) => config.roles.includes(role)
  const [isDispatcher, isPublisher] = [hasRole('dispatcher'), hasRole('realtime')]
  const isWorker = isDispatcher || isPublisher
  const lease = buildKeptLease(parts, () => notifier.isListening())
  const { isTrusted } = lease
  const own = { lease, onOwnFault: metrics.countOwnFault }
  const fixture = { clock, rest: systemClock.sleep, logger, workerId, isEnabled: config.enableApiEventQueue, ...own }
  const { policy, pulls, leaseEnder } = buildAppDelivery(parts, metrics, () => notifier.notify())
  const dispatcher: Dispatcher = buildDispatcher({ ...fixture, policy, onRoom: () => router.notifyRoom() })
  const realtime = buildAppRealtime(parts, metrics, () => realtimeDispatcher?.notify())
  const realtimeDispatcher = realtime.policy && buildDispatcher({ ...fixture, policy: realtime.policy })
  const dispatchers = realtimeDispatcher ? ([dispatcher, realtimeDispatcher] as const) : ([dispatcher] as const)
  const router = buildRouter({ ...fixture, db, dispatchers })
  const onWork = () => (isDispatcher ? router.notify() : realtimeDispatcher?.notify())
  const notifier = buildNotifier({
    ...{ connectionString: parts.connectionString, clock, random: parts.random },
    ...(isWorker && {
      onWork,
      workerId,
      hasPeers: () => lease.hasPeers() && (dispatcher.measureRoom().fastSlots === 0 || !isPublisher),
    }),
    ...(parts.onChange && { onChange: onChangeOf(pulls, parts.onChange) }),
    onReconnect: () => {
      for (const each of dispatchers) each.expectLeak()
    },
    onError: (error) =>
      logger.warn({ err: error }, 'notification failed in a cell: see docs/operations/cells.md, a cell that is away'),
  })
  const relay = buildAppRelay(parts, metrics)
  const onQueued = () => void [notifier, relay].map((item) => item?.notify())
  const intake = isDispatcher ? buildAppIntake(parts, { eventLog, home, self: cell, counts, onQueued }) : undefined
  const replayWorker = buildReplayWorker({ db, clock, logger, workerId, isTrusted, onReplays: () => notifier.notify() })
  const counters = [buildOutcomeCounter({ db, clock, logger }), buildActivityCounter({ db, clock, logger })]
  const housekeeping = [buildAppMaintenance(parts, metrics), leaseEnder, ...counters]
  const running: Promise<void>[] = []
  return {
    ...{ dispatcher, router, pulls, relay },
    notify: () => void [notifier, relay].map((item) => item?.notify()),
    isLive: (withinMs) => notifier.isLive(withinMs),
    start: () => {
      running.push(notifier.run(), ...[relay, intake].map((item) => item?.run() ?? Promise.resolve()))
      if (isWorker) running.push(lease.run())
      if (isDispatcher) running.push(router.run(), dispatcher.run(), replayWorker.run())
      if (isPublisher) startRealtime(realtime, realtimeDispatcher, running)
      if (hasRole('maintenance')) running.push(...housekeeping.map((item) => item.run()))
    },
    stop: async () => {
      for (const worker of [router, replayWorker, pulls.waits, ...housekeeping]) worker.stop()
      for (const worker of [relay, intake]) worker?.stop()
      await Promise.all([...dispatchers.map((each) => each.stop()), realtime.watch?.stop()])
      lease.stop()
      await notifier.stop()
      await Promise.all(running)
      await realtime.client?.close()
      if (isWorker && !dispatchers.some((item) => item.mayLeak()))
        await lease
          .end()
          .catch((err) =>
            logger.warn({ err }, 'lease of a cell not ended: see docs/operations/cells.md, a cell that is away'),
          )
    },
  }
}

/** The rows that pulls wait for are in the cell; what processes cache is of both. */
function onChangeOf({ waits }: PullDeps, onChange: (change: Invalidation) => void) {
  return (change: Invalidation) => {
    if (change.startsWith('w:')) return waits.notify(change.slice(2))
    if (change === '*') waits.notify()
    onChange(change)
  }
}
