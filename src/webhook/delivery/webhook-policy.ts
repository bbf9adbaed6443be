import type { Logger } from 'pino'
import type { DeliveryPolicy } from '../../delivery/policy.ts'
import { LEASE_MS } from '../../delivery/worker-lease.ts'
import type { Database } from '../../postgres/database.ts'
import { type AttemptDeps, makeAttempt } from './attempt.ts'
import { claimDispatches, findLostClaims, findNextDueAt, type LostClaim, releaseClaims } from './claim.store.ts'
import { type ClaimedDispatch, readClaimedDispatch } from './claimed-work.ts'
import { buildWebhookRouting } from './routing.store.ts'
import {
  type EndedAttempt,
  type RecordedAttempt,
  type SettleDeps,
  type SettledAttempts,
  settleAttempts,
  type WebhookNotice,
} from './settle.ts'

/** What the delivery of webhooks uses. */
export interface WebhookPolicyDeps extends AttemptDeps, SettleDeps {
  db: Database
  logger: Logger
  /** POSTs in flight in this process at most (WEBHOOK_CONCURRENCY). */
  concurrency: number
  /** POSTs in flight for one webhook at most, over all processes (WEBHOOK_CONCURRENCY_PER_WEBHOOK). */
  perWebhook: number
  /** Gets each recorded attempt and notice, for metrics. */
  onRecorded?: (recorded: readonly RecordedAttempt[], notices: readonly WebhookNotice[]) => void
}

/** Builds the delivery of webhooks: dispatches, grouped by webhook, each attempt one signed POST. */
export function buildWebhookPolicy(
  deps: WebhookPolicyDeps,
): DeliveryPolicy<ClaimedDispatch, EndedAttempt, SettledAttempts> {
  const { db } = deps
  return {
    name: 'webhook',
    concurrency: deps.concurrency,
    perGroup: deps.perWebhook,
    queue: {
      claim: (request) => claimDispatches(db, request),
      settle: (ended) => settleAttempts(deps, db, ended),
      release: (claims, now) => releaseClaims(db, claims, now),
      reclaim: async (request) => {
        const claims = await findLostClaims(db, request)
        return claims.map((one) => toInterrupted(one, request.now))
      },
      nextDueAt: (room) => findNextDueAt(db, room),
    },
    buildRouting: buildWebhookRouting,
    readWork: readClaimedDispatch,
    attempt: (work, signal) => makeAttempt(deps, work, signal),
    onSettled: ({ recorded, notices }) => {
      for (const one of recorded) logAttempt(deps.logger, one)
      for (const { webhook, event, consecutiveFailures } of notices)
        deps.logger.warn(
          { webhook, event, consecutive_failures: consecutiveFailures },
          `${event}: see docs/operations.md, failing webhooks`,
        )
      deps.onRecorded?.(recorded, notices)
    },
  }
}

function toInterrupted(claim: LostClaim, now: Date): EndedAttempt {
  return {
    ...claim,
    traceId: null,
    endedAt: now,
    // How long it really ran is not known; never longer than its claim held.
    durationMs: Math.min(LEASE_MS, Math.max(0, now.getTime() - claim.startedAt.getTime())),
    result: { errorClass: 'interrupted' },
    responseExcerpt: null,
    responseHeaders: null,
    timings: null,
  }
}

/** The one line of an attempt: ids first, the decision included (docs/contract/api.md#log-lines). Never a body or a signature. */
function logAttempt(logger: Logger, { attempt, decision, isRecorded }: RecordedAttempt): void {
  const isSuccess = decision.lastError === null
  if (!logger.isLevelEnabled(isSuccess ? 'info' : 'warn')) return
  const line = {
    trace_id: attempt.traceId,
    dispatch: attempt.id,
    webhook: attempt.webhook,
    event: attempt.event,
    attempt: attempt.attempt,
    trigger: attempt.trigger,
    worker: attempt.workerId,
    status_code: 'statusCode' in attempt.result ? attempt.result.statusCode : null,
    error: decision.lastError,
    duration_ms: Math.round(attempt.durationMs),
    status: decision.status,
    next_attempt_at: decision.nextAttemptAt?.toISOString() ?? null,
    recorded: isRecorded,
  }
  if (isSuccess) logger.info(line, 'attempt')
  else logger.warn(line, 'attempt')
}
