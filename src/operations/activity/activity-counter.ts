import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { type Loop, runRounds } from '../../base/rounds.ts'
import { countSignIns } from '../../event/recording/sign-in-count.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { countEndedMessages } from '../../realtime/delivery/message-count.ts'
import { countOpenConnections } from '../../realtime/embedded/fleet/connection-count.ts'
import { type ActivityKind, type ActivitySum, addSums, lockCounted, PEAK } from './activity-sum.store.ts'

const MINUTE_MS = 60_000

/** Interval between rounds, in milliseconds. */
const PERIOD_MS = 30_000

/** Age of an ended minute that is counted: its transactions have ended, and no entry of it grows. */
const SETTLED_MS = 60_000

/** Age at which the first round begins: the longest range. */
const HISTORY_MS = 31 * 24 * 3_600_000

/** Maximum span that one transaction counts: its rows are read at once. */
const SPAN_MS = 24 * 60 * MINUTE_MS

/** Things that are counted from rows, long after they happened too. */
const COUNTS = { 'sign-in': countSignIns, realtime: countEndedMessages } as const satisfies Partial<
  Record<ActivityKind, (db: Database, span: { from: Date; to: Date }) => Promise<ActivitySum[]>>
>

/** Counts sign-ins, realtime messages and realtime connections by the minute. One for each process with the role `maintenance`. */
export interface ActivityCounter extends Loop {
  /** Counts every minute that has settled, and the connections that are open now. */
  count(): Promise<void>
}

/** Counts one span of a kind. Returns whether more of it waits. */
async function countSpan(db: Database, kind: keyof typeof COUNTS, nowMs: number): Promise<boolean> {
  const lastMs = Math.floor((nowMs - SETTLED_MS) / MINUTE_MS) * MINUTE_MS
  return inTransaction(db, async (tx) => {
    const since = new Date(lastMs - HISTORY_MS)
    const from = await lockCounted(tx, { kind, since })
    if (!from || from.getTime() >= lastMs) return false
    const to = new Date(Math.min(lastMs, from.getTime() + SPAN_MS))
    await addSums(tx, { kind, minutes: await COUNTS[kind](tx, { from, to }), until: to })
    return to.getTime() < lastMs
  })
}

/** Reads the open connections, once a minute over all processes. A minute missed stays unknown. */
async function countConnections(db: Database, nowMs: number): Promise<void> {
  const minute = new Date(Math.floor(nowMs / MINUTE_MS) * MINUTE_MS)
  const open = await countOpenConnections(db, new Date(nowMs))
  if (open === undefined) return
  await inTransaction(db, async (tx) => {
    const until = await lockCounted(tx, { kind: 'connection', since: minute })
    if (!until || until > minute) return
    const minutes = Object.entries({ open, minutes: 1, [PEAK]: open }).map(([measure, count]) => ({
      ...{ at: minute, measure, count },
    }))
    await addSums(tx, { kind: 'connection', minutes, until: new Date(minute.getTime() + MINUTE_MS) })
  })
}

/** Builds the counter. Any number of processes may run one: one at a time counts a kind. */
export function buildActivityCounter({
  db,
  clock,
  logger,
}: {
  db: Database
  clock: Clock
  logger: Logger
}): ActivityCounter {
  const stopping = new AbortController()
  async function count(): Promise<void> {
    for (const kind of Object.keys(COUNTS) as (keyof typeof COUNTS)[])
      while (!stopping.signal.aborted) if (!(await countSpan(db, kind, clock.now()))) break
    if (!stopping.signal.aborted) await countConnections(db, clock.now())
  }
  return {
    count,
    run: () =>
      runRounds({
        ...{ clock, periodMs: PERIOD_MS, stop: stopping.signal, work: count },
        onError: (err) => logger.warn({ err }, 'activity not counted: see docs/operations.md, maintenance'),
      }),
    stop: () => stopping.abort(),
  }
}
