import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { buildJobRunner, countJobFailure, type JobRunner, type MovedJob } from '../../delivery/job-runner.ts'
import type { Database } from '../../postgres/statement/database.ts'
import {
  type ClaimedJob,
  claimJob,
  type JobRecord,
  listRunningJobs,
  lockNextUsers,
  queueUsers,
  updateJob,
} from './job.store.ts'
import { decideSync } from './job.ts'
import type { JobId } from './job-record.ts'

/** Users that one transaction looks at: short, so that pause and cancel take effect at once and no user is locked for long. */
export const JOB_BATCH_SIZE = 200

/** Deliveries of one job that have not ended at most: changes of users are not pushed back by a job. */
export const JOB_OPEN_LIMIT = 1_000

export interface JobWorkerDeps {
  db: Database
  clock: Clock
  logger: Logger
  isEnabled: boolean
  /** Whether the clock may be trusted. Default: always. */
  isTrusted?: () => boolean
  /** Told when deliveries were queued. */
  onQueued: () => void
  /** Resolves when there may be jobs, or at the abort. Default: always. */
  gate?: (signal: AbortSignal) => Promise<unknown>
}

/** Builds what moves jobs on. One for each process with the role `provisioning`. */
export function buildJobWorker(deps: JobWorkerDeps): JobRunner {
  const { db, clock, logger, isEnabled, isTrusted, onQueued, gate } = deps
  return buildJobRunner<JobId, JobRecord>({
    ...{ db, clock, logger, isTrusted, name: 'provisioning job', onQueued, gate },
    listRunning: async () => (isEnabled ? await listRunningJobs(db) : []),
    failedLine: 'provisioning job round failed: see docs/operations.md, provisioning jobs',
    advance: advanceJob,
    fail: countFailure,
    describe: describeJob,
  })
}

/** Looks at the next users of a job in the transaction `tx`. Undefined when there is nothing to do for it now. */
async function advanceJob(tx: Database, id: JobId, now: Date): Promise<MovedJob<JobRecord> | undefined> {
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
  const changed = await updateJob(
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
  return { job: changed, queued }
}

/** How many users a job may look at now. Pure. */
export function findBatchSize({ mayRun, open }: Pick<ClaimedJob, 'mayRun' | 'open'>): number {
  return mayRun ? Math.max(0, Math.min(JOB_BATCH_SIZE, JOB_OPEN_LIMIT - open)) : 0
}

async function countFailure(tx: Database, id: JobId, now: Date): Promise<JobRecord | undefined> {
  const claimed = await claimJob(tx, id)
  return claimed && updateJob(tx, id, countJobFailure(claimed.job.failures), now)
}

function describeJob({ id, target, kind, status, total, processed, queued }: JobRecord): Record<string, unknown> {
  return { provisioning_job: id, target, kind, status, total, processed, queued }
}
