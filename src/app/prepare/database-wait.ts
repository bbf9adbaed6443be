import type { Logger } from 'pino'
import { type Clock, readMonotonicMs } from '../../base/clock.ts'
import { findDatabaseFault } from '../../postgres/connection/database-fault.ts'
import { isDatabaseUnavailable } from '../../postgres/statement/database.ts'
import { describeFatal } from '../log/fatal.ts'

/** The wait between two tries. */
export const RETRY_MS = 500

/** The interval of the lines that say why a start waits. */
export const LINE_EVERY_MS = 5_000

export interface DatabaseWait {
  /** `DATABASE_WAIT_SECONDS`, in milliseconds: 0 tries once. */
  limitMs: number
  clock: Pick<Clock, 'sleep'>
  logger: Logger
  stop?: AbortSignal | undefined
}

/**
 * Waits until the database can be reached and accepts changes: it may start after this process, or fail over. Rejects
 * with the last fault after the limit, and at once for a permanent fault, such as a wrong password. Returns at the
 * stop.
 */
export async function waitForDatabase(connectionString: string, wait: DatabaseWait): Promise<void> {
  const { limitMs, clock, logger, stop } = wait
  // The clock of the machine may be set while it starts.
  const begunAtMs = readMonotonicMs()
  let saidAtMs = Number.NEGATIVE_INFINITY
  while (!stop?.aborted) {
    const fault = await findDatabaseFault(connectionString)
    if (fault === undefined) return
    const nowMs = readMonotonicMs()
    if (!isDatabaseUnavailable(fault) || nowMs - begunAtMs >= limitMs) throw fault
    if (nowMs - saidAtMs >= LINE_EVERY_MS) {
      saidAtMs = nowMs
      const reason = describeFatal(fault)
      const waited = Math.round((nowMs - begunAtMs) / 1000)
      logger.warn({ reason, waited_s: waited }, 'waiting for the database: see docs/operations.md, database')
    }
    await clock.sleep(RETRY_MS, stop)
  }
}
