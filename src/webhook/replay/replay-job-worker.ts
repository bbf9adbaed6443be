import type { Logger } from 'pino'
import type { Clock } from '../../clock.ts'
import { type Database, inTransaction, isDatabaseUnavailable } from '../../postgres/database.ts'
import { listReplayFacts, scheduleReplays } from './replay.store.ts'
import {
  changeReplayJob,
  claimRunningJob,
  countOnTheirWay,
  findExistingDispatches,
  listNextItems,
  listRunningJobs,
} from './replay-job.store.ts'
import { decideRows, type ReplayJobId, type ReplayJobRecord, type SkipCounts } from './replay-job.ts'

/** Rows of a job dealt with in one transaction: short, so that pause and cancel take effect at once. */
export const REPLAY_BATCH_SIZE = 100

/** Rows of one job on their way at most. The ledger's queue grows by no more than this, and new events are not pushed back. */
export const REPLAYS_ON_THEIR_WAY_LIMIT = 200

/** How long the worker sleeps when no job runs. */
const IDLE_POLL_MS = 1_000

/** How long it sleeps while its jobs wait for what they put on its way. */
const HELD_POLL_MS = 250

/** Rounds of a job that may fail one after the other before it ends as `failed`. */
const MAX_FAILURES = 5

export interface ReplayWorkerDeps {
  db: Database
  clock: Clock
  logger: Logger
  workerId: string
  /** Told when rows became due. */
  onReplays: () => void
}

/** Moves bulk replays on. One for each process with the role `dispatcher`; a job is moved by one of them at a time. */
export interface ReplayWorker {
  /** Moves every job as far as it goes now: to its end, or until enough of it is on its way. */
  drain(): Promise<void>
  run(): Promise<void>
  stop(): void
}

/** What a round came to: a job moved, all of them wait, or none runs. */
type Round = 'moved' | 'held' | 'idle'

/** Builds the worker. */
export function buildReplayWorker(deps: ReplayWorkerDeps): ReplayWorker {
  const { db, clock, logger } = deps
  const stopping = new AbortController()

  async function round(): Promise<Round> {
    const jobs = await listRunningJobs(db)
    let result: Round = jobs.length > 0 ? 'held' : 'idle'
    for (const id of jobs) if ((await advance(id)) && !stopping.signal.aborted) result = 'moved'
    return result
  }

  /** One batch of one job. Whatever fails is undone with the progress it would have made, so nothing is done twice. */
  async function advance(id: ReplayJobId): Promise<boolean> {
    try {
      const moved = await inTransaction(db, (tx) => advanceJob(deps, tx, id))
      if (!moved) return false
      if (moved.replayed > 0) deps.onReplays()
      if (moved.job.status === 'done') logger.info(describeJob(moved.job), 'replay job done')
      return true
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error
      const job = await inTransaction(db, (tx) => countFailure(tx, id, new Date(clock.now())))
      logger.error(
        { err: error, ...(job && describeJob(job)) },
        'replay job round failed: see docs/operations.md, replay jobs',
      )
      return false
    }
  }

  async function drain(): Promise<void> {
    while ((await round()) === 'moved');
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        const result = await round()
        if (result !== 'moved') await clock.sleep(result === 'held' ? HELD_POLL_MS : IDLE_POLL_MS, stopping.signal)
      } catch (error) {
        logger.error({ err: error }, 'replay worker round failed: see docs/operations.md, database')
        await clock.sleep(IDLE_POLL_MS, stopping.signal)
      }
    }
  }

  return { drain, run, stop: () => stopping.abort() }
}

/**
 * Deals with the next rows of a job in the transaction `tx`: those that may be replayed become due, the others are counted
 * by their reason, and the job's position moves past them. Undefined when there is nothing to do for it now.
 */
async function advanceJob(
  deps: ReplayWorkerDeps,
  tx: Database,
  id: ReplayJobId,
): Promise<{ job: ReplayJobRecord; replayed: number } | undefined> {
  const now = new Date(deps.clock.now())
  const job = await claimRunningJob(tx, id)
  if (!job) return undefined
  const room = REPLAYS_ON_THEIR_WAY_LIMIT - (await countOnTheirWay(tx, id))
  if (room <= 0) return undefined
  const items = await listNextItems(tx, job, Math.min(room, REPLAY_BATCH_SIZE))
  const facts = await listReplayFacts(tx, items, { lock: true })
  const unlocked = items.filter((item) => !facts.has(item))
  const existing = await findExistingDispatches(tx, unlocked)
  const { replayable, skipped } = decideRows(items, facts, job.confirmDuplicate, existing)
  await scheduleReplays(tx, replayable, { job: id, workerId: deps.workerId, now })
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
  return { job: changed, replayed: replayable.length }
}

function addCounts(counted: SkipCounts, added: SkipCounts): SkipCounts {
  const sum = { ...counted }
  for (const [reason, count] of Object.entries(added) as [keyof SkipCounts, number][])
    sum[reason] = (sum[reason] ?? 0) + count
  return sum
}

/** Counts a failed round. After a few in a row the job ends as failed, so that a broken one does not go round for ever. */
async function countFailure(tx: Database, id: ReplayJobId, now: Date): Promise<ReplayJobRecord | undefined> {
  const job = await claimRunningJob(tx, id)
  if (!job) return undefined
  const failures = job.failures + 1
  if (failures < MAX_FAILURES) return changeReplayJob(tx, id, { failures }, now)
  const lastError = `${failures} rounds failed one after the other; the log says why. Resume it when that is mended.`
  return changeReplayJob(tx, id, { failures, status: 'failed', lastError, endedAt: now }, now)
}

function describeJob(job: ReplayJobRecord): Record<string, unknown> {
  const { id, status, total, processed, replayed, skipped } = job
  return { replay_job: id, status, total, processed, replayed, skipped }
}
