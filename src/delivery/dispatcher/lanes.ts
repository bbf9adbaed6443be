import { decideRoom } from './room.ts'

/** An attempt that takes longer than this leaves the fast lane, and its group with it (docs/contract/delivery.md#lanes). */
export const SLOW_AFTER_MS = 2_000

/**
 * A group with attempts in flight is late when none of them has ended for longer than this. Receivers that answer do so
 * in tens or hundreds of milliseconds; one that does not is detected long before it is slow.
 */
export const LATE_AFTER_MS = 250

/** Interval at which a wait for room checks the lanes. */
export const LOOK_MS = 50

/** Maximum time that counts between two checks: a stall of this process must not make every group late. */
const HEARD_MS = 2 * LOOK_MS

/** The lane of an attempt in flight. */
export interface LaneTicket {
  group: string
  startedAtMs: number
}

/** State of the lanes at an instant. */
export interface LaneRoom {
  fastSlots: number
  slowSlots: number
  slowGroups: string[]
  /** Late groups that get no slots now, because they hold slots that others need (`decideRoom`). */
  lateGroups: string[]
  inFlight: number
  byGroup: ReadonlyMap<string, number>
}

/**
 * The attempts in flight with their late and slow groups. An attempt that runs for more than 2 s stops counting against
 * the fast slots, so a group that hangs until its deadline takes none from those that answer; it is served from the
 * slow slots until one of its attempts ends promptly again. Before that, late groups count only while there is room for
 * the others. Times are arguments.
 */
export interface Lanes {
  enter(ticket: LaneTicket): void
  /** Ends an attempt; `endedAtMs` decides whether its group is prompt now. */
  leave(ticket: LaneTicket, endedAtMs: number): void
  /** Whether the end of an attempt of this group frees a slot that rows of the group may wait for. */
  isScarce(group: string, perGroup: number): boolean
  measure(nowMs: number): LaneRoom
  /** Whether there are enough free slots to be worth a claim statement: an eighth of all. */
  hasRoom(nowMs: number): boolean
  /** Whether slow groups may be served, although no fast slot is free. */
  hasSlowRoom(nowMs: number): boolean
}

/** Builds lanes with `concurrency` fast slots. */
export function buildLanes(concurrency: number): Lanes {
  const tickets = new Set<LaneTicket>()
  const byGroup = new Map<string, number>()
  /** Last end of an attempt of each group in flight, or the start of its first one, in `heardMs`. */
  const silentSinceMs = new Map<string, number>()
  const slow = new Set<string>()
  /** As of the last measurement. */
  let late = new Set<string>()
  /** Total time in which this process could read answers, and the time of the last check. */
  let heardMs = 0
  let heardAtMs = Number.NEGATIVE_INFINITY
  const hear = (nowMs: number) => {
    heardMs += Math.min(HEARD_MS, Math.max(0, nowMs - heardAtMs))
    heardAtMs = nowMs
  }

  function measure(nowMs: number): LaneRoom {
    hear(nowMs)
    for (const ticket of tickets) if (nowMs - ticket.startedAtMs > SLOW_AFTER_MS) slow.add(ticket.group)
    const silent: string[] = []
    const inFlight = { slow: 0, late: 0, answering: tickets.size }
    const move = (group: string, to: 'slow' | 'late') => {
      const count = byGroup.get(group) ?? 0
      inFlight[to] += count
      inFlight.answering -= count
    }
    for (const group of slow) move(group, 'slow')
    for (const [group, sinceMs] of silentSinceMs) {
      if (heardMs - sinceMs <= LATE_AFTER_MS || slow.has(group)) continue
      move(group, 'late')
      silent.push(group)
    }
    const { fastSlots, slowSlots, isCrowded } = decideRoom(concurrency, inFlight)
    const lateGroups = isCrowded ? silent : []
    late = new Set(lateGroups)
    return { fastSlots, slowSlots, slowGroups: [...slow], lateGroups, inFlight: tickets.size, byGroup }
  }

  return {
    enter: (ticket) => {
      hear(ticket.startedAtMs)
      tickets.add(ticket)
      const before = byGroup.get(ticket.group) ?? 0
      byGroup.set(ticket.group, before + 1)
      if (before === 0) silentSinceMs.set(ticket.group, heardMs)
    },
    leave: (ticket, endedAtMs) => {
      hear(endedAtMs)
      const { group, startedAtMs } = ticket
      tickets.delete(ticket)
      const left = (byGroup.get(group) ?? 1) - 1
      if (left > 0) {
        byGroup.set(group, left)
        silentSinceMs.set(group, heardMs)
      } else {
        byGroup.delete(group)
        silentSinceMs.delete(group)
      }
      if (endedAtMs - startedAtMs > SLOW_AFTER_MS) slow.add(group)
      else slow.delete(group)
    },
    isScarce: (group, perGroup) => slow.has(group) || late.has(group) || (byGroup.get(group) ?? 0) >= perGroup,
    measure,
    hasRoom: (nowMs) => {
      const { fastSlots, inFlight } = measure(nowMs)
      return inFlight === 0 || fastSlots >= Math.max(1, concurrency / 8)
    },
    hasSlowRoom: (nowMs) => {
      const { slowSlots, slowGroups } = measure(nowMs)
      return slowSlots > 0 && slowGroups.length > 0
    },
  }
}
