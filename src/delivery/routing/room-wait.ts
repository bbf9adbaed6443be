import type { Clock } from '../../base/clock.ts'

/** Wait of the router for room before it queues the rows of a batch or a part. */
const ROOM_WAIT_MS = 50

/** The wait of a router for attempts to end: rows claimed as they are routed cost less than queued rows. */
export interface RoomWait {
  notify(): void
  /** Waits until `hasRoom`, the abort, or `ROOM_WAIT_MS`. */
  wait(hasRoom: () => boolean): Promise<void>
}

/** Builds it. `rest` bounds the wait in real time, also under a manual clock. */
export function buildRoomWait(rest: Clock['sleep'], signal: AbortSignal): RoomWait {
  let room = Promise.withResolvers<void>()
  return {
    notify: () => room.resolve(),
    wait: async (hasRoom) => {
      room = Promise.withResolvers()
      if (hasRoom()) return
      const limit = new AbortController()
      let isOver = false
      const over = rest(ROOM_WAIT_MS, limit.signal).then(() => {
        isOver = true
      })
      while (!isOver && !hasRoom() && !signal.aborted) {
        await Promise.race([room.promise, over])
        room = Promise.withResolvers()
      }
      limit.abort('over')
    },
  }
}
