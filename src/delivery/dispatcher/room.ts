const SLOW_SHARE = 0.25

/** Share of all slots that late groups may hold while others want them, and share kept free for the others then. */
const LATE_SHARE = 0.25

/** POSTs in flight at most, slow ones included, as a multiple of the concurrency. A bound on sockets and memory. */
const HARD_LIMIT_FACTOR = 4

/** Attempts in flight, by the state of their groups. */
export interface InFlight {
  /** Attempts of groups in the slow lane. */
  slow: number
  /** Attempts of groups without an answer for `LATE_AFTER_MS`. */
  late: number
  answering: number
}

export interface DecidedRoom {
  fastSlots: number
  slowSlots: number
  /** Late groups hold slots that others need: their attempts do not count, and they get no more until they answer. */
  isCrowded: boolean
}

/**
 * Divides the slots. Slow attempts have slots of their own. Late ones take fast slots like all others until they hold
 * more than a quarter and less than a quarter is free; then as many of them as there are slots stop counting, so that
 * answering groups always find a slot. So attempts that are not slow are twice the concurrency at most, and all of them
 * four times. Pure.
 */
export function decideRoom(concurrency: number, { slow, late, answering }: InFlight): DecidedRoom {
  const room = Math.max(0, concurrency * HARD_LIMIT_FACTOR - slow - late - answering)
  const free = concurrency - late - answering
  const isCrowded = late > concurrency * LATE_SHARE && free < concurrency * LATE_SHARE
  const uncounted = isCrowded ? Math.min(late, concurrency) : 0
  const slowLimit = Math.max(1, Math.floor(concurrency * SLOW_SHARE))
  return {
    fastSlots: Math.min(room, Math.max(0, free + uncounted)),
    slowSlots: Math.min(room, Math.max(0, slowLimit - slow)),
    isCrowded,
  }
}
