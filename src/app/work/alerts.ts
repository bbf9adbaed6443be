import { VERSION } from '../../base/version.ts'
import type { IncidentCheck } from '../../delivery/incident/alert.ts'
import { type AlertWorker, buildAlertWorker } from '../../operations/alert/alert-worker.ts'
import { listFigures } from '../../operations/health/cell-facts.ts'
import { parseAllowedTargets } from '../../outbound/guard/callback-url.ts'
import { buildGuardedFetch } from '../../outbound/guarded-fetch.ts'
import { buildRealtimeHealth } from '../../realtime/realtime-health.ts'
import { WEBHOOK_INCIDENT_CHECKS } from '../../webhook/delivery/incident.ts'
import { listIncidentChecks } from './alert-checks.ts'
import type { WorkerParts } from './worker-parts.ts'

/** Builds the worker of alerts. `missing`: the missing settings of a realtime provider. */
export function buildAppAlertWorker(parts: WorkerParts, missing: readonly string[]): AlertWorker {
  const { config, database, clock, logger, keyring } = parts
  return buildWorker(
    parts,
    listIncidentChecks({
      keyIds: keyring.keyIds,
      logger,
      hasEventLog: config.eventLog !== undefined,
      readRealtimeHealth: buildRealtimeHealth({
        ...{ db: database.db, clock, missing },
        listCellWork: async () => listFigures(await parts.readCellFacts()).figures.map(({ realtime }) => realtime),
      }),
      readCellFacts: parts.readCellFacts,
    }),
  )
}

/** Builds the worker of the incidents of webhooks in a cell; what has a state over all databases is an incident of home. */
export const buildCellAlertWorker = (parts: Omit<WorkerParts, 'time'>): AlertWorker =>
  buildWorker(parts, WEBHOOK_INCIDENT_CHECKS)

/** The operator chooses the receiver, so it may be private; every other private address is refused. */
function buildWorker(parts: Omit<WorkerParts, 'time'>, checks: readonly IncidentCheck[]): AlertWorker {
  const { config, database, clock, logger, lookup, baseUrl, ids } = parts
  const url = config.alertWebhookUrl
  const allowed = url === undefined ? '' : new URL(url).hostname
  return buildAlertWorker({
    db: database.db,
    ...{ ids, clock, logger, url, baseUrl, checks },
    secret: config.alertWebhookSecret,
    userAgent: `Signalbox-Alerts/${VERSION}`,
    fetch: buildGuardedFetch({
      lookup,
      rules: { allowHttp: true, allowedPrivateTargets: parseAllowedTargets(allowed) },
    }),
  })
}
