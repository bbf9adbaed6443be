import type { Logger } from 'pino'
import { systemClock } from '../../base/clock.ts'
import type { ClockVerdict, DatabaseClock } from '../../base/database-clock.ts'
import type { Loop } from '../../base/rounds.ts'
import { removeProcessSkew, saveProcessSkew } from '../../operations/health/process-skew.store.ts'
import { askDatabaseTime } from '../../postgres/database-time.store.ts'
import type { Database } from '../../postgres/statement/database.ts'

/** Interval between samples of the database's clock in a process without lease renewals. */
const LOOK_MS = 1_000

/** Interval at which a process with a skewed clock reports it to the others. */
const REPORT_MS = 5_000

/** Compares the clocks of database and machine while the process runs. */
export interface ClockWatch extends Loop {
  look(): Promise<void>
}

export interface ClockWatchDeps {
  db: Database
  time: DatabaseClock
  logger: Logger
  workerId: string
}

/** Follows the database's clock; reports a skew of the machine in the log, and in a row for health and alerts. */
export function buildClockWatch(deps: ClockWatchDeps): ClockWatch {
  const { db, time, logger, workerId } = deps
  const stopping = new AbortController()
  let reportedAtMs = Number.NEGATIVE_INFINITY
  let isReported = false
  let last: ClockVerdict = 'aligned'
  let steppedAtMs = Number.NEGATIVE_INFINITY

  function log(): void {
    const verdict = time.verdict()
    if (verdict === last) return
    last = verdict
    const fields = { skew_seconds: Math.round(time.skewMs()) / 1000 }
    if (verdict === 'aligned') logger.info(fields, 'clock agrees with the database again')
    else if (verdict === 'skewed')
      logger.warn(fields, 'clock differs from the database: see docs/operations.md, clock skew')
    else logger.error(fields, 'clock not trusted, nothing is claimed or deleted: see docs/operations.md, clock skew')
  }

  function logStep(): void {
    const atMs = time.monotonicMs() - time.stepAgeMs()
    // The same instant, except for the time between the two readings.
    if (!(atMs > steppedAtMs + 1)) return
    steppedAtMs = atMs
    const fields = { step_seconds: Math.round(time.stepMs()) / 1000 }
    logger.warn(
      fields,
      'clock of the database stepped, nothing is deleted for 10 minutes: see docs/operations.md, clock skew',
    )
  }

  async function report(): Promise<void> {
    if (time.verdict() === 'aligned') {
      if (isReported) await removeProcessSkew(db, { process: workerId })
      isReported = false
      reportedAtMs = Number.NEGATIVE_INFINITY
      return
    }
    if (time.monotonicMs() - reportedAtMs < REPORT_MS) return
    isReported = true
    await saveProcessSkew(db, { process: workerId, skewMs: time.skewMs() }, new Date(time.now()))
    reportedAtMs = time.monotonicMs()
  }

  async function look(): Promise<void> {
    // A step of the machine's clock is detected without a query.
    log()
    if (time.sampleAgeMs() >= LOOK_MS) await askDatabaseTime(db, time)
    log()
    logStep()
    await report()
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      // Other components report the outage; without the database the last offset is used.
      await look().catch(() => {})
      // In real time, independent of the service's clock.
      await systemClock.sleep(LOOK_MS, stopping.signal)
    }
    if (isReported) await removeProcessSkew(db, { process: workerId }).catch(() => {})
  }

  return { look, run, stop: () => stopping.abort() }
}
