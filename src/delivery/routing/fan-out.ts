import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { Dispatcher } from '../dispatcher/dispatcher.ts'
import { routeFanOut } from './routing.store.ts'

/** Maximum number of rows in one part, and the number in a part without room: they wait in the queue. */
const PART_ROWS = 1_000

export interface FanOutDeps {
  clock: Clock
  db: Database
  /** The dispatcher of the policy whose rows are written. */
  dispatcher: Dispatcher
  /** Maximum number of rows in one part. Default: 1,000. */
  partRows?: number | undefined
}

/** Writes the rows of events that a policy set aside because they exceed one statement. */
export interface FanOut {
  /** Writes one part of one event. Returns the number of its rows; undefined when no event is set aside for it. */
  writePart(): Promise<number | undefined>
}

/** Builds the fan-out of one policy. Processes write parts concurrently, one at a time for an event. */
export function buildFanOut({ clock, db, dispatcher, partRows = PART_ROWS }: FanOutDeps): FanOut {
  const { policy, mutex } = dispatcher
  /** Whether due rows wait in the queue: then half of the room is left for them. */
  let hasDue = false

  function countRows(fastSlots: number): number {
    if (fastSlots === 0 || !dispatcher.hasRoom()) return partRows
    return Math.min(partRows, hasDue ? Math.ceil(fastSlots / 2) : fastSlots)
  }

  async function writePart(): Promise<number | undefined> {
    if (!policy.buildFanOut) return undefined
    await mutex.take()
    try {
      const request = dispatcher.measureRoom()
      const { now } = request
      const written = policy.buildFanOut(request, countRows(request.fastSlots))
      const rows = await routeFanOut(db, { name: policy.name, written, now })
      if (!rows) return undefined
      await dispatcher.accept(rows.work)
      hasDue = rows.nextDueAt !== null && rows.nextDueAt.getTime() <= clock.now()
      if (hasDue) dispatcher.notify()
      return rows.opened
    } catch (error) {
      // The statement may have claimed: its answer can be lost.
      dispatcher.expectLeak()
      throw error
    } finally {
      mutex.release()
    }
  }

  return { writePart }
}
