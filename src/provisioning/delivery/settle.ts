import type { IdMaker, UserId } from '../../base/id.ts'
import type { Random } from '../../base/random.ts'
import { beginIncidents, endIncidents } from '../../delivery/incident/alert.ts'
import { type Claim, nameClaim } from '../../delivery/policy.ts'
import type { PostOutcome } from '../../delivery/post/signed-post.ts'
import { type EventDraft, recordEvents } from '../../event/occurrence/event.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import type { DeliveryId } from '../claim/claimed-delivery.ts'
import { chooseWait, type DeliveryDecision, type DeliveryTrigger, decideDelivery } from '../claim/outcome.ts'
import type { TargetId } from '../target/target.store.ts'
import { type DeliveryChange, lockHeldClaims, settleDeliveries } from './settle.store.ts'

/** An ended attempt. */
export interface EndedDelivery extends Claim, PostOutcome {
  id: DeliveryId
  attempt: number
  trigger: DeliveryTrigger
  target: TargetId
  /** Generation of the target at the claim; null where it is no longer known. */
  generation: number | null
  user: UserId
  /** The event type of the delivery. */
  type: string
  workerId: string
  /** 32 hex digits; null when the attempt was lost with its process. */
  traceId: string | null
  startedAt: Date
  endedAt: Date
  /** See `DeliveryChange`. */
  remoteId?: string | null
  /** See `PushOutcome`. */
  retryAfterMs?: number
}

/** Decision on an attempt, for its log line. */
export interface RecordedDelivery {
  attempt: EndedDelivery
  decision: DeliveryDecision
  /** False when the claim was no longer valid: the result is void. */
  isRecorded: boolean
}

/** Recorded results of some attempts. */
export interface SettledDeliveries {
  recorded: RecordedDelivery[]
}

export interface SettleDeliveryDeps {
  ids: IdMaker
  random: Random
  enableApiEventQueue: boolean
  /** Runs inside the transaction; crash tests kill the process there. */
  onRecording?: () => void
}

/** Records ended attempts, with an event for each dead letter, in one transaction. */
export async function settleEndedDeliveries(
  deps: SettleDeliveryDeps,
  db: Database,
  ended: readonly EndedDelivery[],
): Promise<SettledDeliveries> {
  const waits = new Map(ended.map((attempt) => [nameClaim(attempt), chooseWait(deps.random, attempt.attempt)]))
  return inTransaction(db, async (tx) => {
    const held = new Map((await lockHeldClaims(tx, ended)).map((item) => [nameClaim(item), item]))
    const recorded = ended.map((attempt): RecordedDelivery => {
      // For a repeated claim the first result counts.
      const claim = held.get(nameClaim(attempt))
      held.delete(nameClaim(attempt))
      const decision = decideDelivery({
        ...attempt,
        attempts: attempt.attempt,
        waitMs: waits.get(nameClaim(attempt)) ?? 0,
        isTargetDeleted: claim?.isTargetDeleted ?? false,
        keepsSchedule: claim?.keepsSchedule ?? false,
      })
      return { attempt, decision, isRecorded: claim !== undefined }
    })
    const valid = recorded.filter((result) => result.isRecorded)
    await settleDeliveries(tx, valid.map(toChange))
    const [first] = valid
    if (first) await report(deps, tx, valid, first.attempt.endedAt)
    deps.onRecording?.()
    return { recorded }
  })
}

/** The kinds of incident begun by a failed end for its target, and ended by the next accepted delivery. */
const INCIDENTS = [
  {
    incident: 'provisioning-dead-letter',
    status: 'dead_letter',
    what: 'has not reached',
    how: ' with all eight attempts',
  },
  { incident: 'provisioning-refused', status: 'failed', what: 'was refused by', how: ', and is not sent again' },
] as const

/** Records the events of dead letters, and the incidents that begin and end. */
async function report(
  deps: SettleDeliveryDeps,
  tx: Database,
  recorded: readonly RecordedDelivery[],
  now: Date,
): Promise<void> {
  const targetsOf = (status: string) => [
    ...new Set(recorded.filter(({ decision }) => decision.status === status).map(({ attempt }) => attempt.target)),
  ]
  const delivered = targetsOf('delivered')
  for (const { incident, status, what, how } of INCIDENTS) {
    const ended = targetsOf(status)
    await endIncidents(tx, { incident, subjects: delivered.filter((target) => !ended.includes(target)), now })
    const begun = ended.map((target) => ({
      incident,
      subject: target,
      summary: `A change of a user ${what} the provisioning target ${target}${how}.`,
      url: `/api/v3/provisioning/target/${target}`,
    }))
    await beginIncidents(deps, tx, begun, now)
  }
  await recordEvents(deps, tx, recorded.flatMap(draftDeadLetter), now)
}

function toChange({ attempt, decision }: RecordedDelivery): DeliveryChange {
  const { result, workerId: worker, remoteId } = attempt
  const { status, nextAttemptAt, lastError: errorClass } = decision
  const statusCode = 'statusCode' in result ? result.statusCode : null
  return { ...attempt, worker, remoteId, status, nextAttemptAt, statusCode, errorClass }
}

function draftDeadLetter({ attempt, decision }: RecordedDelivery): EventDraft[] {
  if (decision.status !== 'dead_letter') return []
  return [
    {
      type: 'provisioning-delivery.dead-letter',
      accountScope: 'none',
      account: null,
      resource: 'provisioning-delivery',
      action: 'dead-letter',
      resourceId: attempt.id,
      url: `/api/v3/provisioning/delivery/${attempt.id}`,
    },
  ]
}
