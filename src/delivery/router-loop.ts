import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import type { IdMaker } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { routeEvents } from './router.ts'

/** How long the router sleeps at most when nothing notifies it. */
const POLL_MS = 1_000

export interface RouterLoopDeps {
  ids: IdMaker
  clock: Clock
  db: Database
  logger: Logger
  workerId: string
  /** Told when ledger rows were written. */
  onDispatches: () => void
}

/** Routes what is recorded, as it comes. One for each process with the role `dispatcher`. */
export interface RouterLoop {
  notify(): void
  /** Routes all that waits now; returns how many events and rows that were. Tests with a manual clock call this. */
  drain(): Promise<{ events: number; dispatches: number }>
  run(): Promise<void>
  stop(): void
}

/** Builds the router's loop. */
export function buildRouterLoop(deps: RouterLoopDeps): RouterLoop {
  const { clock, logger } = deps
  const stopping = new AbortController()
  let notified = Promise.withResolvers<void>()
  const notify = () => notified.resolve()

  async function drain() {
    const total = { events: 0, dispatches: 0 }
    for (;;) {
      const { events, dispatches, hasMore } = await routeEvents(deps, deps.db, new Date(clock.now()))
      total.events += events
      total.dispatches += dispatches
      if (dispatches > 0) deps.onDispatches()
      if (!hasMore || stopping.signal.aborted) return total
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        notified = Promise.withResolvers()
        const { events } = await drain()
        if (events > 0) continue
        const sleep = new AbortController()
        await Promise.race([notified.promise, clock.sleep(POLL_MS, sleep.signal)])
        sleep.abort()
      } catch (error) {
        logger.error({ err: error }, 'router round failed: see docs/operations.md, database')
        await clock.sleep(POLL_MS, stopping.signal)
      }
    }
  }

  return {
    notify,
    drain,
    run,
    stop: () => {
      stopping.abort()
      notify()
    },
  }
}
