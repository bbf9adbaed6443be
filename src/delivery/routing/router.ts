import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { Dispatcher } from '../dispatcher/dispatcher.ts'
import { buildFanOut } from './fan-out.ts'
import { type NamedPart, type RoutedBatch, type RoutedRows, routeBatch } from './routing.store.ts'

/** How long the router sleeps at most when nothing notifies it. */
const POLL_MS = 1_000

/** How many events one batch takes at most. */
const BATCH_EVENTS = 500

/**
 * How many rows a batch should write at most, judged by the batch before: 500 events for thousands of webhooks in one
 * statement would run into the time limit of statements, and again each time.
 */
const BATCH_ROWS = 10_000

/**
 * How long the router rests after a batch of several events: they come faster than they are routed, and a batch costs the
 * same whatever it holds. A single event is routed at once.
 */
const BUSY_REST_MS = 4

/** How long the router waits for room before it queues rows that nobody has room for yet: of a batch, or of a part. */
const ROOM_WAIT_MS = 50

/** How long a statement of the request path waits for its turn to claim. */
const INLINE_WAIT_MS = 5

/** Below every event's id: a look through the whole queue. */
const FIRST = '00000000-0000-0000-0000-000000000000'

/** Looks between two looks through the whole queue begin this long before now. */
const RECENT_MS = 1_000

/** What a router is built from. */
export interface RouterDeps {
  clock: Clock
  db: Database
  logger: Logger
  /** Rests between batches, which decide nothing: real time in the service, whatever its clock. */
  rest?: Clock['sleep']
  /**
   * One for each policy. The first one sets the pace: the router waits for its slots. A policy without slots has its rows
   * written all the same, and they wait in its queue.
   */
  dispatchers: readonly [Dispatcher, ...Dispatcher[]]
  /** Rows of one part at most, of an event that goes to many. Default: 1,000. */
  partRows?: number
}

/** Routes what is recorded, as it comes, to all policies. One for each process with the role `dispatcher`. */
export interface Router {
  /** Looks for recorded events now. Cheap; any number of calls make one round. */
  notify(): void
  /** There is room for more attempts. */
  notifyRoom(): void
  /** Routes all that waits now; returns how many events and rows that were. Tests with a manual clock call this. */
  drain(): Promise<{ events: number; dispatches: number }>
  /**
   * Lets one statement route the events that it records (`routeInline`). Undefined while this process has no room, or
   * another statement claims for it and goes on: then the events are queued for the router.
   */
  takeInline(): Promise<InlineRouting | undefined>
  run(): Promise<void>
  stop(): void
}

/** The right to route in a statement of one's own; ends with `accept` or `fail`. */
export interface InlineRouting {
  policies: readonly NamedPart[]
  /** Hands over what the statement claimed, once it is durable. */
  accept(byPolicy: readonly RoutedRows[]): Promise<void>
  /** The statement failed, and may have claimed all the same: its answer can be lost. */
  fail(): void
}

/** Builds the router. */
export function buildRouter(deps: RouterDeps): Router {
  const { clock, db, logger, dispatchers, partRows, rest = clock.sleep } = deps
  const stopping = new AbortController()
  let notified = Promise.withResolvers<void>()
  let room = Promise.withResolvers<void>()
  /** Rows for each event of the last batch. */
  let rowsOfEvent = 1
  let isNotified = false
  const fanOuts = dispatchers.map((dispatcher) => buildFanOut({ clock, db, dispatcher, partRows }))

  const notify = () => {
    isNotified = true
    notified.resolve()
  }

  const countSlots = () => dispatchers[0].measureRoom().fastSlots

  const buildParts = () =>
    dispatchers.map(({ policy, measureRoom }) => ({ name: policy.name, part: policy.buildRouting(measureRoom()) }))

  async function accept(byPolicy: readonly RoutedRows[]): Promise<void> {
    const now = new Date(clock.now())
    for (const [index, { work, nextDueAt }] of byPolicy.entries()) {
      await dispatchers[index]?.accept(work)
      if (nextDueAt && nextDueAt <= now) dispatchers[index]?.notify()
    }
  }

  function expectLeaks(): void {
    for (const one of dispatchers) one.expectLeak()
  }

  function releaseTurns(): void {
    for (const one of dispatchers) one.turn.release()
  }

  async function route(after: string, slots: number): Promise<RoutedBatch & { isFull: boolean }> {
    const limit = Math.max(1, Math.min(BATCH_EVENTS, slots || BATCH_EVENTS, Math.floor(BATCH_ROWS / rowsOfEvent)))
    for (const one of dispatchers) await one.turn.take()
    try {
      const batch = await routeBatch(db, { after, limit, now: new Date(clock.now()) }, buildParts())
      const rows = Math.max(...batch.byPolicy.map((one) => one.opened))
      rowsOfEvent = batch.events > 0 ? Math.max(1, rows / batch.events) : rowsOfEvent
      await accept(batch.byPolicy)
      return { ...batch, isFull: batch.events === limit }
    } catch (error) {
      // One event in a statement of its own, should the batch have been too much for one.
      rowsOfEvent = BATCH_ROWS
      expectLeaks()
      throw error
    } finally {
      releaseTurns()
    }
  }

  async function takeInline(): Promise<InlineRouting | undefined> {
    if (countSlots() === 0) return undefined
    const limit = new AbortController()
    const waitOver = () => rest(INLINE_WAIT_MS, limit.signal)
    const taken: Dispatcher[] = []
    const giveBack = () => {
      for (const one of taken.splice(0)) one.turn.release()
    }
    try {
      for (const one of dispatchers) if (await one.turn.takeBefore(waitOver)) taken.push(one)
      if (taken.length < dispatchers.length || countSlots() === 0) {
        giveBack()
        return undefined
      }
      return {
        policies: buildParts(),
        accept: async (byPolicy) => {
          try {
            await accept(byPolicy)
          } catch (error) {
            // What was claimed and not accepted is found again.
            expectLeaks()
            throw error
          } finally {
            giveBack()
          }
        },
        fail: () => {
          expectLeaks()
          giveBack()
        },
      }
    } catch (error) {
      giveBack()
      throw error
    } finally {
      limit.abort('over')
    }
  }

  async function drain() {
    const total = { events: 0, dispatches: 0 }
    for (let hasMore = true; hasMore && !stopping.signal.aborted; ) {
      const { events, byPolicy, isFull } = await route(FIRST, countSlots())
      total.events += events
      total.dispatches += byPolicy.reduce((sum, one) => sum + one.opened, 0)
      hasMore = isFull
    }
    for (let rows = await writeParts(); rows !== undefined; rows = await writeParts()) total.dispatches += rows
    return total
  }

  /** Writes a part of the rows of events that were set aside. Returns how many; undefined when there is no such event. */
  async function writeParts(): Promise<number | undefined> {
    let total: number | undefined
    for (const one of fanOuts) {
      const rows = await one.writePart()
      if (rows !== undefined) total = (total ?? 0) + rows
    }
    return total
  }

  /** The same, and waits for room for the next ones; false when there are none. A failure ends it until the next look. */
  async function continueFanOut(): Promise<boolean> {
    try {
      if ((await writeParts()) === undefined) return false
      await waitForRoom(() => dispatchers[0].hasRoom())
      return true
    } catch (error) {
      logger.error({ err: error }, 'part of a fan-out failed: see docs/operations.md, database')
      return false
    }
  }

  /** Waits until attempts ended, for rows that are claimed as they are routed cost less; not for long. */
  async function waitForRoom(hasRoom: () => boolean): Promise<void> {
    room = Promise.withResolvers()
    if (hasRoom()) return
    const limit = new AbortController()
    let isOver = false
    const over = rest(ROOM_WAIT_MS, limit.signal).then(() => {
      isOver = true
    })
    while (!isOver && !hasRoom() && !stopping.signal.aborted) {
      await Promise.race([room.promise, over])
      room = Promise.withResolvers()
    }
    limit.abort('over')
  }

  async function waitFor(event: Promise<void>, limitMs: number): Promise<void> {
    const sleep = new AbortController()
    await Promise.race([event, clock.sleep(limitMs, sleep.signal)])
    // With a reason, or an exception with its stack is made for each.
    sleep.abort('over')
  }

  async function run(): Promise<void> {
    let lookedAtMs = Number.NEGATIVE_INFINITY
    let after = FIRST
    let hasBacklog = false
    let hasFanOut = false
    const isPollDue = () => Math.abs(clock.now() - lookedAtMs) >= POLL_MS
    while (!stopping.signal.aborted) {
      try {
        notified = Promise.withResolvers()
        isNotified = false
        await waitForRoom(() => countSlots() > 0)
        // Rows come and go at one end of the queue, and what is left there of those that went is slow to look through.
        const isWhole = isPollDue()
        if (isWhole) lookedAtMs = clock.now()
        const { isFull, last, events, isAside } = await route(isWhole ? FIRST : after, countSlots())
        after = isFull && last ? last : firstIdAt(clock.now() - RECENT_MS)
        const isBacklogEnd = hasBacklog && !isFull && !isWhole
        hasBacklog = isFull
        // Other processes held events of the backlog when this one passed them; what they left is behind its back.
        if (isBacklogEnd) lookedAtMs = Number.NEGATIVE_INFINITY
        // A process that went down, or others, may have left events that were set aside.
        hasFanOut ||= isAside || isWhole
        // Events that come meanwhile are routed between two parts.
        if (hasFanOut)
          do hasFanOut = await continueFanOut()
          while (hasFanOut && !isFull && !isNotified && !isPollDue())
        if (isFull || isBacklogEnd || hasFanOut) continue
        if (events > 1) await rest(BUSY_REST_MS, stopping.signal)
        await waitFor(notified.promise, Math.max(0, POLL_MS - (clock.now() - lookedAtMs)))
      } catch (error) {
        logger.error({ err: error }, 'router round failed: see docs/operations.md, database')
        await clock.sleep(POLL_MS, stopping.signal)
      }
    }
  }

  return {
    notify,
    notifyRoom: () => room.resolve(),
    drain,
    takeInline,
    run,
    stop: () => {
      stopping.abort()
      notify()
      room.resolve()
    },
  }
}

/** The lowest id of an event that is made at this instant (RFC 9562, 5.7). */
function firstIdAt(nowMs: number): string {
  const hex = Math.max(0, nowMs).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}
