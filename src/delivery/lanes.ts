/** An attempt that takes longer than this leaves the fast lane, and its group with it (docs/contract/delivery.md#lanes). */
export const SLOW_AFTER_MS = 2_000

/** What part of all slots slow groups may take. */
const SLOW_SHARE = 0.25

/** POSTs in flight at most, slow ones included, as a multiple of the concurrency. A bound on sockets and memory. */
const HARD_LIMIT_FACTOR = 4

/** Where an attempt in flight stands. */
export interface LaneTicket {
  group: string
  startedAtMs: number
}

/**
 * Who is in flight, and who is slow. An attempt that runs for more than 2 s stops counting against the fast slots, so a
 * group that hangs until its deadline takes nothing from those that answer; it is served from the slow slots until one of
 * its attempts ends promptly again. Decides by the times it is given.
 */
export interface Lanes {
  enter(ticket: LaneTicket): void
  /** Ends an attempt; `endedAtMs` tells whether its group is prompt now. */
  leave(ticket: LaneTicket, endedAtMs: number): void
  /** Whether the end of an attempt of this group makes room that rows of its group may wait for. */
  isScarce(group: string, perGroup: number): boolean
  measure(nowMs: number): {
    fastSlots: number
    slowSlots: number
    slowGroups: string[]
    inFlight: number
    byGroup: ReadonlyMap<string, number>
  }
}

/** Builds lanes with `concurrency` fast slots. */
export function buildLanes(concurrency: number): Lanes {
  const tickets = new Set<LaneTicket>()
  const byGroup = new Map<string, number>()
  const slow = new Set<string>()
  const slowLimit = Math.max(1, Math.floor(concurrency * SLOW_SHARE))
  return {
    enter: (ticket) => {
      tickets.add(ticket)
      byGroup.set(ticket.group, (byGroup.get(ticket.group) ?? 0) + 1)
    },
    leave: (ticket, endedAtMs) => {
      tickets.delete(ticket)
      const left = (byGroup.get(ticket.group) ?? 1) - 1
      if (left > 0) byGroup.set(ticket.group, left)
      else byGroup.delete(ticket.group)
      if (endedAtMs - ticket.startedAtMs > SLOW_AFTER_MS) slow.add(ticket.group)
      else slow.delete(ticket.group)
    },
    isScarce: (group, perGroup) => slow.has(group) || (byGroup.get(group) ?? 0) >= perGroup,
    measure: (nowMs) => {
      for (const ticket of tickets) if (nowMs - ticket.startedAtMs > SLOW_AFTER_MS) slow.add(ticket.group)
      let slowInFlight = 0
      for (const ticket of tickets) if (slow.has(ticket.group)) slowInFlight += 1
      const room = Math.max(0, concurrency * HARD_LIMIT_FACTOR - tickets.size)
      return {
        fastSlots: Math.min(room, Math.max(0, concurrency - (tickets.size - slowInFlight))),
        slowSlots: Math.min(room, Math.max(0, slowLimit - slowInFlight)),
        slowGroups: [...slow],
        inFlight: tickets.size,
        byGroup,
      }
    },
  }
}
