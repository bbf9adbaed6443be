import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Loop } from '../../base/rounds.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { Dispatcher } from '../dispatcher/dispatcher.ts'
import { buildFanOut } from './fan-out.ts'
import { type InlineRouting, takeInlineRouting } from './inline-routing.ts'
import { buildQueueLooks, FIRST } from './queue-looks.ts'
import { buildRoomWait } from './room-wait.ts'
import { buildRoutedPolicies } from './routed-policies.ts'
import { type RoutedBatch, routeBatch } from './routing.store.ts'

const RETRY_MS = 1_000

const BATCH_EVENTS = 500

/** Target for the rows of a batch, estimated from the previous batch: it must not exceed the statement timeout. */
const BATCH_ROWS = 10_000

/** Pause after a batch of several events: more arrive meanwhile, and the cost of a batch hardly depends on them. */
const BUSY_REST_MS = 4

export interface RouterDeps {
  clock: Clock
  db: Database
  logger: Logger
  /** Pause between batches, in real time. It decides nothing. */
  rest?: Clock['sleep']
  /** One for each policy. The router waits for slots of the first one; rows of the others wait in their queues. */
  dispatchers: readonly [Dispatcher, ...Dispatcher[]]
  /** Limit of rows in one part of a fan-out. Default: 1,000. */
  partRows?: number
}

/** Routes recorded events to all policies. One for each process with the role `dispatcher`. */
export interface Router extends Loop {
  /** Polls for recorded events now. Cheap; concurrent calls share one round. */
  notify(): void
  notifyRoom(): void
  /** Routes all waiting events; returns the numbers of events and rows. Tests with a manual clock call this. */
  drain(): Promise<{ events: number; dispatches: number }>
  /**
   * Lets one statement route the events that it records (`routeInline`). Undefined while this process has no room, or
   * another statement claims for it: then the events are queued for the router.
   */
  takeInline(): Promise<InlineRouting | undefined>
}

/**
 * Builds the router. Its states:
 *
 * ```
 *   waiting     -> looking      a notification, or the poll a second after the last look through the whole queue
 *   looking     -> looking      the batch was full, or a backlog has ended (`queue-looks.ts`)
 *   looking     -> fanning out  events were set aside, here or, on a look through the whole queue, by any process
 *   fanning out -> fanning out  a part was written, and there is room for the next, or none for 50 ms (`room-wait.ts`)
 *   fanning out -> looking      no part is left, events came, or the poll is due
 *   looking     -> waiting      after a rest of 4 ms where the batch held several events
 * ```
 *
 * Each look waits for room first, 50 ms at most. Statements of requests that route what they record run beside it
 * (`inline-routing.ts`); the turns of the dispatchers keep the two apart.
 */
export function buildRouter(deps: RouterDeps): Router {
  const { clock, db, logger, dispatchers, partRows, rest = clock.sleep } = deps
  const stopping = new AbortController()
  const policies = buildRoutedPolicies(dispatchers, clock)
  const fanOuts = dispatchers.map((dispatcher) => buildFanOut({ clock, db, dispatcher, partRows }))
  const looks = buildQueueLooks(clock)
  const room = buildRoomWait(rest, stopping.signal)
  let notified = Promise.withResolvers<void>()
  let isNotified = false
  /** Average rows of an event in the last batch. */
  let rowsOfEvent = 1

  const notify = () => {
    isNotified = true
    notified.resolve()
  }

  async function route(after: string, slots: number): Promise<RoutedBatch & { isFull: boolean }> {
    const limit = Math.max(1, Math.min(BATCH_EVENTS, slots || BATCH_EVENTS, Math.floor(BATCH_ROWS / rowsOfEvent)))
    const releaseTurns = await policies.takeTurns()
    try {
      const batch = await routeBatch(db, { after, limit, now: new Date(clock.now()) }, policies.buildParts())
      const rows = Math.max(...batch.byPolicy.map((item) => item.opened))
      rowsOfEvent = batch.events > 0 ? Math.max(1, rows / batch.events) : rowsOfEvent
      await policies.accept(batch.byPolicy)
      return { ...batch, isFull: batch.events === limit }
    } catch (error) {
      // A single event, in case the batch was too large for one statement.
      rowsOfEvent = BATCH_ROWS
      policies.expectLeaks()
      throw error
    } finally {
      releaseTurns()
    }
  }

  async function drain() {
    const total = { events: 0, dispatches: 0 }
    for (let hasMore = true; hasMore && !stopping.signal.aborted; ) {
      const { events, byPolicy, isFull } = await route(FIRST, policies.countSlots())
      total.events += events
      total.dispatches += byPolicy.reduce((sum, item) => sum + item.opened, 0)
      hasMore = isFull
    }
    for (let rows = await writeParts(); rows !== undefined; rows = await writeParts()) total.dispatches += rows
    return total
  }

  /** Writes a part of the rows of events that were set aside. Returns their number; undefined without such an event. */
  async function writeParts(): Promise<number | undefined> {
    let total: number | undefined
    for (const out of fanOuts) {
      const rows = await out.writePart()
      if (rows !== undefined) total = (total ?? 0) + rows
    }
    return total
  }

  /** Does so, and waits for room for the next part; false when there is none. A failure stops it. */
  async function continueFanOut(): Promise<boolean> {
    try {
      if ((await writeParts()) === undefined) return false
      await room.wait(policies.hasRoom)
      return true
    } catch (error) {
      logger.error({ err: error }, 'part of a fan-out failed: see docs/operations.md, database')
      return false
    }
  }

  async function waitFor(event: Promise<void>, limitMs: number): Promise<void> {
    const sleep = new AbortController()
    await Promise.race([event, clock.sleep(limitMs, sleep.signal)])
    // With a reason; otherwise each abort creates an exception with a stack trace.
    sleep.abort('over')
  }

  async function run(): Promise<void> {
    let hasFanOut = false
    while (!stopping.signal.aborted) {
      try {
        notified = Promise.withResolvers()
        isNotified = false
        await room.wait(() => policies.countSlots() > 0)
        const look = looks.begin()
        const batch = await route(look.after, policies.countSlots())
        const hasMore = looks.end(look, batch)
        // This or another process may have left set-aside events after a crash.
        hasFanOut ||= batch.isAside || look.isWhole
        // Newer events are routed between two parts.
        if (hasFanOut)
          do hasFanOut = await continueFanOut()
          while (hasFanOut && !hasMore && !isNotified && !looks.isWholeDue())
        if (hasMore || hasFanOut) continue
        if (batch.events > 1) await rest(BUSY_REST_MS, stopping.signal)
        await waitFor(notified.promise, looks.untilWholeMs())
      } catch (error) {
        logger.error({ err: error }, 'router round failed: see docs/operations.md, database')
        await clock.sleep(RETRY_MS, stopping.signal)
      }
    }
  }

  return {
    notify,
    notifyRoom: room.notify,
    drain,
    takeInline: () => takeInlineRouting(policies, rest),
    run,
    stop: () => {
      stopping.abort()
      notify()
      room.notify()
    },
  }
}
