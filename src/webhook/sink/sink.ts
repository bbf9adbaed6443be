import type { Logger } from 'pino'
import type { Keyring } from '../../base/keyring.ts'
import { Problem } from '../../http/problem/problem.ts'
import { verifyTimestamped } from '../../outbound/signature.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findSecretsByUrl } from '../registry/webhook.store.ts'
import { secretContextOf } from '../registry/webhook.ts'

/** The path of the service's own receiver (docs/contract/webhooks.md#sink-availability). */
export const SINK_PATH = '/api/v3/webhook/sink'

/** Dependencies of the sink. */
export interface SinkDeps {
  db: Database
  logger: Logger
  keyring: Keyring
  /** `WEBHOOK_SINK_SECRET`; in development, when it is not set, the secrets of the webhooks on the URL of the delivery are taken. */
  sinkSecret: string | undefined
  sinkUrl: () => string
}

/** A delivery as the sink gets it. */
export interface SinkDelivery {
  header: string | undefined
  body: Buffer
  /** The receiver that the URL of the delivery names; undefined for the sink's own. */
  receiver: string | undefined
  /** Non-secret headers of the delivery, for the log line. */
  envelopeHeaders: Record<string, string>
  now: Date
}

/**
 * Accepts a delivery that is signed for the sink's secret (docs/contract/webhooks.md#sink), and logs it. A bad or stale signature is a 401.
 * Without any secret the sink does not exist: 404.
 */
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
  const headers = Object.entries(delivery.envelopeHeaders)
  const fields = headers.map(([name, value]) => [name.replace(/^x-service-/, '').replaceAll('-', '_'), value])
  deps.logger.info(Object.fromEntries(fields), 'sink accepted a delivery')
  return { accepted: true }
}

async function listOwnSecrets(deps: SinkDeps, { receiver }: SinkDelivery): Promise<string[]> {
  const url = receiver === undefined ? deps.sinkUrl() : `${deps.sinkUrl()}?receiver=${receiver}`
  const rows = await findSecretsByUrl(deps.db, url)
  return rows.map((row) => deps.keyring.open(row.secretEncrypted, secretContextOf(row.id)))
}
