import type { Clock } from '../../base/clock.ts'
import type { ClaimRequest, Room } from '../policy.ts'
import { LATE_AFTER_MS, type Lanes, LOOK_MS } from './lanes.ts'

/** How long the dispatcher sleeps at most when nothing notifies it. */
export const POLL_MS = 1_000

/** Dependencies of the waits. */
export interface WaitingDeps {
  clock: Clock
  lanes: Lanes
  /** When the next row is due that may be claimed (`DeliveryQueue.nextDueAt`). */
  nextDueAt: (room: Room) => Promise<Date | null>
}

/** The waits of a dispatcher between its rounds, and what ends them. */
export interface Waiting {
  /** Ends the wait of this round, also when it has not begun. */
  notify(): void
  /** Begins a round. Returns whether there is a slot that a claim could fill. */
  beginRound(): boolean
  /** Ends the wait when the end of an attempt is worth a claim. */
  noteEnd(isScarce: boolean): void
  /** Waits until a row is due, a notification, room, or the poll. */
  wait(room: ClaimRequest): Promise<void>
}

/**
 * Builds the waits. A round without a free slot sends no statement: the ends of attempts notify, and the lanes are looked at
 * every `LOOK_MS`, since late attempts leave room without an end. A round with free slots asks the queue when a row is due.
 */
export function buildWaiting({ clock, lanes, nextDueAt }: WaitingDeps): Waiting {
  let notified = Promise.withResolvers<void>()
  /** Whether the last claim may have left due rows for want of slots, so that the end of an attempt is worth another. */
  let mayWait = false
  /** Whether slots, not caps, were what the last claim wanted for. */
  let isFull = false

  const notify = () => notified.resolve()
  const hasRoom = () => lanes.hasRoom(clock.now())
  const hasNoSlot = () => isFull && !lanes.hasSlowRoom(clock.now())

  /** Waits for a notification or so long; while it is full, also for room. */
  async function rest(ms: number): Promise<void> {
    let isNotified = false
    const notification = notified.promise.then(() => {
      isNotified = true
    })
    const stepMs = isFull ? LOOK_MS : ms
    for (let leftMs = ms; leftMs > 0 && !isNotified; leftMs -= stepMs) {
      const sleep = new AbortController()
      await Promise.race([notification, clock.sleep(Math.min(stepMs, leftMs), sleep.signal)])
      sleep.abort('over')
      if (isFull && hasRoom()) return
    }
  }

  return {
    notify,
    beginRound: () => {
      notified = Promise.withResolvers()
      isFull = !hasRoom()
      mayWait = true
      return !hasNoSlot()
    },
    noteEnd: (isScarce) => {
      // Rows of a group at its cap may have been routed meanwhile: neither the router nor the last look saw them as due.
      if (isScarce || (mayWait && isFull && hasRoom())) notify()
    },
    wait: async (room) => {
      // Without a free slot nothing can be claimed.
      const nextAt = hasNoSlot() ? new Date(clock.now()) : await nextDueAt(room)
      const untilDueMs = nextAt ? nextAt.getTime() - clock.now() : POLL_MS
      // Due, and not claimed: slots hold it back, and the end of an attempt notifies.
      mayWait = untilDueMs <= 0
      // Waiting rows of late groups are not claimed until a group answers, or others leave it slots.
      const pollMs = room.lateGroups.length > 0 ? LATE_AFTER_MS : POLL_MS
      await rest(mayWait ? pollMs : Math.min(untilDueMs, pollMs))
    },
  }
}
