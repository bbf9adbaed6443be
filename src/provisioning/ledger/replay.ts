import { notFound, Problem } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { DeliveryStatus } from '../claim/outcome.ts'
import {
  type DeliveryDetail,
  type DeliveryRecord,
  type DeliveryReplayFacts,
  findDelivery,
  lockForReplay,
  scheduleDeliveryReplay,
} from './delivery.store.ts'

/** Dependencies of the operations on deliveries. */
export interface DeliveryDeps {
  enableApiEventQueue: boolean
}

/** The delivery with this id and its attempts, or a 404. */
export async function loadDelivery(db: Database, id: string): Promise<DeliveryDetail> {
  const found = await findDelivery(db, { id })
  if (!found) throw notFound('delivery')
  return found
}

/** Reason of a refused replay. */
type ReplayRefusal = 'target_inactive' | 'superseded' | 'under_way' | 'waits' | 'not_confirmed'

/** Decides on the replay of a delivery (docs/contract/provisioning.md#replay-of-a-delivery). Pure. */
function decideDeliveryReplay(
  { status, isTargetActive, isInFlight, isSuperseded, isReplayWaiting }: DeliveryReplayFacts,
  isConfirmed: boolean,
): 'replay' | ReplayRefusal {
  if (!isTargetActive) return 'target_inactive'
  if (status === 'pending') return 'waits'
  // A waiting delivery is the first of its user, so a later change does not supersede it.
  if (status !== 'retrying' && isSuperseded) return 'superseded'
  if (!isConfirmed && (status === 'delivered' || status === 'retrying')) return 'not_confirmed'
  if (isInFlight) return 'under_way'
  return isReplayWaiting ? 'waits' : 'replay'
}

function buildReplayProblem(refusal: ReplayRefusal, status: DeliveryStatus): Problem {
  switch (refusal) {
    case 'target_inactive':
      return new Problem('target_inactive', 'The target is inactive or deleted. Activate it, then replay.')
    case 'superseded':
      return new Problem(
        'delivery_superseded',
        'A later change of this user was queued for the target, so this one is out of date. Replay the latest delivery of the user, or reconcile the target.',
      )
    case 'not_confirmed':
      return new Problem(
        'duplicate_not_confirmed',
        `The delivery is ${status}: it may have arrived. Send {"confirm_duplicate": true} to make it again.`,
      )
    case 'under_way':
      return new Problem('conflict', 'An attempt for this user is in flight. Replay the delivery when that has ended.')
    case 'waits':
      return new Problem('conflict', 'The delivery waits for its attempt already. Read it to follow it.')
  }
}

/**
 * Makes an attempt of a delivery due now: an extra one of an ended delivery, without automatic retries; the next one of
 * a waiting delivery, whose schedule then continues. `attempts` continues. Throws 404, 409 `target_inactive`,
 * `delivery_superseded`, `duplicate_not_confirmed`, or `conflict` when it waits, an attempt is in flight or the event
 * queue is off.
 */
export async function replayDelivery(
  deps: DeliveryDeps,
  db: Database,
  id: string,
  input: { confirmDuplicate: boolean; now: Date },
): Promise<DeliveryRecord> {
  const found = await lockForReplay(db, { id })
  if (!found) throw notFound('delivery')
  const { delivery, facts } = found
  const verdict = decideDeliveryReplay(facts, input.confirmDuplicate)
  if (verdict !== 'replay') throw buildReplayProblem(verdict, delivery.status)
  checkQueueOn(deps)
  await scheduleDeliveryReplay(db, delivery, input.now)
  return { ...delivery, status: 'retrying', nextAttemptAt: input.now, updatedAt: input.now }
}

/** Nothing is sent while the event queue is off (docs/contract/events.md#event-queue-switch). Throws 409 `conflict`. */
export function checkQueueOn(deps: DeliveryDeps): void {
  if (deps.enableApiEventQueue) return
  throw new Problem('conflict', 'ENABLE_API_EVENT_QUEUE is false, so nothing leaves the service. Set it to true first.')
}
