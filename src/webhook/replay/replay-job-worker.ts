import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { buildJobRunner, countJobFailure, type JobRunner, type MovedJob } from '../../delivery/job-runner.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listReplayFacts, scheduleReplays } from '../ledger/replay.store.ts'
import {
  changeReplayJob,
  claimRunningJob,
  countOnTheirWay,
  findExistingDispatches,
  listNextItems,
  listRunningJobs,
  type ReplayJobRecord,
} from './replay-job.store.ts'
import { decideRows } from './replay-job.ts'
import type { ReplayJobId, SkipCounts } from './replay-job-record.ts'

/** Rows of a job dealt with in one transaction: short, so that pause and cancel take effect at once. */
export const REPLAY_BATCH_SIZE = 100

/** Rows of one job on their way at most. The ledger's queue grows by no more than this, and new events are not pushed back. */
export const REPLAYS_ON_THEIR_WAY_LIMIT = 200

export interface ReplayWorkerDeps {
  db: Database
  clock: Clock
  logger: Logger
  workerId: string
  /** Whether the clock may be trusted. Default: always. */
  isTrusted?: () => boolean
  /** Told when rows became due. */
  onReplays: () => void
}

/** Builds what moves bulk replays on. One for each process with the role `dispatcher`. */
export function buildReplayWorker(deps: ReplayWorkerDeps): JobRunner {
  const { db, clock, logger, workerId, isTrusted } = deps
  return buildJobRunner<ReplayJobId, ReplayJobRecord>({
    ...{ db, clock, logger, isTrusted, name: 'replay job', listRunning: listRunningJobs },
    failedLine: 'replay job round failed: see docs/operations.md, replay jobs',
    advance: (tx, id, now) => advanceJob(tx, id, { workerId, now }),
    fail: countFailure,
    describe: describeJob,
    onQueued: deps.onReplays,
  })
}

/**
 * Deals with the next rows of a job in the transaction `tx`: those that may be replayed become due, the others are counted
 * by their reason, and the job's position moves past them. Undefined when there is nothing to do for it now.
 */
async function advanceJob(
  tx: Database,
  id: ReplayJobId,
  { workerId, now }: { workerId: string; now: Date },
): Promise<MovedJob<ReplayJobRecord> | undefined> {
  const job = await claimRunningJob(tx, id)
  if (!job) return undefined
  const room = REPLAYS_ON_THEIR_WAY_LIMIT - (await countOnTheirWay(tx, id))
  if (room <= 0) return undefined
  const items = await listNextItems(tx, job, Math.min(room, REPLAY_BATCH_SIZE))
  const facts = await listReplayFacts(tx, items, { lock: true })
  const unlocked = items.filter((item) => !facts.has(item))
  const existing = await findExistingDispatches(tx, unlocked)
  const { replayable, skipped } = decideRows(items, facts, job.confirmDuplicate, existing)
  await scheduleReplays(tx, replayable, { job: id, workerId, now })
  const processed = job.processed + items.length
  const isDone = processed >= job.total
  const changed = await changeReplayJob(
    tx,
    id,
    {
      processed,
      replayed: job.replayed + replayable.length,
      skipped: job.skipped + items.length - replayable.length,
      skippedReasons: addCounts(job.skippedReasons, skipped),
      failures: 0,
      lastError: null,
      ...(isDone && { status: 'done' as const, endedAt: now }),
    },
    now,
  )
  return { job: changed, queued: replayable.length }
}

function addCounts(counted: SkipCounts, added: SkipCounts): SkipCounts {
  const sum = { ...counted }
  for (const [reason, count] of Object.entries(added) as [keyof SkipCounts, number][])
    sum[reason] = (sum[reason] ?? 0) + count
  return sum
}

async function countFailure(tx: Database, id: ReplayJobId, now: Date): Promise<ReplayJobRecord | undefined> {
  const job = await claimRunningJob(tx, id)
  if (!job) return undefined
  const counted = countJobFailure(job.failures)
  return changeReplayJob(tx, id, { ...counted, ...(counted.status && { endedAt: now }) }, now)
}

function describeJob(job: ReplayJobRecord): Record<string, unknown> {
  const { id, status, total, processed, replayed, skipped } = job
  return { replay_job: id, status, total, processed, replayed, skipped }
}
