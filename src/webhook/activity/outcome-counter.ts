import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { runRounds } from '../../base/rounds.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { foldOutcomes } from './outcome.store.ts'

/** Interval between rounds, in milliseconds; the maximum lag of the sums. */
const PERIOD_MS = 5_000

const BATCH_SIZE = 500

/** Builds the counter of the outcomes of attempts. Each process takes batches that no other one has locked. */
export function buildOutcomeCounter(deps: { db: Database; clock: Clock; logger: Logger }) {
  const { db, clock, logger } = deps
  const stopping = new AbortController()
  async function count(): Promise<void> {
    while (!stopping.signal.aborted) if ((await foldOutcomes(db, { limit: BATCH_SIZE })) < BATCH_SIZE) return
  }
  return {
    count,
    run: () =>
      runRounds({
        ...{ clock, periodMs: PERIOD_MS, stop: stopping.signal, work: count },
        onError: (err) => logger.warn({ err }, 'outcomes not counted: see docs/operations.md, maintenance'),
      }),
    stop: () => stopping.abort(),
  }
}
