import { Problem } from '../../http/problem/problem.ts'
import type { DispatchStatus } from '../delivery/outcome.ts'

/** Facts for the decision on a replay. */
export interface ReplayQuestion {
  status: DispatchStatus
  /** Existing and active. */
  isWebhookActive: boolean
  /** An attempt of the row is in flight. */
  isInFlight: boolean
  /** A replay of the row waits for its POST. */
  isReplayWaiting: boolean
  /** Whether its event is stored: rows from before the release have none. */
  hasEvent: boolean
  /** Whether the caller said `confirm_duplicate`. */
  isConfirmed: boolean
}

export type ReplayRefusal = 'webhook_inactive' | 'not_confirmed' | 'under_way' | 'event_gone' | 'replay_waiting'

/** States whose event may arrive or have arrived: their replay must be confirmed (docs/contract/delivery.md#replay). */
const NEEDS_CONFIRMATION: readonly DispatchStatus[] = ['success', 'pending', 'retrying']

/** Decides on a replay (docs/contract/delivery.md#replay), of a single row and of each row of a bulk replay. Pure. */
export function decideReplay(question: ReplayQuestion): 'replay' | ReplayRefusal {
  if (!question.isWebhookActive) return 'webhook_inactive'
  if (!question.isConfirmed && NEEDS_CONFIRMATION.includes(question.status)) return 'not_confirmed'
  if (question.isInFlight) return 'under_way'
  if (!question.hasEvent) return 'event_gone'
  return question.isReplayWaiting ? 'replay_waiting' : 'replay'
}

/** The problem of a refusal. */
export function buildReplayProblem(refusal: ReplayRefusal, status: DispatchStatus): Problem {
  switch (refusal) {
    case 'webhook_inactive':
      return new Problem('webhook_inactive', 'The webhook is inactive or deleted. Activate it, then replay.')
    case 'not_confirmed':
      return new Problem(
        'duplicate_not_confirmed',
        `The row is ${status}: its event has arrived or is on its way. Send {"confirm_duplicate": true} to post it again.`,
      )
    case 'under_way':
      return new Problem('conflict', 'An attempt of this row is in flight. Replay it when that has ended.')
    case 'replay_waiting':
      return new Problem('conflict', 'A replay of this row waits for its POST already. Read the row to follow it.')
    case 'event_gone':
      return new Problem(
        'conflict',
        'The event of this row is no longer stored (an old row), so it cannot be posted again.',
      )
  }
}
