import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { IdMaker } from '../../base/id.ts'
import type { Loop } from '../../base/rounds.ts'
import {
  claimIncidents,
  type DueIncident,
  giveBackIncident,
  markPosted,
  postponeIncident,
} from '../../delivery/incident/alert.store.ts'
import { type IncidentCheck, runIncidentCheck } from '../../delivery/incident/alert.ts'
import { buildDeliveryHeaders } from '../../delivery/post/delivery-headers.ts'
import type { GuardedFetch } from '../../outbound/guarded-fetch.ts'
import { type Database, isDatabaseUnavailable } from '../../postgres/statement/database.ts'

const POLL_MS = 1_000

const CHECK_EVERY_POLLS = 10

/** Number of incidents in one claim; they are posted one after the other. */
const BATCH_SIZE = 10

/** Lease of a claim: longer than a batch with a receiver that does not answer. */
const LEASE_MS = 120_000

/** The wait after the first failed POST; it doubles with each further one, up to the second number. */
const WAIT_MS = { first: 10_000, longest: 600_000 }

export interface AlertWorkerDeps {
  ids: IdMaker
  /** Checks for incidents that no transaction begins. */
  checks: readonly IncidentCheck[]
  db: Database
  clock: Clock
  logger: Logger
  fetch: GuardedFetch
  /** `ALERT_WEBHOOK_URL`; without it nothing is posted. */
  url: string | undefined
  /** `ALERT_WEBHOOK_SECRET`; without it POSTs carry no signature. */
  secret: string | undefined
  baseUrl: () => string
  userAgent: string
}

/** Posts the begin and the end of incidents (docs/contract/delivery.md#alerts). */
export interface AlertWorker extends Loop {
  /** Makes every check; one that fails is logged, and keeps no other from being made. Rejects without a database. */
  check(): Promise<void>
  /** Posts due incidents. Returns the number of POSTs. */
  drain(): Promise<number>
}

/** Builds the worker. One for each process with the role `maintenance`; an incident is posted by one at a time. */
export function buildAlertWorker(deps: AlertWorkerDeps): AlertWorker {
  const { db, clock, logger, url } = deps
  const stopping = new AbortController()
  const warn = (error: unknown, facts: object = {}) =>
    logger.warn({ err: error, ...facts }, 'incidents not read: see docs/operations.md, alerts')

  async function drain(): Promise<number> {
    if (url === undefined) return 0
    for (let posts = 0; ; ) {
      const nowMs = clock.now()
      const leaseEnd = new Date(nowMs + LEASE_MS)
      const claimed = await claimIncidents(db, { now: new Date(nowMs), leaseEnd, limit: BATCH_SIZE })
      for (const alert of claimed) {
        // A stop releases alerts that were not begun to other processes at once.
        if (stopping.signal.aborted) await giveBackIncident(db, { ...alert, dueAt: new Date(clock.now()) })
        else await post(deps, url, alert, stopping.signal)
      }
      posts += claimed.length
      if (claimed.length < BATCH_SIZE || stopping.signal.aborted) return posts
    }
  }

  async function check(): Promise<void> {
    for (const check of deps.checks)
      await runIncidentCheck(deps, check, new Date(clock.now())).catch((error: unknown) => {
        if (isDatabaseUnavailable(error)) throw error
        warn(error, { incident: check.incident })
      })
  }

  return {
    check,
    drain,
    run: async () => {
      for (let polls = 0; !stopping.signal.aborted; polls += 1) {
        const work = polls % CHECK_EVERY_POLLS === 0 ? check().then(drain) : drain()
        await work.catch(warn)
        await clock.sleep(POLL_MS, stopping.signal)
      }
    },
    stop: () => stopping.abort(),
  }
}

async function post(deps: AlertWorkerDeps, url: string, incident: DueIncident, signal: AbortSignal): Promise<void> {
  const { db, clock, logger } = deps
  const body = buildAlertBody(incident, deps.baseUrl())
  const timestampSeconds = Math.floor(clock.now() / 1000)
  const { secret } = deps
  const headers =
    secret === undefined
      ? { 'content-type': 'application/json', 'user-agent': deps.userAgent }
      : buildDeliveryHeaders({
          ...{ userAgent: deps.userAgent, secret, body, timestampSeconds, attempt: incident.attempts },
          ...{ eventId: incident.id, deliveryId: incident.id, eventType: `alert.${incident.status}` },
        })
  const failure = await deps
    .fetch(url, { method: 'POST', headers, body, signal })
    .then(({ ok, status }) => (ok ? undefined : `status ${status}`))
    .catch((error: unknown) => (error as { code?: string }).code ?? 'FAILED')
  const now = clock.now()
  if (failure === undefined) return markPosted(db, incident, new Date(now))
  const facts = { incident: incident.incident, incident_id: incident.id, attempt: incident.attempts, error: failure }
  // A stop leaves it to other processes at once. It counts: the receiver may have it.
  const waitMs = signal.aborted ? 0 : findAlertWait(incident.attempts)
  if (!signal.aborted) logger.warn(facts, 'alert not posted: see docs/operations.md, alerts')
  await postponeIncident(db, { id: incident.id, dueAt: new Date(now + waitMs) })
}

/** The wait after this many failed POSTs, in milliseconds. Pure. */
function findAlertWait(attempts: number): number {
  return Math.min(WAIT_MS.longest, WAIT_MS.first * 2 ** Math.max(0, attempts - 1))
}

/** The body of an alert. Pure. */
function buildAlertBody(incident: DueIncident, baseUrl: string): string {
  return JSON.stringify({
    id: incident.id,
    incident: incident.incident,
    subject: incident.subject,
    status: incident.status,
    since: incident.since.toISOString(),
    resolved_at: incident.resolvedAt?.toISOString() ?? null,
    summary: incident.summary,
    url: incident.url === null ? null : `${baseUrl}${incident.url}`,
  })
}
