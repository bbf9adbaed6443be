import { systemClock } from '../../base/clock.ts'
import type { Relay } from '../../carriage/relay/relay.ts'
import { buildDispatcher, type Dispatcher } from '../../delivery/dispatcher/dispatcher.ts'
import type { JobRunner } from '../../delivery/job/job-runner.ts'
import type { KeptLease } from '../../delivery/lease-timer.ts'
import { buildRouter, type Router } from '../../delivery/routing/router.ts'
import { buildMailWorker, type MailWorker } from '../../identity/mail/mail-worker.ts'
import { buildActivityCounter } from '../../operations/activity/activity-counter.ts'
import type { AlertWorker } from '../../operations/alert/alert-worker.ts'
import { buildMetrics, type Metrics, type MetricsDeps } from '../../operations/metrics/metrics.ts'
import { findPrimaryChoice } from '../../postgres/connection/host-client.ts'
import type { Invalidation } from '../../postgres/connection/invalidated-cache.ts'
import { buildNotifier } from '../../postgres/connection/notify.ts'
import { buildProvisioningJobWorker } from '../../provisioning/job/job-worker.ts'
import { buildTargetLatch, type TargetLatch } from '../../provisioning/target/target-latch.ts'
import { buildOutcomeCounter } from '../../webhook/activity/outcome-counter.ts'
import {
  buildNoticeWorker,
  checkWebhookMail,
  type NoticeWorker,
  WEBHOOK_MAIL,
} from '../../webhook/mail/notice-worker.ts'
import type { LeaseEnder } from '../../webhook/pull/lease-end.ts'
import type { PullDeps } from '../../webhook/pull/pull.ts'
import type { PullWaits } from '../../webhook/pull/pull-waits.ts'
import { buildReplayWorker } from '../../webhook/replay/replay-job-worker.ts'
import { ROLES } from '../config/config-variables.ts'
import { buildMailTransport, decideMailWay, loadTemplates } from '../part/mail-transport.ts'
import type { RealtimeParts } from '../part/realtime-parts.ts'
import { buildAppAlertWorker } from './alerts.ts'
import { buildClockWatch } from './clock-watch.ts'
import { findDiskSource } from './disk-source.ts'
import { buildAppRelay, hasRelay } from './event-log-relay.ts'
import type { Maintenance } from './maintenance.ts'
import { buildProvisioningDispatcher } from './provisioning-workers.ts'
import { buildAppDelivery } from './webhook-workers.ts'
import { buildAppMaintenance, buildAppRealtime, buildKeptLease, startRealtime } from './worker-builders.ts'
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
  /** Starts the workers of the process's roles. */
  start(): void
  /** Stops them in order; resolves when all have stopped and no claim remains. */
  stop(): Promise<void>
}

/** Builds the workers and lets them notify each other: recorded, routed, posted. Nothing runs before `start`. */
export function buildWorkers(parts: WorkerParts): Workers {
  const { config, database, clock, time, logger, workerId } = parts
  const { db } = database
  const isDispatcher = config.roles.includes('dispatcher')
  const isPublisher = config.roles.includes('realtime')
  const isProvisioner = config.roles.includes('provisioning')
  const isWorker = isDispatcher || isPublisher || isProvisioner
  const counts = { inFlight: () => dispatcher.inFlight(), countListenReconnects: () => notifier.countReconnects() }
  const metrics = buildAppMetrics(parts, { ...counts, isLogConnected: () => relay?.isConnected() })
  const relay = buildAppRelay(parts, metrics)
  const lease = buildKeptLease(parts, () => notifier.isListening())
  const { isTrusted } = lease
  const own = { lease, onOwnFault: metrics.countOwnFault }
  const fixture = { clock, rest: systemClock.sleep, logger, workerId, isEnabled: config.enableApiEventQueue, ...own }
  const { policy, ...pulling } = buildAppDelivery(parts, metrics, () => notifier.notify())
  const dispatcher: Dispatcher = buildDispatcher({
    ...fixture,
    policy,
    onRoom: () => router.notifyRoom(),
    ...(parts.onCrashPoint && { onDispatcherPoint: parts.onCrashPoint }),
  })
  const realtime = buildAppRealtime(parts, metrics, () => realtimeDispatcher?.notify())
  const realtimeDispatcher = realtime.policy && buildDispatcher({ ...fixture, policy: realtime.policy })
  const dispatchers = realtimeDispatcher ? ([dispatcher, realtimeDispatcher] as const) : ([dispatcher] as const)
  const router = buildRouter({ ...fixture, db, dispatchers })
  const latch = buildTargetLatch({ db, clock })
  const provisioner = buildProvisioningDispatcher(parts, { ...own, latch, onRecorded: metrics.countProvisioning })
  const provisioningJobs = buildProvisioningJobWorker({
    ...{ db, clock, logger, isEnabled: config.enableApiEventQueue, isTrusted },
    onQueued: () => provisioner.notify(),
    latch: latch.pass,
  })
  const [waits, leaseEnder] = [pulling.pulls.waits, pulling.leaseEnder]
  const onChange = buildChangeListener({ latch, provisioner, waits, onChange: parts.onChange })
  // The router finds due rows, and notifies the dispatchers; those of a process without a router poll.
  const onWork = () => (isDispatcher ? router.notify() : realtimeDispatcher?.notify())
  const notifier = buildNotifier({
    ...{ connectionString: parts.connectionString, clock, random: parts.random },
    ...(isWorker && {
      onWork,
      workerId,
      hasPeers: () => lease.hasPeers() && (dispatcher.measureRoom().fastSlots === 0 || !isPublisher),
    }),
    ...((parts.onChange || isProvisioner) && { onChange }),
    // A promoted standby may still have claims whose results only the lost primary recorded.
    onReconnect: () => expectLeaks([...dispatchers, provisioner]),
    onError: (error) => logger.warn({ err: error }, 'notification failed: see docs/operations.md, database'),
  })
  const replayWorker = buildReplayWorker({ db, clock, logger, workerId, isTrusted, onReplays: () => notifier.notify() })
  const maintenance = buildAppMaintenance(parts, metrics)
  const mailing = buildMailWorkers(parts, own)
  const alertWorker = buildAppAlertWorker(parts, realtime.missing)
  const counters = [buildOutcomeCounter({ db, clock, logger }), buildActivityCounter({ db, clock, logger })]
  const housekeeping = [maintenance, ...Object.values(mailing), alertWorker, leaseEnder, ...counters]
  const clockWatch = time && buildClockWatch({ db, time, logger, workerId })
  const running: Promise<void>[] = []
  return {
    dispatcher,
    realtimeDispatcher,
    realtime,
    router,
    provisioner,
    provisioningJobs,
    ...{ replayWorker, maintenance, ...mailing, alertWorker, metrics, relay },
    ...pulling,
    notify: () => void [notifier, relay].map((item) => item?.notify()),
    isLive: (withinMs) => notifier.isLive(withinMs),
    start: () => {
      running.push(notifier.run(), ...[clockWatch, relay].map((item) => item?.run() ?? Promise.resolve()))
      if (isWorker) running.push(lease.run())
      if (isDispatcher) running.push(router.run(), dispatcher.run(), replayWorker.run())
      // Subscriptions are authorized where the API is served.
      if (realtime.guard && config.roles.includes('api')) running.push(realtime.guard.run())
      if (isPublisher) startRealtime(realtime, realtimeDispatcher, running)
      if (isProvisioner) running.push(provisioner.run(), provisioningJobs.run())
      if (config.roles.includes('maintenance')) running.push(...housekeeping.map((item) => item.run()))
    },
    stop: async () => {
      clockWatch?.stop()
      for (const worker of [router, replayWorker, provisioningJobs, waits, ...housekeeping]) worker.stop()
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

function expectLeaks(dispatchers: readonly Pick<Dispatcher, 'expectLeak'>[]): void {
  for (const dispatcher of dispatchers) dispatcher.expectLeak()
}

/** The worker of the outbox, with its templates and transport, and that of the mails about webhooks. */
function buildMailWorkers(
  { config, database: { db }, ids, clock, logger, keyring, baseUrl }: WorkerParts,
  { lease: { isTrusted }, onOwnFault }: { lease: Pick<KeptLease, 'isTrusted'>; onOwnFault: Metrics['countOwnFault'] },
): Pick<Workers, 'mailWorker' | 'noticeWorker'> {
  const shared = { db, clock, logger, keyring, isTrusted }
  const texts = { template: loadTemplates(config), transport: buildMailTransport(config, db) }
  const checks = { [WEBHOOK_MAIL]: checkWebhookMail }
  const canSendMail = decideMailWay(config) !== 'none'
  return {
    mailWorker: buildMailWorker({ ...shared, ...texts, rest: systemClock.sleep, checks, onOwnFault }),
    noticeWorker: buildNoticeWorker({ ...shared, ids, canSendMail, baseUrl, serviceName: config.brandName }),
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
