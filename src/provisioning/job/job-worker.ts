import type { Logger } from 'pino'
import type { Clock } from '../../clock.ts'
import { type Database, inTransaction, isDatabaseUnavailable } from '../../postgres/database.ts'
import { type ClaimedJob, claimJob, listRunningJobs, lockNextUsers, queueUsers, updateJob } from './job.store.ts'
import { decideSync, type JobId, type JobRecord } from './job.ts'

/** Users that one transaction looks at: short, so that pause and cancel take effect at once and no user is locked for long. */
export const JOB_BATCH_SIZE = 200

/** Deliveries of one job that have not ended at most: changes of users are not pushed back by a job. */
export const JOB_OPEN_LIMIT = 1_000

/** How long the worker sleeps when no job runs. */
const IDLE_POLL_MS = 1_000

/** How long it sleeps while its jobs wait for what they queued. */
const HELD_POLL_MS = 250

/** Rounds of a job that may fail one after the other before it ends as `failed`. */
const MAX_FAILURES = 5

export interface JobWorkerDeps {
  db: Database
  clock: Clock
  logger: Logger
  isEnabled: boolean
  /** Told when deliveries were queued. */
  onQueued: () => void
  /** Resolves when there may be jobs, or at the abort. Default: always. */
  gate?: (signal: AbortSignal) => Promise<unknown>
}

/** Moves jobs on. One for each process with the role `provisioning`; a job is moved by one of them at a time. */
export interface JobWorker {
  /** Moves every job as far as it may go now. Returns whether one moved. */
  drain(): Promise<boolean>
  run(): Promise<void>
  stop(): void
}

/** Builds the worker. */
export function buildJobWorker(deps: JobWorkerDeps): JobWorker {
  const { db, clock, logger } = deps
  const stopping = new AbortController()

  async function round(): Promise<'moved' | 'held' | 'idle'> {
    const jobs = deps.isEnabled ? await listRunningJobs(db) : []
    let result: 'moved' | 'held' | 'idle' = jobs.length > 0 ? 'held' : 'idle'
    for (const id of jobs) if (!stopping.signal.aborted && (await advance(id))) result = 'moved'
    return result
  }

  /** One batch of one job. Whatever fails is undone with the progress it would have made, so nothing is queued twice. */
  async function advance(id: JobId): Promise<boolean> {
    try {
      const now = new Date(clock.now())
      const moved = await inTransaction(db, (tx) => advanceJob(tx, id, now))
      if (!moved) return false
      deps.onQueued()
      if (moved.status === 'done') logger.info(describeJob(moved), 'provisioning job done')
      return true
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error
      const job = await inTransaction(db, (tx) => countFailure(tx, id, new Date(clock.now())))
      logger.error(
        { err: error, ...(job && describeJob(job)) },
        'provisioning job round failed: see docs/operations.md, provisioning jobs',
      )
      return false
    }
  }

  return {
    drain: async () => {
      let hasMoved = false
      while ((await round()) === 'moved') hasMoved = true
      return hasMoved
    },
    run: async () => {
      while (!stopping.signal.aborted) {
        try {
          await deps.gate?.(stopping.signal)
          const result = await round()
          if (result !== 'moved') await clock.sleep(result === 'held' ? HELD_POLL_MS : IDLE_POLL_MS, stopping.signal)
        } catch (error) {
          logger.error({ err: error }, 'provisioning job worker round failed: see docs/operations.md, database')
          await clock.sleep(IDLE_POLL_MS, stopping.signal)
        }
      }
    },
    stop: () => stopping.abort(),
  }
}

/** Looks at the next users of a job in the transaction `tx`. Undefined when there is nothing to do for it now. */
async function advanceJob(tx: Database, id: JobId, now: Date): Promise<JobRecord | undefined> {
  const claimed = await claimJob(tx, id)
  const limit = claimed ? findBatchSize(claimed) : 0
  if (!claimed || limit === 0) return undefined
  const { job, lastUser } = claimed
  const users = await lockNextUsers(tx, { target: job.target, after: lastUser, limit })
  const changes = users.flatMap((user) => {
    const type = decideSync(job.kind, user)
    return type ? [{ id: user.id, type }] : []
  })
  const queued = await queueUsers(tx, {
    target: job.target,
    users: changes.map((one) => one.id),
    types: changes.map((one) => one.type),
    now,
    job: id,
  })
  const processed = job.processed + users.length
  const last = users.at(-1)
  return updateJob(
    tx,
    id,
    {
      processed,
      queued: job.queued + queued,
      // Users that came since are looked at too.
      total: Math.max(job.total, processed),
      failures: 0,
      lastError: null,
      ...(last && { lastUser: last.id }),
      ...(users.length < limit && { status: 'done' as const, endedAt: now, total: processed }),
    },
    now,
  )
}

/** How many users a job may look at now. Pure. */
export function findBatchSize({ mayRun, open }: Pick<ClaimedJob, 'mayRun' | 'open'>): number {
  return mayRun ? Math.max(0, Math.min(JOB_BATCH_SIZE, JOB_OPEN_LIMIT - open)) : 0
}

/** Counts a failed round. After a few in a row the job ends as failed, so that a broken one does not run for ever. */
async function countFailure(tx: Database, id: JobId, now: Date): Promise<JobRecord | undefined> {
  const claimed = await claimJob(tx, id)
  if (!claimed) return undefined
  const failures = claimed.job.failures + 1
  if (failures < MAX_FAILURES) return updateJob(tx, id, { failures }, now)
  const lastError = `${failures} rounds failed one after the other; the log says why. Resume it when that is mended.`
  return updateJob(tx, id, { failures, status: 'failed', lastError }, now)
}

function describeJob({ id, target, kind, status, total, processed, queued }: JobRecord): Record<string, unknown> {
  return { provisioning_job: id, target, kind, status, total, processed, queued }
}
