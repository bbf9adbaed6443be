import type { UserId } from '../../base/id.ts'
import type { JobRunner } from '../../delivery/job/job-runner.ts'
import { buildJobWorker, type JobStepResult, type JobWorkerDeps } from '../../delivery/job/job-worker.ts'
import type { Database } from '../../postgres/statement/database.ts'
import {
  type ClaimedJob,
  claimJob,
  type JobRecord,
  lockNextStreams,
  lockNextUsers,
  provisioningJobs,
  queueUsers,
  replayFailed,
  type SyncProgress,
} from './job.store.ts'
import { decideSync } from './job.ts'
import type { JobId } from './job-record.ts'

/** Users in one transaction: few, so that pause and cancel take effect at once and no user is locked for long. */
export const JOB_BATCH_SIZE = 200

/** Maximum number of open deliveries of one job, so that a job does not delay changes of users. */
export const JOB_OPEN_LIMIT = 1_000

export interface ProvisioningJobWorkerDeps extends JobWorkerDeps {
  isEnabled: boolean
}

/** Builds the runner of jobs. One for each process with the role `provisioning`. */
export function buildProvisioningJobWorker({ isEnabled, ...deps }: ProvisioningJobWorkerDeps): JobRunner {
  return buildJobWorker<JobId, JobRecord, ClaimedJob, SyncProgress>(deps, {
    name: 'provisioning job',
    failedLine: 'provisioning job round failed: see docs/operations.md, provisioning jobs',
    table: {
      ...provisioningJobs,
      listRunning: async (running, after) => (isEnabled ? await provisioningJobs.listRunning(running, after) : []),
    },
    claim: (tx, id) => claimJob(tx, { id }),
    step: queueNext,
    describe: describeJob,
  })
}

/** A batch of a job: its users, in the order of their ids, and the number of queued deliveries. */
interface Batch {
  users: readonly UserId[]
  queued: number
}

/** Processes the next users of a job. Undefined while it must wait, or has too many open deliveries. */
async function queueNext(
  tx: Database,
  claimed: ClaimedJob,
  now: Date,
): Promise<JobStepResult<SyncProgress> | undefined> {
  const { job } = claimed
  const limit = findBatchSize(claimed)
  if (limit === 0) return undefined
  const { users, queued } = await (job.kind === 'redrive' ? redriveNext : syncNext)(tx, claimed, { limit, now })
  const processed = job.processed + users.length
  const isDone = users.length < limit
  const last = users.at(-1)
  const progress = {
    processed,
    queued: job.queued + queued,
    // Users created since are included.
    total: isDone ? processed : Math.max(job.total, processed),
    ...(last && { lastUser: last }),
  }
  return { progress, queued, isDone }
}

/** Queues the present state of the users that the target lacks. */
async function syncNext(
  tx: Database,
  { job, lastUser }: ClaimedJob,
  { limit, now }: { limit: number; now: Date },
): Promise<Batch> {
  const { target, kind, id } = job
  if (kind === 'redrive') throw new Error('a redrive queues no state of its own')
  const users = await lockNextUsers(tx, { target, after: lastUser, limit })
  const changes = users.flatMap((user) => {
    const type = decideSync(kind, user)
    return type ? [{ id: user.id, type }] : []
  })
  const [queuedUsers, types] = [changes.map((change) => change.id), changes.map((change) => change.type)]
  const queued = changes.length > 0 ? await queueUsers(tx, { target, users: queuedUsers, types, now, job: id }) : 0
  return { users: users.map((user) => user.id), queued }
}

/** Replays the latest delivery of each user, if it failed. */
async function redriveNext(
  tx: Database,
  { job: { target, id }, lastUser }: ClaimedJob,
  { limit, now }: { limit: number; now: Date },
): Promise<Batch> {
  const streams = await lockNextStreams(tx, { target, after: lastUser, limit })
  const deliveries = streams.flatMap(({ failedDelivery }) => failedDelivery ?? [])
  const queued = deliveries.length > 0 ? await replayFailed(tx, { target, deliveries, now, job: id }) : 0
  return { users: streams.map(({ user }) => user), queued }
}

/** Number of users that a job may process now. Pure. */
export function findBatchSize({ mayRun, open }: Pick<ClaimedJob, 'mayRun' | 'open'>): number {
  return mayRun ? Math.max(0, Math.min(JOB_BATCH_SIZE, JOB_OPEN_LIMIT - open)) : 0
}

function describeJob({ id, target, kind, status, total, processed, queued }: JobRecord): Record<string, unknown> {
  return { provisioning_job: id, target, kind, status, total, processed, queued }
}
