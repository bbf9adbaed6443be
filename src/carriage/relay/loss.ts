import type { LogEntry, LogState } from '../log/log.ts'
import type { RelayState } from './outbox.store.ts'

/** Difference between a log and its confirmed position. */
export type Loss = 'replaced' | 'behind'

/** A loss that was found. One that is not certain may be that of a leader that has not read its whole log. */
export interface FoundLoss {
  loss: Loss
  isCertain: boolean
  /** Whether events that came here by a move may be lost: how old they are is not known. */
  isAdopted: boolean
}

/**
 * Events recorded up to this long before the last stored one are published again: a recording may take some seconds.
 */
const MARGIN_MS = 300_000

/** Knowledge of a database about the log. */
export type KnownOfLog = Pick<
  RelayState,
  'incarnation' | 'sequence' | 'ownSequence' | 'ownEvent' | 'adoptedIncarnation' | 'adoptedSequence' | 'adoptedEvent'
>

/** Content of the log at the two places that its database knows. */
export interface KnownEntries {
  own: Pick<LogEntry, 'id'> | undefined
  adopted: Pick<LogEntry, 'id'> | undefined
}

/**
 * Compares a log with what its database knows of it. A log of another incarnation has none of it. One that ends earlier, or
 * has another message (`own`) or none at the place of the last one of this database, has lost its last messages: others may
 * have appended in their place. The same holds for the last message of a database that an account came from (`adopted`).
 * Undefined when it has all, or nothing was confirmed yet. Pure.
 */
export function decideLoss(
  known: KnownOfLog,
  state: Pick<LogState, 'incarnation' | 'sequence' | 'firstSequence'>,
  { own, adopted }: KnownEntries,
): FoundLoss | undefined {
  const { incarnation, sequence, ownSequence, ownEvent, adoptedIncarnation, adoptedSequence, adoptedEvent } = known
  const ofOwn = compare({ incarnation, sequence: ownSequence, event: ownEvent, last: sequence }, state, own)
  const there = { incarnation: adoptedIncarnation, sequence: adoptedSequence, event: adoptedEvent, last: 0 }
  const ofAdopted = compare(there, state, adopted)
  const found = [ofOwn, ofAdopted].filter((each) => each !== undefined)
  const [first] = found.toSorted((a, b) => rankOf(b) - rankOf(a))
  return first && { ...first, isAdopted: ofAdopted !== undefined }
}

type Difference = Omit<FoundLoss, 'isAdopted'>

const rankOf = ({ loss, isCertain }: Difference) => Number(loss === 'replaced') * 2 + Number(isCertain)

function compare(
  known: { incarnation: string | null; sequence: number | null; event: string | null; last: number },
  state: Pick<LogState, 'incarnation' | 'sequence' | 'firstSequence'>,
  entry: Pick<LogEntry, 'id'> | undefined,
): Difference | undefined {
  if (known.incarnation === null) return undefined
  if (known.incarnation !== state.incarnation) return { loss: 'replaced', isCertain: true }
  // Messages that age or size has removed cannot be compared.
  const isKept = known.sequence !== null && known.sequence >= state.firstSequence
  if (isKept && entry && entry.id !== known.event) return { loss: 'behind', isCertain: true }
  return state.sequence < known.last || (isKept && !entry) ? { loss: 'behind', isCertain: false } : undefined
}

/** The instant from which events are published again: shortly before the last own one that the log has. Pure. */
export function decideRepublishFrom(
  loss: Loss,
  { lastAt, now, maxAgeMs }: { lastAt: Date | undefined; now: Date; maxAgeMs: number },
): Date {
  const oldest = new Date(now.getTime() - maxAgeMs)
  if (loss === 'replaced' || !lastAt) return oldest
  return new Date(Math.max(lastAt.getTime() - MARGIN_MS, oldest.getTime()))
}
