import { NIL_ID } from '../../base/id.ts'
import type { ArchivedDay, Position } from './manifest.ts'

const DAY_MS = 86_400_000

/** A pass over the rows of a day. */
export interface DayPass {
  /** Deliveries that ended from here on; null: any. */
  since: string | null
  /** Deliveries that ended before this; undefined: before an instant that is chosen now. */
  through: string | undefined
  after: Position
  /** Whether an interrupted pass goes on. */
  isResumed: boolean
  /** Number of the next file. */
  number: number
}

/** The bounds of a day of UTC. */
export function boundsOf(day: string): { start: Date; end: Date } {
  const start = new Date(`${day}T00:00:00Z`)
  return { start, end: new Date(start.getTime() + DAY_MS) }
}

/** Work left of a day; undefined for nothing. `replayedAt`: end of the last replay of it. Pure. */
export function planDay(
  day: string,
  known: ArchivedDay | undefined,
  replayedAt: Date | undefined,
): DayPass | undefined {
  const first = { at: boundsOf(day).start.toISOString(), id: NIL_ID }
  const number = known?.files.length ?? 0
  if (!known) return { since: null, through: undefined, after: first, isResumed: false, number }
  const { since, through, position } = known
  if (position) return { since, through, after: position, isResumed: true, number }
  const isReplayed = replayedAt !== undefined && replayedAt.getTime() >= new Date(through).getTime()
  if (known.is_closed && !isReplayed) return undefined
  return { since: through, through: undefined, after: first, isResumed: false, number }
}
