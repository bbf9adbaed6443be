import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Clock } from '../clock.ts'
import { readWebhookOutFacts } from '../health/health.store.ts'
import { FACTS_LIFETIME_MS } from '../health/webhook-out.ts'
import { cacheFor } from '../http/cached.ts'
import { type Database, isDatabaseReady } from '../postgres/database.ts'
import type { RecordedDelivery } from '../provisioning/delivery/settle.ts'
import { readEndedDeliveries, readProvisioningFacts } from '../provisioning/provisioning-health.ts'
import { readTotals } from '../webhook/delivery/delivery-count.store.ts'
import type { RecordedAttempt, WebhookNotice } from '../webhook/delivery/settle.ts'
import { buildRealtimeMetrics, type RealtimeMetrics } from './realtime-metrics.ts'

/** Every status is in the metric from the start, so that a rate has no gap at its beginning. */
const STATUSES = ['pending', 'retrying', 'success', 'exhausted', 'failed', 'cancelled'] as const

/** The metrics of one process. */
export interface Metrics {
  /** The Prometheus text of `GET /metrics`, at most 5 s old. */
  render(): Promise<string>
  contentType: string
  /** Counts recorded attempts and notices. */
  countAttempts(recorded: readonly RecordedAttempt[], notices: readonly WebhookNotice[]): void
  /** Counts recorded attempts of provisioning. */
  countProvisioning(recorded: readonly RecordedDelivery[]): void
  /** Counts an answered request. */
  countRequest(request: { route: string; method: string; status: number; durationMs: number }): void
  realtime: RealtimeMetrics
}

/**
 * Builds the metrics. `webhook_out_deliveries_total` comes from the database and counts over all time and all processes.
 * The others belong to this process and do not need the database. The text is built at most once in 5 s.
 */
export function buildMetrics(deps: { db: Database; clock: Clock; inFlight: () => number }): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const renderShared = buildSharedMetrics(deps)
  const databaseUp = new Gauge({
    name: 'database_up',
    help: 'Whether the database answered. While it does not, metrics from the database are left out.',
    registers,
  })
  new Gauge({
    name: 'webhook_out_in_flight',
    help: 'POSTs in flight in this process.',
    registers,
    collect() {
      this.set(deps.inFlight())
    },
  })
  const attempts = new Counter({
    name: 'webhook_out_attempts_total',
    help: 'Attempts of this process, by the class of their failure; "none" for a success.',
    labelNames: ['error', 'trigger'],
    registers,
  })
  const duration = new Histogram({
    name: 'webhook_out_attempt_duration_seconds',
    help: 'Duration of a POST.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
    registers,
  })
  const notices = new Counter({
    name: 'webhook_out_notices_total',
    help: 'Webhooks that were failing, were disabled, or recovered.',
    labelNames: ['event'],
    registers,
  })
  const provisioned = new Counter({
    name: 'provisioning_attempts_total',
    help: 'Attempts of this process to tell a target of a user, by the class of their failure; "none" for a success.',
    labelNames: ['error'],
    registers,
  })
  const requests = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Duration of a request, by route and status.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers,
  })
  return {
    contentType: registry.contentType,
    render: cacheFor(deps.clock, FACTS_LIFETIME_MS, async () => {
      const shared = (await isDatabaseReady(deps.db)) ? await renderShared() : ''
      databaseUp.set(shared === '' ? 0 : 1)
      return shared + (await registry.metrics())
    }),
    countAttempts: (recorded, seen) => {
      for (const { attempt, decision } of recorded) {
        attempts.inc({ error: decision.lastError ?? 'none', trigger: attempt.trigger })
        duration.observe(attempt.durationMs / 1000)
      }
      for (const notice of seen) notices.inc({ event: notice.event })
    },
    countProvisioning: (recorded) => {
      for (const { decision } of recorded) provisioned.inc({ error: decision.lastError ?? 'none' })
    },
    countRequest: ({ route, method, status, durationMs }) =>
      requests.observe({ route, method, status: String(status) }, durationMs / 1000),
    realtime: buildRealtimeMetrics(registry),
  }
}

/** The metrics of all processes, read from the database. */
function buildSharedMetrics(deps: { db: Database; clock: Clock }): () => Promise<string> {
  const registry = new Registry()
  const registers = [registry]
  const deliveries = new Gauge({
    name: 'webhook_out_deliveries_total',
    help: 'Deliveries that reached each status, over all time and all processes.',
    labelNames: ['status'],
    registers,
  })
  const backlog = new Gauge({
    name: 'webhook_out_backlog',
    help: 'Due dispatches and events without routing; 10000 stands for that many or more.',
    registers,
  })
  const oldest = new Gauge({
    name: 'webhook_out_oldest_due_seconds',
    help: 'The longest wait of these; 0 when none waits.',
    registers,
  })
  const provisioning = buildProvisioningMetrics(registers)
  return async () => {
    const totals = await readTotals(deps.db)
    await provisioning(deps.db, new Date(deps.clock.now()))
    const facts = await readWebhookOutFacts(deps.db, new Date(deps.clock.now()))
    for (const status of STATUSES) deliveries.set({ status }, totals.get(status) ?? 0)
    backlog.set(facts.backlog)
    oldest.set(facts.oldest_pending_s)
    return toCounter(await registry.metrics())
  }
}

/** The statuses in which a delivery of provisioning ends. */
const PROVISIONING_ENDS = ['delivered', 'failed', 'dead_letter', 'cancelled'] as const

/** The metrics of provisioning of all processes. */
function buildProvisioningMetrics(registers: Registry[]): (db: Database, now: Date) => Promise<void> {
  const deliveries = new Gauge({
    name: 'provisioning_deliveries_total',
    help: 'Deliveries to provisioning targets that ended in each status, over all time and all processes.',
    labelNames: ['status'],
    registers,
  })
  const deadLetters = new Gauge({
    name: 'provisioning_dead_letters_total',
    help: 'Those of them that ended as dead letter.',
    registers,
  })
  const backlog = new Gauge({
    name: 'provisioning_backlog',
    help: 'Users with a due delivery, over all targets; 10000 stands for that many or more.',
    registers,
  })
  const oldest = new Gauge({
    name: 'provisioning_oldest_due_seconds',
    help: 'The longest wait of these; 0 when none waits.',
    registers,
  })
  return async (db, now) => {
    const [totals, facts] = [await readEndedDeliveries(db), await readProvisioningFacts(db, now)]
    for (const status of PROVISIONING_ENDS) deliveries.set({ status }, totals.get(status) ?? 0)
    deadLetters.set(totals.get('dead_letter') ?? 0)
    backlog.set(facts.backlog)
    oldest.set(facts.oldest_pending_s)
  }
}

/** Totals of the database: prom-client cannot set a Counter, so a Gauge is rendered as one. */
const TOTALS = ['webhook_out_deliveries_total', 'provisioning_deliveries_total', 'provisioning_dead_letters_total']

function toCounter(text: string): string {
  return TOTALS.reduce((rest, name) => rest.replace(`# TYPE ${name} gauge`, `# TYPE ${name} counter`), text)
}
