import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { openBudget, spend } from '../embedded/frame/budget.ts'
import { type ReportedEvent, recordChannelEvents } from './channel-event.store.ts'
import type { ChannelEvent } from './channel-event.ts'

/** Time for which events are collected for one statement. */
export const FEED_COLLECT_MS = 500

/** Maximum number of events recorded a second, and at once: a crowd must not fill the database. */
const RATE = { perSecond: 50, burst: 500 } as const

export interface ChannelFeedDeps {
  db: Database
  clock: Clock
  logger: Logger
  /** Unique name of this process. */
  workerId: string
  /** Counts an event, and whether it was recorded or dropped. */
  countEvent: (name: string, isRecorded: boolean) => void
}

export interface ChannelFeed {
  /** Adds an event. Only the last count of a channel in a statement is recorded. */
  note(event: ChannelEvent): void
  settled(): Promise<void>
  stop(): Promise<void>
}

/** Builds the feed. Events not yet recorded are lost with the process: the feed only serves the inspector. */
export function buildChannelFeed(deps: ChannelFeedDeps): ChannelFeed {
  const { db, clock, logger, countEvent } = deps
  const budget = openBudget(RATE.burst, clock.now())
  let waiting = new Map<string, ReportedEvent>()
  let number = 0
  const stopping = new AbortController()
  let working: Promise<void> | undefined

  async function work(): Promise<void> {
    while (waiting.size > 0) {
      await clock.sleep(FEED_COLLECT_MS, stopping.signal)
      const events = [...waiting.values()].sort((a, b) => a.position - b.position)
      waiting = new Map()
      await recordChannelEvents(db, events, new Date(clock.now())).catch((error: unknown) =>
        logger.warn(
          { err: error, events: events.length },
          'realtime channel events lost: see docs/operations.md, realtime',
        ),
      )
    }
    working = undefined
  }

  async function settled(): Promise<void> {
    while (working) await working
  }

  return {
    note: (event) => {
      const isCount = event.name === 'subscription_count'
      const key = isCount ? `count ${event.channel}` : String(number)
      const isRecorded = waiting.has(key) || spend(budget, RATE, clock.now())
      countEvent(event.name, isRecorded)
      if (!isRecorded) return
      number += 1
      waiting.set(key, { ...event, origin: deps.workerId, position: number, happenedAt: new Date(clock.now()) })
      working ??= work()
    },
    settled,
    stop: () => {
      stopping.abort()
      return settled()
    },
  }
}
