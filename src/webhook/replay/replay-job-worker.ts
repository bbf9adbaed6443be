import type { JobRunner } from '../../delivery/job/job-runner.ts'
import { buildJobWorker, type JobStepResult, type JobWorkerDeps } from '../../delivery/job/job-worker.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listReplayFacts, scheduleReplays } from '../ledger/replay.store.ts'
import {
  claimRunningJob,
  countOnTheirWay,
  findExistingDispatches,
  listNextItems,
  type ReplayJobRecord,
  type ReplayProgress,
  replayJobs,
} from './replay-job.store.ts'
import { decideRows } from './replay-job.ts'
import type { ReplayJobId, SkipCounts } from './replay-job-record.ts'

/** Rows of a job in one transaction: few, so that pause and cancel take effect at once. */
export const REPLAY_BATCH_SIZE = 100

/** Maximum number of queued rows of one job, so that it does not delay new events. */
export const REPLAYS_ON_THEIR_WAY_LIMIT = 200

export interface ReplayWorkerDeps extends JobWorkerDeps {
  workerId: string
}

/** Builds the runner of bulk replays. One for each process with the role `dispatcher`. */
export function buildReplayWorker({ workerId, ...deps }: ReplayWorkerDeps): JobRunner {
  return buildJobWorker<ReplayJobId, ReplayJobRecord, { job: ReplayJobRecord }, ReplayProgress>(deps, {
    name: 'replay job',
    failedLine: 'replay job round failed: see docs/operations.md, replay jobs',
    table: replayJobs,
    claim: async (tx, id) => {
      const job = await claimRunningJob(tx, id)
      return job && { job }
    },
    step: (tx, { job }, now) => replayNext(tx, job, { workerId, now }),
    describe: describeJob,
  })
}

/** Processes the next rows of a job, and counts those skipped. Undefined while enough of its rows are queued. */
async function replayNext(
  tx: Database,
  job: ReplayJobRecord,
  { workerId, now }: { workerId: string; now: Date },
): Promise<JobStepResult<ReplayProgress> | undefined> {
  const room = REPLAYS_ON_THEIR_WAY_LIMIT - (await countOnTheirWay(tx, { job: job.id }))
  if (room <= 0) return undefined
  const items = await listNextItems(tx, job, Math.min(room, REPLAY_BATCH_SIZE))
  const facts = await listReplayFacts(tx, items, { lock: true })
  const unlocked = items.filter((item) => !facts.has(item))
  const existing = await findExistingDispatches(tx, unlocked)
  const { replayable, skipped } = decideRows(items, facts, job.confirmDuplicate, existing)
  await scheduleReplays(tx, replayable, { job: job.id, workerId, now })
  const processed = job.processed + items.length
  const progress = {
    processed,
    replayed: job.replayed + replayable.length,
    skipped: job.skipped + items.length - replayable.length,
    skippedReasons: addCounts(job.skippedReasons, skipped),
  }
  return { progress, queued: replayable.length, isDone: processed >= job.total }
}

function addCounts(counted: SkipCounts, added: SkipCounts): SkipCounts {
  const sum = { ...counted }
  for (const [reason, count] of Object.entries(added) as [keyof SkipCounts, number][])
    sum[reason] = (sum[reason] ?? 0) + count
  return sum
}

function describeJob(job: ReplayJobRecord): Record<string, unknown> {
  const { id, status, total, processed, replayed, skipped } = job
  return { replay_job: id, status, total, processed, replayed, skipped }
}
