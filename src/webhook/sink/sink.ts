import type { Logger } from 'pino'
import type { Keyring } from '../../base/keyring.ts'
import { Problem } from '../../http/problem/problem.ts'
import { verifyTimestamped } from '../../outbound/signature.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findSecretsByUrl } from '../registry/webhook.store.ts'
import { secretContextOf } from '../registry/webhook.ts'

/** The path of the service's own receiver (docs/contract/webhooks.md#sink-availability). */
export const SINK_PATH = '/api/v3/webhook/sink'

export interface SinkDeps {
  db: Database
  logger: Logger
  keyring: Keyring
  /** `WEBHOOK_SINK_SECRET`; in development without it, the secrets of the webhooks on the URL of the delivery. */
  sinkSecret: string | undefined
  sinkUrl: () => string
}

export interface SinkDelivery {
  header: string | undefined
  body: Buffer
  /** Query of the posted URL, in the form of `sinkSearch`. */
  search: string
  /** Whether the URL asks for a failure. */
  isToFail: boolean
  /** The fields of the log line: headers of the delivery that are no secrets. */
  logFields: Record<string, string>
  now: Date
}

/** Normalized query of a URL of the sink: the receiver first. `''` for the sink's own URL. */
export function sinkSearch({ receiver, fails }: { receiver?: string; fails?: 'true' }): string {
  const search = new URLSearchParams({ ...(receiver && { receiver }), ...(fails && { fails }) }).toString()
  return search && `?${search}`
}

/** Accepts a signed delivery (docs/contract/webhooks.md#sink). Throws 401, 503 for `fails`, 404 without a sink. */
export async function acceptDelivery(deps: SinkDeps, delivery: SinkDelivery): Promise<{ accepted: true }> {
  const secrets = deps.sinkSecret ? [deps.sinkSecret] : await listOwnSecrets(deps, delivery)
  if (secrets.length === 0)
    throw new Problem('not_found', 'There is nothing at this path. The API reference is at /docs.')
  const nowSeconds = Math.floor(delivery.now.getTime() / 1000)
  const checks = secrets.map((secret) =>
    verifyTimestamped({ secret, header: delivery.header, body: delivery.body, nowSeconds }),
  )
  if (!checks.some((check) => check.ok)) {
    const fault = checks.find((check) => !check.ok)
    const detail = 'The signature does not fit WEBHOOK_SINK_SECRET, or its timestamp is off by more than 300 s.'
    throw new Problem('signature_invalid', detail, { reason: fault && !fault.ok ? fault.fault : 'unknown' })
  }
  if (delivery.isToFail)
    throw new Problem('sink_fails', 'The URL of the webhook asks for it. Remove fails=true from the URL to end it.')
  deps.logger.info(delivery.logFields, 'sink accepted a delivery')
  return { accepted: true }
}

async function listOwnSecrets(deps: SinkDeps, { search }: SinkDelivery): Promise<string[]> {
  const rows = await findSecretsByUrl(deps.db, `${deps.sinkUrl()}${search}`)
  return rows.map((row) => deps.keyring.open(row.secretEncrypted, secretContextOf(row.id)))
}
