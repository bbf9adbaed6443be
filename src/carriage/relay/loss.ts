import type { LogEntry, LogState } from '../log/log.ts'
import type { RelayState } from './outbox.store.ts'

/** Difference between a log and its confirmed position. */
export type Loss = 'replaced' | 'behind'

/**
 * Events are recorded before they reach the outbox, by a transaction that may take some seconds: those recorded up to
 * this long before the last stored one are published again as well.
 */
const MARGIN_MS = 300_000

/**
 * Compares a log with its confirmed position: a log of another incarnation has none of it, and one that ends earlier
 * has lost its last messages. Undefined when it has all, or nothing was confirmed yet. Pure.
 */
export function decideLoss(
  known: Pick<RelayState, 'incarnation' | 'sequence'>,
  state: Pick<LogState, 'incarnation' | 'sequence'>,
): Loss | undefined {
  if (known.incarnation === null) return undefined
  if (known.incarnation !== state.incarnation) return 'replaced'
  return state.sequence < known.sequence ? 'behind' : undefined
}

/**
 * The instant from which events are published again after a loss: shortly before the last stored event; without one, all
 * events that the log would still hold. Pure.
 */
export function decideRepublishFrom(
  loss: Loss,
  { last, now, maxAgeMs }: { last: Pick<LogEntry, 'recordedAt'> | undefined; now: Date; maxAgeMs: number },
): Date {
  const oldest = new Date(now.getTime() - maxAgeMs)
  if (loss === 'replaced' || !last) return oldest
  return new Date(Math.max(last.recordedAt.getTime() - MARGIN_MS, oldest.getTime()))
}
