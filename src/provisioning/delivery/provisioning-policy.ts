import type { Logger } from 'pino'
import type { DeliveryPolicy, RoutingPart } from '../../delivery/policy.ts'
import { describeAttempt } from '../../delivery/post/attempt-line.ts'
import { endLost } from '../../delivery/post/lost-attempt.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type ClaimedDelivery, readClaimedDelivery } from '../claim/claimed-delivery.ts'
import { attemptDelivery, type DeliveryAttemptDeps } from './attempt.ts'
import { claimDeliveries, findLostDeliveries, findNextDeliveryAt, releaseDeliveries } from './claim.store.ts'
import {
  type EndedDelivery,
  type RecordedDelivery,
  type SettleDeliveryDeps,
  type SettledDeliveries,
  settleEndedDeliveries,
} from './settle.ts'

/** Dependencies of the delivery to targets. */
export interface ProvisioningPolicyDeps extends DeliveryAttemptDeps, SettleDeliveryDeps {
  db: Database
  logger: Logger
  /** Maximum number of attempts in flight in this process. */
  concurrency: number
  /** Attempts in flight for one target at most, over all processes. */
  perTarget: number
  /** Receives each recorded attempt, for metrics and alerts. */
  onRecorded?: (recorded: readonly RecordedDelivery[]) => void
}

/** Builds the delivery to targets: changes of users, grouped by target, those of one user one after the other. */
export function buildProvisioningPolicy(
  deps: ProvisioningPolicyDeps,
): DeliveryPolicy<ClaimedDelivery, EndedDelivery, SettledDeliveries> {
  const { db } = deps
  return {
    name: 'provisioning',
    concurrency: deps.concurrency,
    perGroup: deps.perTarget,
    queue: {
      claim: (request) => claimDeliveries(db, request),
      settle: (ended) => settleEndedDeliveries(deps, db, ended),
      release: (claims, now, dueAt) => releaseDeliveries(db, claims, now, dueAt),
      reclaim: async (request) => {
        const claims = await findLostDeliveries(db, request)
        return claims.map((claim) => ({ ...endLost(claim, request.now), generation: null }))
      },
      nextDueAt: (room) => findNextDeliveryAt(db, room),
    },
    buildRouting: buildNoRouting,
    readWork: readClaimedDelivery,
    attempt: (work, signal) => attemptDelivery(deps, work, signal),
    onSettled: ({ recorded }) => {
      for (const attempt of recorded) logAttempt(deps.logger, attempt)
      deps.onRecorded?.(recorded.filter((result) => result.isRecorded))
    },
  }
}

/**
 * Nothing is routed to targets: the transaction that changes the user writes their deliveries
 * (docs/decisions/0022-provisioning-queued-with-the-change.md). In a router this policy writes nothing.
 */
function buildNoRouting(): RoutingPart {
  const text = `
    provisioning_opened as (select null::uuid as id where false),
    provisioning_work as (select null::json as work where false),
    provisioning_next as (select null::timestamptz as due_at where false)`
  return { matched: 'select document_id from routed where false', written: { name: 'provisioning', text, values: [] } }
}

/** The one line of an attempt. */
function logAttempt(logger: Logger, recorded: RecordedDelivery): void {
  const { attempt, decision } = recorded
  const ids = { delivery: attempt.id, target: attempt.target, user: attempt.user, event: attempt.type }
  const line = describeAttempt(recorded, ids)
  if (recorded.isRecorded && decision.status === 'dead_letter')
    logger.error(line, 'provisioning dead letter: see docs/operations.md, dead letters')
  else if (recorded.isRecorded && decision.status === 'failed')
    logger.warn(line, 'provisioning delivery refused: see docs/operations.md, refused deliveries')
  else if (decision.lastError === null) logger.info(line, 'provisioning attempt')
  else logger.warn(line, 'provisioning attempt')
}
