import type { Clock } from '../../base/clock.ts'

/** How long the router waits for room before it queues rows that nobody has room for yet: of a batch, or of a part. */
const ROOM_WAIT_MS = 50

/** The wait of a router for attempts to end: rows that are claimed as they are routed cost less than rows that are queued. */
export interface RoomWait {
  /** There is room for more attempts. */
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
