import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { type Loop, runRounds } from '../../base/rounds.ts'
import { withoutPost } from '../../delivery/post/signed-post.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { EndedAttempt } from '../delivery/outcome.ts'
import type { SettledAttempts } from '../delivery/settle.ts'
import { type LeasedRow, listLapsed } from './pull.store.ts'

/** Interval between rounds: below the first delay of the retry schedule, so that none is made later. */
const PERIOD_MS = 5_000

const BATCH_SIZE = 500

/** Ends expired leases. One for each process with the role `maintenance`. */
export interface LeaseEnder extends Loop {
  endLapsed(): Promise<void>
}

export interface LeaseEnderDeps {
  db: Database
  clock: Clock
  logger: Logger
  workerId: string
  /** Whether the clock of this process may be trusted. */
  isTrusted: () => boolean
  settle: (ended: readonly EndedAttempt[]) => Promise<SettledAttempts>
  onSettled: (settled: SettledAttempts) => void
}

/** Builds the ender: a lapsed lease is an attempt that failed at its end. It ends once, by its fence. */
export function buildLeaseEnder(deps: LeaseEnderDeps): LeaseEnder {
  const { db, clock, logger, workerId } = deps
  const stopping = new AbortController()

  async function endLapsed(): Promise<void> {
    while (!stopping.signal.aborted && deps.isTrusted()) {
      const lapsed = await listLapsed(db, { now: new Date(clock.now()), limit: BATCH_SIZE })
      if (lapsed.length === 0) return
      const settled = await deps.settle(lapsed.map((row) => endLease(row, workerId)))
      deps.onSettled(settled)
      // The others are locked: the next round ends them.
      if (lapsed.length < BATCH_SIZE || settled.recorded.length === 0) return
    }
  }

  return {
    endLapsed,
    run: () =>
      runRounds({
        ...{ clock, periodMs: PERIOD_MS, stop: stopping.signal, work: endLapsed },
        onError: (err) => logger.warn({ err }, 'leases not ended: see docs/operations.md, maintenance'),
      }),
    stop: () => stopping.abort(),
  }
}

/** The attempt of a lapsed lease. Pure. */
function endLease({ leasedUntil, ...attempt }: LeasedRow, workerId: string): EndedAttempt {
  const durationMs = Math.max(0, leasedUntil.getTime() - attempt.startedAt.getTime())
  return { ...attempt, ...withoutPost('lease_expired'), durationMs, workerId, traceId: null, endedAt: leasedUntil }
}
