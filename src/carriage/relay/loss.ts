import type { LogEntry, LogState } from '../log/log.ts'
import type { RelayState } from './outbox.store.ts'

/** Difference between a log and its confirmed position. */
export type Loss = 'replaced' | 'behind'

/** A loss that was found. One that is not certain may be that of a leader that has not read its whole log. */
export interface FoundLoss {
  loss: Loss
  isCertain: boolean
}

/**
 * Events are recorded before they reach the outbox, by a transaction that may take some seconds: those recorded up to
 * this long before the last stored one are published again as well.
 */
const MARGIN_MS = 300_000

/** What a database knows of the log. */
export type KnownOfLog = Pick<RelayState, 'incarnation' | 'sequence' | 'ownSequence' | 'ownEvent'>

/**
 * Compares a log with what its database knows of it. A log of another incarnation has none of it. One that ends earlier, or
 * has another message (`own`) or none at the place of the last one of this database, has lost its last messages: others may
 * have appended in their place. Undefined when it has all, or nothing was confirmed yet. Pure.
 */
export function decideLoss(
  known: KnownOfLog,
  state: Pick<LogState, 'incarnation' | 'sequence' | 'firstSequence'>,
  own: Pick<LogEntry, 'id'> | undefined,
): FoundLoss | undefined {
  const { incarnation, sequence, ownSequence, ownEvent } = known
  if (incarnation === null) return undefined
  if (incarnation !== state.incarnation) return { loss: 'replaced', isCertain: true }
  // What age or size has removed cannot be compared.
  const isKept = ownSequence !== null && ownSequence >= state.firstSequence
  if (isKept && own && own.id !== ownEvent) return { loss: 'behind', isCertain: true }
  return state.sequence < sequence || (isKept && !own) ? { loss: 'behind', isCertain: false } : undefined
}

/**
 * The instant from which events are published again after a loss: shortly before the last event of this database that the
 * log still has; without one, all events that the log would still hold. Pure.
 */
export function decideRepublishFrom(
  loss: Loss,
  { lastAt, now, maxAgeMs }: { lastAt: Date | undefined; now: Date; maxAgeMs: number },
): Date {
  const oldest = new Date(now.getTime() - maxAgeMs)
  if (loss === 'replaced' || !lastAt) return oldest
  return new Date(Math.max(lastAt.getTime() - MARGIN_MS, oldest.getTime()))
}
