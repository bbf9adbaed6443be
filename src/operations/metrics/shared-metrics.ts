import { Registry } from '@prometheus-io/client'
import type { Clock } from '../../base/clock.ts'
import { readEventLogFacts } from '../../carriage/relay/log-facts.ts'
import { readConnectionFacts } from '../../identity/connection/certificate/certificate-end.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { readEndedDeliveries, readProvisioningFacts } from '../../provisioning/provisioning-health.ts'
import { readTotals } from '../../webhook/delivery/delivery-count.store.ts'
import { listFigures, type ReadCellFacts } from '../health/cell-facts.ts'
import { readWebhookOutFacts } from '../health/health.store.ts'
import { addWebhookOutFacts } from '../health/webhook-out.ts'
import { addSecretFacts, readSecretFacts } from '../stored-secret/secret-health.ts'
import { buildCellMetrics, DELIVERY_STATUSES } from './cell-metrics.ts'
import { buildEventLogMetrics } from './event-log-metrics.ts'
import { buildInstruments, type Instruments } from './instruments.ts'
import { buildStorageMetrics, type StorageMetricsDeps } from './storage-metrics.ts'

/** The metrics of all processes, read from the database. */
export function buildSharedMetrics(deps: {
  db: Database
  clock: Clock
  keyIds: readonly string[]
  storage: StorageMetricsDeps
  hasEventLog: boolean
  readCellFacts: ReadCellFacts
}): () => Promise<string> {
  const registry = new Registry()
  const metrics = buildInstruments(registry)
  const deliveries = metrics.gauge(
    'webhook_out_deliveries_total',
    'Deliveries of home that reached each status, over all time and all processes.',
    ['status'],
  )
  const backlog = metrics.gauge(
    'webhook_out_backlog',
    'Due dispatches and events without routing; 10000 stands for that many or more.',
  )
  const oldest = metrics.gauge('webhook_out_oldest_due_seconds', 'Age of the oldest of these; 0 when none waits.')
  const throttled = metrics.gauge(
    'webhook_out_throttled',
    'Due dispatches that wait for the limit of their webhook; 10000 stands for that many or more.',
  )
  const oldestThrottled = metrics.gauge(
    'webhook_out_oldest_throttled_seconds',
    'Age of the oldest of these; 0 when none waits.',
  )
  const disabled = metrics.gauge(
    'webhook_out_auto_disabled',
    'Webhooks disabled after 20 failed deliveries in a row, and neither activated nor deleted since.',
  )
  const unreadable = metrics.gauge(
    'stored_secrets_unreadable',
    'Stored secrets that no key of SECRET_KEY of this process decrypts; 10000 of a table stands for that many or more.',
  )
  const certificates = buildCertificateMetrics(metrics)
  const provisioning = buildProvisioningMetrics(metrics)
  const eventLog = deps.hasEventLog ? buildEventLogMetrics(metrics) : undefined
  const cells = deps.hasEventLog ? buildCellMetrics(metrics) : undefined
  const storage = buildStorageMetrics(deps.db, deps.clock, deps.storage)
  return async () => {
    const totals = await readTotals(deps.db)
    await provisioning(deps.db, new Date(deps.clock.now()))
    const known = await deps.readCellFacts()
    const { figures } = listFigures(known)
    const facts = addWebhookOutFacts(
      await readWebhookOutFacts(deps.db, new Date(deps.clock.now())),
      figures.map(({ webhookOut }) => webhookOut),
    )
    const secrets = addSecretFacts(
      await readSecretFacts(deps.db, deps.keyIds),
      figures.map((of) => of.secrets),
    )
    for (const status of DELIVERY_STATUSES) deliveries.set({ status }, totals.get(status) ?? 0)
    backlog.set(facts.backlog)
    oldest.set(facts.oldest_pending_s)
    throttled.set(facts.throttled)
    oldestThrottled.set(facts.oldest_throttled_s)
    disabled.set(facts.auto_disabled)
    unreadable.set(secrets.unreadable)
    await certificates(deps.db, new Date(deps.clock.now()))
    if (eventLog) eventLog(await readEventLogFacts(deps.db, new Date(deps.clock.now())))
    if (cells) cells(known)
    return toCounter(await registry.metrics()) + (await storage())
  }
}

const PROVISIONING_ENDS = ['delivered', 'failed', 'dead_letter', 'cancelled'] as const

/** The metrics of provisioning of all processes. */
function buildProvisioningMetrics(metrics: Instruments): (db: Database, now: Date) => Promise<void> {
  const deliveries = metrics.gauge(
    'provisioning_deliveries_total',
    'Deliveries to provisioning targets that ended in each status, over all time and all processes.',
    ['status'],
  )
  const deadLetters = metrics.gauge('provisioning_dead_letters_total', 'Those of them that ended as dead letter.')
  const backlog = metrics.gauge(
    'provisioning_backlog',
    'Users with a due delivery, over all targets; 10000 stands for that many or more.',
  )
  const oldest = metrics.gauge('provisioning_oldest_due_seconds', 'Age of the oldest of these; 0 when none waits.')
  return async (db, now) => {
    const [totals, facts] = [await readEndedDeliveries(db), await readProvisioningFacts(db, now)]
    for (const status of PROVISIONING_ENDS) deliveries.set({ status }, totals.get(status) ?? 0)
    deadLetters.set(totals.get('dead_letter') ?? 0)
    backlog.set(facts.backlog)
    oldest.set(facts.oldest_pending_s)
  }
}

function buildCertificateMetrics(metrics: Instruments): (db: Database, now: Date) => Promise<void> {
  const certificates = metrics.gauge(
    'connection_certificates',
    'SAML connections in use whose last certificate ends within 14 days, or has ended; 10000 stands for that many or more.',
    ['state'],
  )
  return async (db, now) => {
    const facts = await readConnectionFacts(db, now)
    certificates.set({ state: 'ending' }, facts.certificates_ending)
    certificates.set({ state: 'ended' }, facts.certificates_ended)
  }
}

/** Totals of the database: the metrics library cannot set a Counter, so a Gauge is rendered as one. */
const TOTALS = [
  'webhook_out_deliveries_total',
  'cell_deliveries_total',
  'provisioning_deliveries_total',
  'provisioning_dead_letters_total',
]

function toCounter(text: string): string {
  return TOTALS.reduce((rest, name) => rest.replace(`# TYPE ${name} gauge`, `# TYPE ${name} counter`), text)
}
