import type { Clock } from '../../base/clock.ts'

/** Interval between looks through the whole queue. */
const WHOLE_EVERY_MS = 1_000

/** Looks between two looks through the whole queue begin this long before now. */
const RECENT_MS = 1_000

/** Below every event's id: a look through the whole queue. */
export const FIRST = '00000000-0000-0000-0000-000000000000'

/** A look through the queue of events. */
export interface QueueLook {
  /** Events above this id are taken. */
  after: string
  /** Whether it begins at the first event. */
  isWhole: boolean
}

/** Where each look of a router through the queue begins: rows leave it at one end, and what is left of them is slow to read. */
export interface QueueLooks {
  begin(): QueueLook
  /** Ends a look that took a batch. Returns whether the queue may hold more that this router has not seen. */
  end(look: QueueLook, batch: { isFull: boolean; last: string | null }): boolean
  /** Whether the next look is one through the whole queue. */
  isWholeDue(): boolean
  /** When it is due, in milliseconds from now. */
  untilWholeMs(): number
}

/**
 * Builds it. A look begins at the end of a full batch before it, else a second before now, and once a second at the first
 * event: other processes hold events of a backlog that this one passes, and what they leave is behind its back. So the
 * end of a backlog is worth a whole look at once.
 */
export function buildQueueLooks(clock: Pick<Clock, 'now'>): QueueLooks {
  let wholeAtMs = Number.NEGATIVE_INFINITY
  let after = FIRST
  let hasBacklog = false
  const isWholeDue = () => Math.abs(clock.now() - wholeAtMs) >= WHOLE_EVERY_MS
  return {
    begin: () => {
      const isWhole = isWholeDue()
      if (isWhole) wholeAtMs = clock.now()
      return { after: isWhole ? FIRST : after, isWhole }
    },
    end: ({ isWhole }, { isFull, last }) => {
      after = isFull && last ? last : firstIdAt(clock.now() - RECENT_MS)
      const isBacklogEnd = hasBacklog && !isFull && !isWhole
      hasBacklog = isFull
      if (isBacklogEnd) wholeAtMs = Number.NEGATIVE_INFINITY
      return isFull || isBacklogEnd
    },
    isWholeDue,
    untilWholeMs: () => Math.max(0, WHOLE_EVERY_MS - Math.abs(clock.now() - wholeAtMs)),
  }
}

/** The lowest id of an event that is made at this instant (RFC 9562, 5.7). */
function firstIdAt(nowMs: number): string {
  const hex = Math.max(0, nowMs).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}
