import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Loop } from '../../base/rounds.ts'
import { isAccountRefused } from '../../postgres/cell/account-fence.ts'
import { type Database, inTransaction, isDatabaseUnavailable, isGivenUp } from '../../postgres/statement/database.ts'

const IDLE_POLL_MS = 1_000

const HELD_POLL_MS = 250

/** Result of a batch of a job. */
export interface MovedJob<Job> {
  job: Job
  queued: number
}

/** The steps of jobs of one kind, and their dependencies. */
export interface JobRunnerDeps<Id, Job extends { status: string }> {
  db: Database
  clock: Clock
  /** Whether the clock is trusted; otherwise no job is moved. */
  isTrusted: () => boolean
  logger: Logger
  /** Name of a job in log lines: `replay job`. */
  name: string
  /** The log line of a round of a job that failed. */
  failedLine: string
  /** Running jobs of all processes after one of them, or from the first; none behind the last. */
  listRunning(db: Database, after: Id | null): Promise<readonly Id[]>
  /** Moves a job by one batch in the transaction `tx`. Undefined when there is nothing to do now. */
  advance(tx: Database, id: Id, now: Date): Promise<MovedJob<Job> | undefined>
  /** Counts a round that failed (`countJobFailure`). Undefined when the job is no longer running. */
  fail(tx: Database, id: Id, now: Date): Promise<Job | undefined>
  describe(job: Job): Record<string, unknown>
  onQueued: () => void
  /** Resolves when there may be jobs, or at the abort. Default: always. */
  latch?: ((signal: AbortSignal) => Promise<unknown>) | undefined
}

/** Moves jobs that fill a queue in batches. Any number of processes may run one; a job is moved by one of them at a time. */
export interface JobRunner extends Loop {
  /** Moves every job as far as possible: to its end, or until enough rows are queued. Returns whether one moved. */
  drain(): Promise<boolean>
}

/** Result of a round: a job moved, all jobs wait, or none runs. */
type Round = 'moved' | 'held' | 'idle'

/** Builds a runner. */
export function buildJobRunner<Id, Job extends { status: string }>(deps: JobRunnerDeps<Id, Job>): JobRunner {
  const { db, clock, logger, name } = deps
  const stopping = new AbortController()

  async function round(): Promise<Round> {
    if (!deps.isTrusted()) return 'idle'
    let result: Round = 'idle'
    let after: Id | null = null
    // To the last: jobs that wait, as many as there may be, hold none back.
    while (!stopping.signal.aborted) {
      const jobs: readonly Id[] = await deps.listRunning(db, after)
      if (jobs.length === 0) break
      if (result === 'idle') result = 'held'
      for (const id of jobs) if (!stopping.signal.aborted && (await advance(id))) result = 'moved'
      after = jobs.at(-1) ?? null
    }
    return result
  }

  /** One batch of one job. A failure rolls back the batch with its progress, so nothing is queued twice. */
  async function advance(id: Id): Promise<boolean> {
    const now = new Date(clock.now())
    try {
      const moved = await inTransaction(db, (tx) => deps.advance(tx, id, now))
      if (!moved) return false
      if (moved.queued > 0) deps.onQueued()
      if (moved.job.status === 'done') logger.info(deps.describe(moved.job), `${name} done`)
      return true
    } catch (error) {
      // It goes on when its account has moved, here or there.
      if (isAccountRefused(error)) return false
      // Not a fault of the job: it continues when the database answers again, or when the locks are released.
      if (isDatabaseUnavailable(error) || isGivenUp(error)) throw error
      const job = await inTransaction(db, (tx) => deps.fail(tx, id, now))
      logger.error({ err: error, ...(job && deps.describe(job)) }, deps.failedLine)
      return false
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await deps.latch?.(stopping.signal)
        const result = await round()
        if (result !== 'moved') await clock.sleep(result === 'held' ? HELD_POLL_MS : IDLE_POLL_MS, stopping.signal)
      } catch (error) {
        logger.error({ err: error }, `${name} worker round failed: see docs/operations.md, database`)
        await clock.sleep(IDLE_POLL_MS, stopping.signal)
      }
    }
  }

  return {
    drain: async () => {
      let hasMoved = false
      while ((await round()) === 'moved') hasMoved = true
      return hasMoved
    },
    run,
    stop: () => stopping.abort(),
  }
}
