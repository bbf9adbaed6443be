import { Registry } from '@prometheus-io/client'
import { cacheFor } from '../../base/cached.ts'
import type { Clock } from '../../base/clock.ts'
import { VERSION } from '../../base/version.ts'
import type { IntakeCounts } from '../../carriage/intake/intake.ts'
import type { RelayCounts } from '../../carriage/relay/relay-turn.ts'
import { ERROR_CLASSES, isOwnAttempt } from '../../delivery/post/attempt-result.ts'
import { OWN_FAULT_CODES, type OwnFault } from '../../outbound/own-fault/own-fault.ts'
import { type Database, isDatabaseReady } from '../../postgres/statement/database.ts'
import type { RecordedDelivery } from '../../provisioning/delivery/settle.ts'
import type { RecordedAttempt, WebhookNotice } from '../../webhook/delivery/outcome.ts'
import type { ReadCellFacts } from '../health/cell-facts.ts'
import { FACTS_LIFETIME_MS } from '../health/webhook-out.ts'
import { buildConnectionMetrics, type ConnectionMetrics } from './connection-metrics.ts'
import { addDatabaseMetrics, type DatabaseMetricsDeps } from './database-metrics.ts'
import { buildIntakeMetrics, buildRelayMetrics, type EventLogMetricsDeps } from './event-log-metrics.ts'
import { buildInstruments, type Instruments } from './instruments.ts'
import { buildProcessMetrics, type ProcessMetrics, type ProcessMetricsDeps } from './process-metrics.ts'
import { buildRealtimeMetrics, type RealtimeMetrics } from './realtime-metrics.ts'
import { openRuntimeMetrics } from './runtime-metrics.ts'
import { buildSharedMetrics } from './shared-metrics.ts'
import type { StorageMetricsDeps } from './storage-metrics.ts'

/** The label values of the counters below. Each series starts at 0: a counter that first appears with 1 has no increase. */
const ERRORS = ['none', ...ERROR_CLASSES]
const TRIGGERS = ['schedule', 'test', 'replay'] as const
const NOTICES = ['webhook.failing', 'webhook.auto-disable', 'webhook.recovered'] as const
const RESPONSE_CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** The metrics of one process. */
export interface Metrics extends ProcessMetrics, ConnectionMetrics {
  /** The Prometheus text of `GET /metrics`, at most 5 s old. */
  render(): Promise<string>
  contentType: string
  countAttempts(recorded: readonly RecordedAttempt[], notices: readonly WebhookNotice[]): void
  /** Counts an attempt that was not made for a fault of this process. */
  countOwnFault(fault: OwnFault): void
  countProvisioning(recorded: readonly RecordedDelivery[]): void
  countRequest(request: { route: string; method: string; status: number; durationMs: number }): void
  realtime: RealtimeMetrics
  /** Counts of the relay of the event log; undefined without one in this process. */
  relay: RelayCounts | undefined
  /** Counts of what is taken in from the event log; undefined without one. */
  intake: IntakeCounts | undefined
}

export interface MetricsDeps extends ProcessMetricsDeps, DatabaseMetricsDeps {
  db: Database
  clock: Clock
  keyIds: readonly string[]
  storage: StorageMetricsDeps
  hasEventLog: boolean
  readCellFacts: ReadCellFacts
  /** The relay of the event log in this process. */
  relay?: EventLogMetricsDeps | undefined
  /** POSTs in flight. */
  inFlight: () => number
  roles: readonly string[]
  /** Every role that a process may have. */
  allRoles: readonly string[]
}

/**
 * Builds the metrics. `webhook_out_deliveries_total` comes from the database and counts over all time and all processes.
 * The others belong to this process and do not need the database. The text is built at most once in 5 s.
 */
export function buildMetrics(deps: MetricsDeps): Metrics {
  const registry = new Registry()
  const metrics = buildInstruments(registry)
  describeProcess(deps, metrics)
  addDatabaseMetrics(deps, metrics)
  const renderShared = buildSharedMetrics(deps)
  const databaseUp = metrics.gauge(
    'database_up',
    '1 while the database answers and accepts changes, else 0. At 0, metrics from the database are left out.',
  )
  const attempts = metrics.counter(
    'webhook_out_attempts_total',
    'Attempts of this process, by the class of their failure; "none" for a success.',
    ['error', 'trigger'],
  )
  const duration = metrics.histogram(
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
    'webhook_out_attempt_duration_seconds',
    'Duration of a POST.',
  )
  const notices = metrics.counter(
    'webhook_out_notices_total',
    'Webhooks that began to fail, were disabled, or recovered.',
    ['event'],
  )
  const provisioned = metrics.counter(
    'provisioning_attempts_total',
    'Provisioning attempts of this process, by the class of their failure; "none" for a success.',
    ['error'],
  )
  const requests = metrics.histogram(
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
    'http_request_duration_seconds',
    'Duration of a request, by route and status.',
    ['method', 'route', 'status'],
  )
  const responses = metrics.counter('http_responses_total', 'Responses of the API, by the class of their status.', [
    'class',
  ])
  for (const error of ERRORS) for (const trigger of TRIGGERS) attempts.inc({ error, trigger }, 0)
  for (const event of NOTICES) notices.inc({ event }, 0)
  for (const error of ERRORS) provisioned.inc({ error }, 0)
  for (const name of RESPONSE_CLASSES) responses.inc({ class: name }, 0)
  return {
    contentType: registry.contentType,
    render: cacheFor(deps.clock, FACTS_LIFETIME_MS, async () => {
      const shared = (await isDatabaseReady(deps.db)) ? await renderShared() : ''
      databaseUp.set(shared === '' ? 0 : 1)
      return shared + (await openRuntimeMetrics().metrics()) + (await registry.metrics())
    }),
    countAttempts: (recorded, seen) => {
      for (const { attempt, decision } of recorded) {
        attempts.inc({ error: decision.lastError ?? 'none', trigger: attempt.trigger })
        if (isOwnAttempt(attempt.result)) duration.observe(attempt.durationMs / 1000)
      }
      for (const notice of seen) notices.inc({ event: notice.event })
    },
    countOwnFault: buildOwnFaultCounter(metrics),
    countProvisioning: (recorded) => {
      for (const { decision } of recorded) provisioned.inc({ error: decision.lastError ?? 'none' })
    },
    countRequest: ({ route, method, status, durationMs }) => {
      requests.observe({ route, method, status: String(status) }, durationMs / 1000)
      responses.inc({ class: `${Math.floor(status / 100)}xx` })
    },
    ...{ realtime: buildRealtimeMetrics(metrics), ...buildProcessMetrics(deps, metrics) },
    ...buildConnectionMetrics(metrics),
    relay: deps.relay && buildRelayMetrics(deps.relay, metrics),
    intake: deps.hasEventLog ? buildIntakeMetrics(metrics) : undefined,
  }
}

function buildOwnFaultCounter(metrics: Instruments): Metrics['countOwnFault'] {
  const faults = metrics.counter(
    'signalbox_own_faults_total',
    'Attempts not made because this process lacked a resource: descriptors, ports, memory, time.',
    ['code'],
  )
  for (const code of OWN_FAULT_CODES) faults.inc({ code }, 0)
  return ({ code }) => faults.inc({ code })
}

/** Facts of this process: its version, its roles, and its POSTs in flight. */
function describeProcess({ roles, allRoles, inFlight }: MetricsDeps, metrics: Instruments): void {
  metrics.gauge('webhook_out_in_flight', 'POSTs in flight in this process.', [], (gauge) => gauge.set(inFlight()))
  const build = metrics.gauge('signalbox_build_info', 'Always 1; the labels are the versions of Signalbox and Node.', [
    'version',
    'node_version',
  ])
  build.set({ version: VERSION, node_version: process.versions.node }, 1)
  const role = metrics.gauge('signalbox_role', '1 if this process has the role, else 0.', ['role'])
  for (const name of allRoles) role.set({ role: name }, roles.includes(name) ? 1 : 0)
}
