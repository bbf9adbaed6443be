import type { Logger } from 'pino'
import type { AlertWorker } from '../alert/alert-worker.ts'
import { type Clock, systemClock } from '../clock.ts'
import { buildDispatcher, type Dispatcher } from '../delivery/dispatcher.ts'
import type { JobRunner } from '../delivery/job-runner.ts'
import { buildRouter, type Router } from '../delivery/router.ts'
import { buildWorkerLease } from '../delivery/worker-lease.ts'
import type { IdMaker } from '../id.ts'
import type { Keyring } from '../keyring.ts'
import { buildMailWorker, type MailWorker } from '../mail/mail-worker.ts'
import { buildMetrics, type Metrics } from '../metrics/metrics.ts'
import type { Lookup } from '../outbound/dns.ts'
import type { GuardedFetch } from '../outbound/guarded-fetch.ts'
import type { HttpSender } from '../outbound/http-sender.ts'
import type { DatabasePool } from '../postgres/database.ts'
import { buildNotifier } from '../postgres/notify.ts'
import type { RecordedDelivery } from '../provisioning/delivery/settle.ts'
import { buildJobWorker } from '../provisioning/job/job-worker.ts'
import { buildTargetGate } from '../provisioning/target-gate.ts'
import type { Random } from '../random.ts'
import { buildSecretCache } from '../signed-post/secret-cache.ts'
import type { Tracer } from '../tracing/tracer.ts'
import { VERSION } from '../version.ts'
import { buildWebhookPolicy } from '../webhook/delivery/webhook-policy.ts'
import { buildReplayWorker } from '../webhook/replay/replay-job-worker.ts'
import { secretContextOf } from '../webhook/webhook.ts'
import { buildAppAlertWorker } from './alerts.ts'
import type { Config } from './config.ts'
import { ROLES } from './config-variables.ts'
import { buildMailTransport, loadTemplates } from './mail-transport.ts'
import { buildMaintenance, type Maintenance } from './maintenance.ts'
import { buildProvisioningDispatcher } from './provisioning-workers.ts'
import { buildRealtimeParts, type EmbeddedRealtime, type RealtimeParts } from './realtime-parts.ts'

/** What the workers of a process are built from. */
export interface WorkerParts {
  config: Config
  database: DatabasePool
  connectionString: string
  clock: Clock
  random: Random
  logger: Logger
  ids: IdMaker
  workerId: string
  keyring: Keyring
  sender: HttpSender
  /** Makes the requests to SCIM services. */
  fetchTarget: GuardedFetch
  lookup: Lookup
  baseUrl: () => string
  tracer: Tracer
  /** Runs for each change of what the process holds in memory; without it the process holds nothing. */
  onChange?: (note: string) => void
  /** The pool of requests. */
  requestDatabase: DatabasePool
  /** The embedded realtime server, where the settings ask for one. */
  embeddedRealtime?: EmbeddedRealtime | undefined
  /** Certificate authorities that the realtime provider is trusted by, in place of the system's; for tests. */
  ca?: string | undefined
  /** Ends the process at a named point; for crash tests. */
  onCrashPoint?: ((point: NonNullable<Config['crashPoint']>) => void) | undefined
}

/** What runs in the background of a process. Each works only when SIGNALBOX_ROLES names its role. */
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
  alertWorker: AlertWorker
  metrics: Metrics
  /** Tells this process and the others that there is work. Never throws. */
  notify(): void
  /** Whether notes of changes are proven to arrive (`Notifier.isProven`). */
  isProven(withinMs?: number): boolean
  /** Starts the workers of the process's roles. */
  start(): void
  /** Ends them in order; resolves when all have ended and nothing is claimed any more. */
  stop(): Promise<void>
}

/** Builds the workers and lets them notify each other: recorded, routed, posted. Nothing runs before `start`. */
export function buildWorkers(parts: WorkerParts): Workers {
  const { config, database, clock, logger, workerId, keyring } = parts
  const { db } = database
  const isDispatcher = config.roles.includes('dispatcher')
  const isPublisher = config.roles.includes('realtime')
  const isProvisioner = config.roles.includes('provisioning')
  const isWorker = isDispatcher || isPublisher || isProvisioner
  const metrics: Metrics = buildMetrics({
    ...{ db, clock, roles: config.roles, allRoles: ROLES, keyIds: keyring.keyIds },
    inFlight: () => dispatcher.inFlight(),
  })
  const lease = buildWorkerLease({ db, clock, workerId, hasLock: () => notifier.isListening() })
  const world = { clock, rest: systemClock.sleep, logger, workerId, lease, isEnabled: config.enableApiEventQueue }
  const dispatcher: Dispatcher = buildDispatcher({
    ...world,
    policy: buildAppPolicy(parts, metrics),
    onRoom: () => router.notifyRoom(),
    ...(parts.onCrashPoint && { onDispatcherPoint: parts.onCrashPoint }),
  })
  const realtime = buildAppRealtime(parts, metrics, () => realtimeDispatcher?.notify())
  const realtimeDispatcher = realtime.policy && buildDispatcher({ ...world, policy: realtime.policy })
  const dispatchers = realtimeDispatcher ? ([dispatcher, realtimeDispatcher] as const) : ([dispatcher] as const)
  const router = buildRouter({ clock, rest: systemClock.sleep, db, logger, dispatchers })
  const gate = buildTargetGate({ db, clock })
  const onDelivered = (recorded: readonly RecordedDelivery[]) => metrics.countProvisioning(recorded)
  const provisioner = buildProvisioningDispatcher(parts, lease, { gate, onRecorded: onDelivered })
  const provisioningJobs = buildJobWorker({
    ...{ db, clock, logger, isEnabled: config.enableApiEventQueue },
    onQueued: () => provisioner.notify(),
    gate: gate.pass,
  })
  // A trigger notes that something was queued for a target; what else becomes due is seen by polling.
  const onChange = (note: string) => {
    if (note === 't' || note === '*') gate.note()
    if (note === 'p' || note === '*') provisioner.notify()
    parts.onChange?.(note)
  }
  // The router sees what else is due, and notifies the dispatchers; those of a process without a router look themselves.
  const onWork = () => (isDispatcher ? router.notify() : realtimeDispatcher?.notify())
  const notifier = buildNotifier({
    connectionString: parts.connectionString,
    clock,
    random: parts.random,
    ...(isWorker && {
      onWork,
      workerId,
      hasPeers: () => lease.hasPeers() && (dispatcher.measureRoom().fastSlots === 0 || !isPublisher),
    }),
    ...((parts.onChange || isProvisioner) && { onChange }),
    onError: (error) => logger.warn({ err: error }, 'notification failed: see docs/operations.md, database'),
  })
  const notify = () => notifier.notify()
  const replayWorker = buildReplayWorker({ db, clock, logger, workerId, onReplays: notify })
  const maintenance = buildMaintenance({ db, clock, logger, config, keyring, workerId })
  const transport = buildMailTransport(config, db)
  const template = loadTemplates(config)
  const mailWorker = buildMailWorker({ db, clock, rest: systemClock.sleep, logger, keyring, template, transport })
  const alertWorker = buildAppAlertWorker(parts, realtime.missing)
  const running: Promise<void>[] = []
  return {
    dispatcher,
    realtimeDispatcher,
    realtime,
    router,
    provisioner,
    provisioningJobs,
    replayWorker,
    maintenance,
    mailWorker,
    alertWorker,
    metrics,
    notify,
    isProven: (withinMs) => notifier.isProven(withinMs),
    start: () => {
      running.push(notifier.run())
      if (isDispatcher) running.push(router.run(), dispatcher.run(), replayWorker.run())
      if (isPublisher) startRealtime(realtime, realtimeDispatcher, running)
      if (isProvisioner) running.push(provisioner.run(), provisioningJobs.run())
      if (config.roles.includes('maintenance')) running.push(maintenance.run(), mailWorker.run(), alertWorker.run())
    },
    stop: async () => {
      router.stop()
      replayWorker.stop()
      provisioningJobs.stop()
      maintenance.stop()
      mailWorker.stop()
      alertWorker.stop()
      realtime.guard?.stop()
      await Promise.all([...dispatchers.map((one) => one.stop()), provisioner.stop(), realtime.watch?.stop()])
      await notifier.stop()
      await Promise.all(running)
      await realtime.client?.close()
      // Claims that are left unknown are found by other workers when the lease runs out.
      if (isWorker && ![...dispatchers, provisioner].some((one) => one.mayLeak()))
        await lease.end().catch((err) => logger.warn({ err }, 'lease not ended: see docs/operations.md, database'))
    },
  }
}

function startRealtime(realtime: RealtimeParts, dispatcher: Dispatcher | undefined, running: Promise<void>[]): void {
  realtime.announce()
  if (dispatcher) running.push(dispatcher.run())
  if (realtime.watch) running.push(realtime.watch.run())
}

function buildAppRealtime(parts: WorkerParts, metrics: Metrics, onRecovered: () => void): RealtimeParts {
  const { config, database, clock, logger, workerId, onCrashPoint } = parts
  return buildRealtimeParts({
    ...{ config, clock, logger, workerId, onRecovered },
    db: database.db,
    requestDb: parts.requestDatabase.db,
    metrics: metrics.realtime,
    embedded: parts.embeddedRealtime,
    ca: parts.ca,
    ...(onCrashPoint && { onPoint: () => onCrashPoint('after-publish') }),
  })
}

function buildAppPolicy(parts: WorkerParts, metrics: Metrics) {
  const { config, database, onCrashPoint } = parts
  return buildWebhookPolicy({
    ...parts,
    db: database.db,
    secrets: buildSecretCache(parts.keyring, secretContextOf),
    version: VERSION,
    enableApiEventQueue: config.enableApiEventQueue,
    concurrency: config.webhookConcurrency,
    perWebhook: config.webhookConcurrencyPerWebhook,
    onRecorded: (recorded, notices) => metrics.countAttempts(recorded, notices),
    ...(onCrashPoint && { onPoint: onCrashPoint, onRecording: () => onCrashPoint('during-record') }),
  })
}
