import { readMonotonicMs } from '../../base/clock.ts'
import { isDatabaseUnavailable, isGivenUp } from '../../postgres/statement/database.ts'
import { type DatabaseWait, LINE_EVERY_MS, RETRY_MS } from './database-wait.ts'

/**
 * Runs a step of a start, and again when it lost the database, or when another process held its rows longer than a
 * statement waits, until the limit after the first such failure. Rejects with the last one, and at once
 * with another. Resolves to undefined at the stop. The step is safe to repeat. `readMs`: a clock that the step does not
 * set.
 */
export async function runUntilFree<T>(
  { limitMs, clock, logger, stop }: DatabaseWait,
  step: () => Promise<T>,
  readMs = readMonotonicMs,
): Promise<T | undefined> {
  let failedAtMs: number | undefined
  let saidAtMs = Number.NEGATIVE_INFINITY
  while (!stop?.aborted) {
    try {
      return await step()
    } catch (error) {
      const nowMs = readMs()
      failedAtMs ??= nowMs
      const isOver = nowMs - failedAtMs >= limitMs
      if (isOver || !(isDatabaseUnavailable(error) || isGivenUp(error))) throw error
      if (nowMs - saidAtMs >= LINE_EVERY_MS) {
        saidAtMs = nowMs
        const { message: reason } = error as Error
        logger.warn({ reason }, 'preparing the database once more: see docs/operations.md, database')
      }
      await clock.sleep(RETRY_MS, stop)
    }
  }
  return undefined
}
