import { type AlertWorker, buildAlertWorker } from '../alert/alert-worker.ts'
import { parseAllowedTargets } from '../outbound/callback-url.ts'
import { buildGuardedFetch } from '../outbound/guarded-fetch.ts'
import { VERSION } from '../version.ts'
import type { WorkerParts } from './workers.ts'

/** Builds the worker of alerts. The operator names their receiver, so it may be private; every other address is refused. */
export function buildAppAlertWorker(parts: WorkerParts): AlertWorker {
  const { config, database, clock, logger, lookup, baseUrl } = parts
  const url = config.alertWebhookUrl
  const allowed = url === undefined ? '' : new URL(url).hostname
  return buildAlertWorker({
    db: database.db,
    ...{ clock, logger, url, baseUrl },
    secret: config.alertWebhookSecret,
    userAgent: `Signalbox-Alerts/${VERSION}`,
    fetch: buildGuardedFetch({
      lookup,
      rules: { allowHttp: true, allowedPrivateTargets: parseAllowedTargets(allowed) },
    }),
  })
}
