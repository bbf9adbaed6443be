import type { WebhookId } from '../id.ts'

/** An attempt that takes longer than this leaves the fast lane, and its webhook with it (docs/contract/delivery.md#lanes). */
export const SLOW_AFTER_MS = 2_000

/** What part of all places slow webhooks may take. */
const SLOW_SHARE = 0.25

/** POSTs in flight at most, slow ones included, as a multiple of the concurrency. A bound on sockets and memory. */
const HARD_LIMIT_FACTOR = 4

/** Where an attempt in flight stands. */
export interface LaneTicket {
  webhook: WebhookId
  startedAtMs: number
}

/**
 * Who is in flight, and who is slow. An attempt that runs for more than 2 s stops counting against the fast places, so a
 * webhook that hangs until its deadline takes nothing from those that answer; its webhook is served from the slow places
 * until an attempt of it ends promptly again. Decides by the times it is given.
 */
export interface Lanes {
  enter(ticket: LaneTicket): void
  /** Ends an attempt; `endedAtMs` tells whether its webhook is prompt now. */
  leave(ticket: LaneTicket, endedAtMs: number): void
  /** Free places now, and the webhooks that are slow. */
  measure(nowMs: number): { fastPlaces: number; slowPlaces: number; slowWebhooks: WebhookId[]; inFlight: number }
}

/** Builds lanes with `concurrency` fast places. */
export function buildLanes(concurrency: number): Lanes {
  const tickets = new Set<LaneTicket>()
  const slow = new Set<WebhookId>()
  const slowLimit = Math.max(1, Math.floor(concurrency * SLOW_SHARE))
  return {
    enter: (ticket) => {
      tickets.add(ticket)
    },
    leave: (ticket, endedAtMs) => {
      tickets.delete(ticket)
      if (endedAtMs - ticket.startedAtMs > SLOW_AFTER_MS) slow.add(ticket.webhook)
      else slow.delete(ticket.webhook)
    },
    measure: (nowMs) => {
      for (const ticket of tickets) if (nowMs - ticket.startedAtMs > SLOW_AFTER_MS) slow.add(ticket.webhook)
      let slowUnderWay = 0
      for (const ticket of tickets) if (slow.has(ticket.webhook)) slowUnderWay += 1
      const room = Math.max(0, concurrency * HARD_LIMIT_FACTOR - tickets.size)
      return {
        fastPlaces: Math.min(room, Math.max(0, concurrency - (tickets.size - slowUnderWay))),
        slowPlaces: Math.min(room, Math.max(0, slowLimit - slowUnderWay)),
        slowWebhooks: [...slow],
        inFlight: tickets.size,
      }
    },
  }
}
