import type { Clock } from '../../base/clock.ts'
import type { ClaimRequest, WorkerRoom } from '../policy.ts'
import { LATE_AFTER_MS, type Lanes, LOOK_MS } from './lanes.ts'

/** Maximum sleep of the dispatcher without a notification. */
export const POLL_MS = 1_000

export interface WaitingDeps {
  clock: Clock
  lanes: Lanes
  /** Due time of the next claimable row (`DeliveryQueue.nextDueAt`). */
  nextDueAt: (room: WorkerRoom) => Promise<Date | null>
}

/** The waits of a dispatcher between its rounds. */
export interface Waiting {
  /** Ends the wait of this round, also before it starts. */
  notify(): void
  /** Starts a round. Returns whether there is a slot that a claim could fill. */
  beginRound(): boolean
  /** Ends the wait when the end of an attempt is worth a claim. */
  noteEnd(isScarce: boolean): void
  /** Waits for a due row, a notification, room, or the poll. */
  wait(room: ClaimRequest): Promise<void>
}

/**
 * Builds the waits. A round without a free slot sends no statement: ended attempts notify, and the lanes are checked
 * every `LOOK_MS`, since late attempts free slots without ending. A round with free slots reads the next due time from
 * the queue.
 */
export function buildWaiting({ clock, lanes, nextDueAt }: WaitingDeps): Waiting {
  let notified = Promise.withResolvers<void>()
  /** Whether the last claim may have left due rows for lack of slots: the end of an attempt is then worth another. */
  let mayWait = false
  /** Whether slots, not caps, limited the last claim. */
  let isFull = false
  let beganAtMs = Number.NEGATIVE_INFINITY

  const notify = () => notified.resolve()
  const hasRoom = () => lanes.hasRoom(clock.now())
  const hasNoSlot = () => isFull && !lanes.hasSlowRoom(clock.now())

  /** Waits for a notification or the given time; while full, also for room. */
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
      beganAtMs = clock.now()
      return !hasNoSlot()
    },
    noteEnd: (isScarce) => {
      // Rows of a group at its cap may have been routed meanwhile: neither the router nor the last poll saw them as
      // due.
      if (isScarce || (mayWait && isFull && hasRoom())) notify()
    },
    wait: async (room) => {
      // Without a free slot nothing can be claimed.
      const nextAt = hasNoSlot() ? new Date(clock.now()) : await nextDueAt(room)
      const untilDueMs = nextAt ? nextAt.getTime() - clock.now() : POLL_MS
      // Due, but blocked by missing slots: the end of an attempt notifies.
      mayWait = untilDueMs <= 0
      // Due since the round began, so its claim did not see it.
      if (mayWait && nextAt && nextAt.getTime() > beganAtMs && !hasNoSlot()) return
      // Waiting rows of late groups are not claimed until a group answers, or others leave it slots.
      const pollMs = room.lateGroups.length > 0 ? LATE_AFTER_MS : POLL_MS
      await rest(mayWait ? pollMs : Math.min(untilDueMs, pollMs))
    },
  }
}
