import type { Clock } from '../../base/clock.ts'
import { NIL_ID } from '../../base/id.ts'

const WHOLE_EVERY_MS = 1_000

/** Reads in between start at events this old. */
const RECENT_MS = 1_000

/** Below every event's id: a read of the whole queue. */
export const FIRST = NIL_ID

export interface QueueLook {
  /** Events above this id are taken. */
  after: string
  /** Whether it starts at the first event. */
  isWhole: boolean
}

/** Start of each read of the queue by a router: rows leave it at one end, and dead rows there are slow to read. */
export interface QueueLooks {
  begin(): QueueLook
  /** Ends a read that took a batch. Returns whether the queue may have more events that this router has not seen. */
  end(look: QueueLook, batch: { isFull: boolean; last: string | null }): boolean
  /** Whether the next read covers the whole queue. */
  isWholeDue(): boolean
  /** Its due time, in milliseconds from now. */
  untilWholeMs(): number
}

/**
 * Builds it. A read starts after the previous full batch, else at events a second old, and once a second at the first
 * event: other processes lock events of a backlog that this one skips, and events that they leave are behind its
 * position. So the end of a backlog triggers a read of the whole queue.
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

/** The lowest id of an event created at this instant (RFC 9562, 5.7). */
function firstIdAt(nowMs: number): string {
  const hex = Math.max(0, nowMs).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}
