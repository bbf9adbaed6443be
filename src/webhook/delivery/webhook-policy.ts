import type { Logger } from 'pino'
import type { ClaimRequest, DeliveryPolicy } from '../../delivery/policy.ts'
import { describeAttempt } from '../../delivery/post/attempt-line.ts'
import { endLost } from '../../delivery/post/lost-attempt.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type AttemptDeps, makeAttempt } from './attempt.ts'
import { claimDispatches, findLostClaims, findNextDueAt, releaseClaims } from './claim.store.ts'
import { type ClaimedDispatch, readClaimedDispatch } from './claimed-work.ts'
import type { EndedAttempt, RecordedAttempt, WebhookNotice } from './outcome.ts'
import { buildWebhookFanOut, buildWebhookRouting } from './routing.store.ts'
import { type SettleDeps, type SettledAttempts, settleAttempts } from './settle.ts'

/** Age of a claim at which its attempt may no longer start within its count (docs/contract/webhooks.md#throttle). */
const LATE_MS = 500

export interface WebhookPolicyDeps extends AttemptDeps, SettleDeps {
  db: Database
  logger: Logger
  /** Maximum number of POSTs in flight in this process (WEBHOOK_CONCURRENCY). */
  concurrency: number
  /** Maximum number of POSTs in flight for one webhook, over all processes (WEBHOOK_CONCURRENCY_PER_WEBHOOK). */
  perWebhook: number
  /** Maximum number of webhooks of an event in one statement. Default: 1,000. */
  rowsOfEvent?: number
  /** Receives each recorded attempt and notice, for metrics. */
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
      claim: (request) => claimInTime(deps, request),
      settle: (ended) => settleAttempts(deps, db, ended),
      release: (claims, now, dueAt) => releaseClaims(db, claims, now, dueAt),
      reclaim: async (request) => {
        const claims = await findLostClaims(db, request)
        return claims.map((claim) => endLost(claim, request.now))
      },
      nextDueAt: (room) => findNextDueAt(db, room),
    },
    buildRouting: (request) => buildWebhookRouting(request, deps.rowsOfEvent),
    buildFanOut: buildWebhookFanOut,
    readWork: readClaimedDispatch,
    attempt: (work, signal) => makeAttempt(deps, work, signal),
    listHeldBack: ({ heldBack }) => heldBack,
    onSettled: ({ recorded, notices }) => {
      for (const attempt of recorded) logAttempt(deps.logger, attempt)
      for (const { webhook, event, consecutiveFailures } of notices)
        deps.logger.warn(
          { webhook, event, consecutive_failures: consecutiveFailures },
          `${event}: see docs/operations.md, failing webhooks`,
        )
      deps.onRecorded?.(recorded, notices)
    },
  }
}

/**
 * Claims due dispatches. Those of a webhook with a limit a second count from the time of the request: where the answer
 * came later than `LATE_MS`, after a stall of process or database, they are released, and start under a later count.
 */
async function claimInTime({ db, clock }: WebhookPolicyDeps, request: ClaimRequest): Promise<ClaimedDispatch[]> {
  const claimed = await claimDispatches(db, request)
  if (clock.now() - request.now.getTime() <= LATE_MS) return claimed
  const late = claimed.filter((work) => work.isLimited)
  await releaseClaims(db, late, new Date(clock.now()))
  return claimed.filter((work) => !work.isLimited)
}

function logAttempt(logger: Logger, recorded: RecordedAttempt): void {
  const { attempt, decision } = recorded
  const level = decision.lastError === null ? 'info' : 'warn'
  if (!logger.isLevelEnabled(level)) return
  const ids = { dispatch: attempt.id, webhook: attempt.webhook, event: attempt.event }
  logger[level](describeAttempt(recorded, ids), 'attempt')
}
