import type { Relay } from '../../carriage/relay/relay.ts'
import type { Dispatcher } from '../../delivery/dispatcher/dispatcher.ts'
import type { JobRunner } from '../../delivery/job/job-runner.ts'
import type { Router } from '../../delivery/routing/router.ts'
import type { MailWorker } from '../../identity/mail/mail-worker.ts'
import type { AlertWorker } from '../../operations/alert/alert-worker.ts'
import { buildMetrics, type Metrics, type MetricsDeps } from '../../operations/metrics/metrics.ts'
import { findPrimaryChoice } from '../../postgres/connection/host-client.ts'
import type { Invalidation } from '../../postgres/connection/invalidated-cache.ts'
import { buildProvisioningJobWorker } from '../../provisioning/job/job-worker.ts'
import { buildTargetLatch, type TargetLatch } from '../../provisioning/target/target-latch.ts'
import type { NoticeWorker } from '../../webhook/mail/notice-worker.ts'
import type { LeaseEnder } from '../../webhook/pull/lease-end.ts'
import type { PullDeps } from '../../webhook/pull/pull.ts'
import type { PullWaits } from '../../webhook/pull/pull-waits.ts'
import { ROLES } from '../config/config-variables.ts'
import type { RealtimeParts } from '../part/realtime-parts.ts'
import { buildAppAlertWorker } from './alerts.ts'
import { buildClockWatch } from './clock-watch.ts'
import { findDiskSource } from './disk-source.ts'
import { buildEngine, type Engine } from './engine.ts'
import { hasRelay } from './event-log-relay.ts'
import { buildMailWorkers } from './mail-workers.ts'
import type { Maintenance } from './maintenance.ts'
import { buildProvisioningDispatcher } from './provisioning-workers.ts'
import type { WorkerParts } from './worker-parts.ts'

/** Background workers of a process. Each runs only with its role in SIGNALBOX_ROLES. */
export interface Workers {
  dispatcher: Dispatcher
  /** Publishes realtime messages; undefined in log-only mode. */
  realtimeDispatcher: Dispatcher | undefined
  realtime: RealtimeParts
  router: Router
  provisioner: Dispatcher
  provisioningJobs: JobRunner
  replayWorker: JobRunner
  maintenance: Maintenance
  mailWorker: MailWorker
  noticeWorker: NoticeWorker
  alertWorker: AlertWorker
  metrics: Metrics
  /** Appends events to the event log; undefined without one, and without the role dispatcher. */
  relay: Relay | undefined
  pulls: PullDeps
  leaseEnder: LeaseEnder
  /** Notifies this process and the others of work. Never throws. */
  notify(): void
  /** Whether the connection that reports changes is live (`Notifier.isLive`). */
  isLive(withinMs?: number): boolean
  start(): void
  /** Stops them in order; resolves when all have stopped and no claim remains. */
  stop(): Promise<void>
}

/** Builds the workers and lets them notify each other: recorded, routed, posted. Nothing runs before `start`. */
export function buildWorkers(parts: WorkerParts): Workers {
  const { config, database, clock, time, logger, workerId } = parts
  const { db } = database
  const isProvisioner = config.roles.includes('provisioning')
  const isWorker = isProvisioner || config.roles.includes('dispatcher') || config.roles.includes('realtime')
  const metrics = buildAppMetrics(parts, {
    inFlight: () => engine.dispatcher.inFlight(),
    countListenReconnects: () => engine.notifier.countReconnects(),
    isLogConnected: () => engine.relay?.isConnected(),
  })
  const engine: Engine = buildEngine(parts, {
    ...{ metrics, isWorker, onDispatcherPoint: parts.onCrashPoint },
    ...((parts.onChange || isProvisioner) && { onChange: (change: Invalidation) => onChange(change) }),
    onReconnect: () => provisioner.expectLeak(),
    onNotifyFailed: (error) => logger.warn({ err: error }, 'notification failed: see docs/operations.md, database'),
  })
  const { lease, own, dispatcher, realtimeDispatcher, dispatchers, realtime, router, relay, notifier } = engine
  const { replayWorker, pulls, leaseEnder, maintenance, notify } = engine
  const { isTrusted } = lease
  const latch = buildTargetLatch({ db, clock })
  const onRecorded = metrics.countProvisioning
  const provisioner: Dispatcher = buildProvisioningDispatcher(parts, { ...own, latch, onRecorded })
  const provisioningJobs = buildProvisioningJobWorker({
    ...{ db, clock, logger, isEnabled: config.enableApiEventQueue, isTrusted },
    onQueued: () => provisioner.notify(),
    latch: latch.pass,
  })
  const onChange = buildChangeListener({ latch, provisioner, waits: pulls.waits, onChange: parts.onChange })
  const mailing = buildMailWorkers(parts, own)
  const alertWorker = buildAppAlertWorker(parts, realtime.missing)
  const housekeeping = [...engine.housekeeping, ...Object.values(mailing), alertWorker]
  const clockWatch = time && buildClockWatch({ db, time, logger, workerId })
  const running: Promise<void>[] = []
  return {
    ...{ dispatcher, realtimeDispatcher, realtime, router, provisioner, provisioningJobs },
    ...{ replayWorker, maintenance, ...mailing, alertWorker, metrics, relay, pulls, leaseEnder, notify },
    isLive: (withinMs) => notifier.isLive(withinMs),
    start: () => {
      if (clockWatch) running.push(clockWatch.run())
      engine.start(running)
      // Subscriptions are authorized where the API is served.
      if (realtime.guard && config.roles.includes('api')) running.push(realtime.guard.run())
      if (isProvisioner) running.push(provisioner.run(), provisioningJobs.run())
      if (config.roles.includes('maintenance')) running.push(...housekeeping.map((item) => item.run()))
    },
    stop: async () => {
      clockWatch?.stop()
      for (const worker of [router, replayWorker, provisioningJobs, pulls.waits, ...housekeeping]) worker.stop()
      for (const worker of [realtime.guard, relay]) worker?.stop()
      await Promise.all([
        ...dispatchers.map((dispatcher) => dispatcher.stop()),
        provisioner.stop(),
        realtime.watch?.stop(),
      ])
      lease.stop()
      await notifier.stop()
      await Promise.all(running)
      await realtime.client?.close()
      // Other workers find lost claims when the lease expires.
      if (isWorker && ![...dispatchers, provisioner].some((item) => item.mayLeak()))
        await lease.end().catch((err) => logger.warn({ err }, 'lease not ended: see docs/operations.md, database'))
    },
  }
}

/** A trigger reports queued deliveries to targets; polling finds those that become due later. */
function buildChangeListener(to: {
  latch: Pick<TargetLatch, 'invalidate'>
  provisioner: Pick<Dispatcher, 'notify'>
  waits: Pick<PullWaits, 'notify'>
  onChange: WorkerParts['onChange']
}): (change: Invalidation) => void {
  return (change) => {
    // No cache is concerned, and there is one for each row.
    if (change.startsWith('w:')) return to.waits.notify(change.slice(2))
    if (change === '*') to.waits.notify()
    if (change === 't' || change === '*') to.latch.invalidate()
    if (change === 'p' || change === '*') to.provisioner.notify()
    to.onChange?.(change)
  }
}

function buildAppMetrics(
  { config, clock, time, keyring, logCounts, readCellFacts, ...databases }: WorkerParts,
  {
    isLogConnected,
    ...counts
  }: Pick<MetricsDeps, 'inFlight' | 'countListenReconnects'> & { isLogConnected: () => boolean | undefined },
): Metrics {
  const { database, requestDatabase, readDatabase, leaseDatabase, maintenanceDatabase } = databases
  const { replicaDatabase, connectionString } = databases
  return buildMetrics({
    ...{ db: database.db, clock, time, roles: config.roles, allRoles: ROLES, keyIds: keyring.keyIds, logCounts },
    storage: { disk: findDiskSource(config), retention: config },
    ...{ hasEventLog: config.eventLog !== undefined, readCellFacts },
    ...(hasRelay(config) && { relay: { isConnected: isLogConnected } }),
    pools: {
      requests: requestDatabase.state,
      workers: database.state,
      ...(readDatabase && { reads: readDatabase.state }),
      ...(leaseDatabase && { lease: leaseDatabase.state }),
      ...(maintenanceDatabase && { maintenance: maintenanceDatabase.state }),
      ...(replicaDatabase && { replica: replicaDatabase.state }),
    },
    replica: replicaDatabase?.replica,
    countSwitches: () => findPrimaryChoice(connectionString)?.countSwitches() ?? 0,
    ...counts,
  })
}
