import { mayDelete } from '../../base/database-clock.ts'
import { VERSION } from '../../base/version.ts'
import { buildSecretCache } from '../../delivery/post/secret-cache.ts'
import type { Metrics } from '../../operations/metrics/metrics.ts'
import type { SettledAttempts } from '../../webhook/delivery/settle.ts'
import { buildWebhookPolicy } from '../../webhook/delivery/webhook-policy.ts'
import { buildLeaseEnder } from '../../webhook/pull/lease-end.ts'
import { listReady } from '../../webhook/pull/pull.store.ts'
import type { PullDeps } from '../../webhook/pull/pull.ts'
import { buildPullWaits } from '../../webhook/pull/pull-waits.ts'
import { buildHeaderCache } from '../../webhook/registry/own-headers.ts'
import { buildSigningKeyCache } from '../../webhook/registry/signing-key.ts'
import { secretContextOf } from '../../webhook/registry/webhook.ts'
import { decideMailWay } from '../part/mail-transport.ts'
import type { WorkerParts } from './worker-parts.ts'

const USER_AGENT = `Signalbox-Webhooks/${VERSION}`

/** The delivery of webhooks: the dispatcher, the waits of pulls, and the end of their leases. */
export function buildAppDelivery(parts: WorkerParts, metrics: Metrics, notify: () => void) {
  const { config, clock, time, logger, ids, workerId, keyring } = parts
  const { db } = parts.database
  const secrets = buildSecretCache(keyring, secretContextOf)
  const signingKeys = buildSigningKeyCache(keyring)
  const policy = buildAppPolicy(parts, { metrics, secrets, signingKeys })
  const onSettled = (settled: SettledAttempts) => {
    policy.onSettled(settled)
    if (settled.notices.length > 0) notify()
  }
  return {
    policy,
    pulls: {
      ...{ clock, ids, workerId, onSettled, enableApiEventQueue: config.enableApiEventQueue },
      ...{ secrets, signingKeys },
      userAgent: USER_AGENT,
      waits: buildPullWaits({
        clock,
        logger,
        listReady: (webhooks, now) => listReady(parts.requestDatabase.db, { webhooks, now }),
      }),
    },
    leaseEnder: buildLeaseEnder({
      ...{ db, clock, logger, workerId, onSettled, isTrusted: () => mayDelete(time) },
      settle: (ended) => policy.queue.settle(ended),
    }),
  }
}

function buildAppPolicy(
  parts: WorkerParts,
  { metrics, ...sealed }: { metrics: Metrics } & Pick<PullDeps, 'secrets' | 'signingKeys'>,
) {
  const { config, database, onCrashPoint } = parts
  return buildWebhookPolicy({
    ...parts,
    db: database.db,
    ...sealed,
    headers: buildHeaderCache(parts.keyring),
    userAgent: USER_AGENT,
    enableApiEventQueue: config.enableApiEventQueue,
    canSendMail: decideMailWay(config) !== 'none',
    concurrency: config.webhookConcurrency,
    perWebhook: config.webhookConcurrencyPerWebhook,
    onRecorded: (recorded, notices) => metrics.countAttempts(recorded, notices),
    ...(onCrashPoint && { onPoint: onCrashPoint, onRecording: () => onCrashPoint('during-record') }),
  })
}
