import { pino } from 'pino'
import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import {
  claimRunningJob,
  type ReplayJobRecord,
  type ReplayProgress,
  replayJobs,
} from '../../webhook/replay/replay-job.store.ts'
import type { ReplayJobId } from '../../webhook/replay/replay-job-record.ts'
import { buildJobWorker, type JobStepResult } from './job-worker.ts'

const CREATED = new Date('2026-09-11T12:00:00.000Z')

const clock = buildManualClock()
let id: ReplayJobId
let other: ReplayJobId
const database = await openForFile(createTestDatabase())
beforeEach(async () => {
  clock.advance(1_000)
  await database.pool.query('delete from replay_job')
  ;[id, other] = [await addJob('running'), await addJob('paused')]
})

async function addJob(status: string, failures = 0): Promise<ReplayJobId> {
  const { rows } = await database.pool.query(
    `insert into replay_job (document_id, status, total, failures, created_at, updated_at, filters, confirm_duplicate)
     values (gen_random_uuid(), $1, 5, $2, $3, $3, '{}', false) returning document_id`,
    [status, failures, CREATED],
  )
  return rows[0].document_id
}

type Step = (tx: Database, job: ReplayJobRecord) => Promise<JobStepResult<ReplayProgress> | undefined>

/** A worker of replay jobs whose steps are these, one after the other; behind them there is nothing to do. */
function build(...steps: Step[]) {
  /** Runs before each claim. */
  const hook = { beforeClaim: async () => {} }
  const queued: number[] = []
  const errors: string[] = []
  const logger = pino({ level: 'error' }, { write: (line: string) => void errors.push(line) })
  const worker = buildJobWorker<ReplayJobId, ReplayJobRecord, { job: ReplayJobRecord }, ReplayProgress>(
    { db: database.db, clock, isTrusted: () => true, logger, onQueued: () => queued.push(queued.length) },
    {
      ...{ name: 'probe', failedLine: 'failed', table: replayJobs, describe: () => ({}) },
      claim: async (tx, job) => {
        await hook.beforeClaim()
        const found = await claimRunningJob(tx, job)
        return found && { job: found }
      },
      step: async (tx, { job }) => steps.shift()?.(tx, job),
    },
  )
  return { worker, queued, errors, hook }
}

const progressOf = (processed: number) => ({ processed, replayed: processed, skipped: 0, skippedReasons: {} })
const read = async (job = id) => (await replayJobs.find(database.db, job))!

test('a job is moved on step by step, and ends with the last one', async () => {
  const { worker, queued } = build(
    async () => ({ progress: progressOf(3), queued: 3, isDone: false }),
    async (_tx, job) => ({ progress: progressOf(job.processed + 2), queued: 0, isDone: true }),
  )
  const paused = await read(other)
  expect(await worker.drain()).toBe(true)
  const now = new Date(clock.now())
  expect(await read()).toMatchObject({ ...progressOf(5), status: 'done', endedAt: now, updatedAt: now })
  expect(queued).toHaveLength(1)
  expect(await read(other)).toEqual(paused)
})

test('one for which there is nothing to do now stays as it is', async () => {
  const before = await read()
  expect(await build().worker.drain()).toBe(false)
  expect(await read()).toEqual(before)
})

test('one that another process has stays as it is', async () => {
  const { worker, errors } = build(async () => ({ progress: progressOf(1), queued: 0, isDone: true }))
  await inTransaction(database.db, async (holder) => {
    expect(await claimRunningJob(holder, id)).toBeDefined()
    expect([await worker.drain(), errors]).toEqual([false, []])
  })
  expect(await read()).toMatchObject({ status: 'running', processed: 0 })
})

test('a step that fails leaves nothing of itself, counts, and is made again by the next round', async () => {
  const fail: Step = async (tx) => {
    await tx.updateTable('replay_job').set({ processed: 4, replayed: 4 }).where('document_id', '=', id).execute()
    throw new Error('a fault')
  }
  const { worker, errors } = build(fail, async () => ({ progress: progressOf(1), queued: 0, isDone: false }))
  expect(await worker.drain()).toBe(false)
  expect(errors).toEqual([expect.stringContaining('a fault')])
  const now = new Date(clock.now())
  expect(await read()).toMatchObject({ status: 'running', processed: 0, failures: 1, endedAt: null, updatedAt: now })
  expect(await worker.drain()).toBe(true)
  expect(await read()).toMatchObject({ processed: 1, failures: 0, lastError: null })
})

test('a job fails with its fifth failure in a row, and is left alone then', async () => {
  await database.pool.query('update replay_job set failures = 3 where document_id = $1', [id])
  const fail: Step = async () => {
    throw new Error('a fault')
  }
  const { worker } = build(fail, fail, async () => ({ progress: progressOf(1), queued: 0, isDone: false }))
  await worker.drain()
  expect(await read()).toMatchObject({ status: 'running', failures: 4, endedAt: null })
  await worker.drain()
  expect(await read()).toMatchObject({ status: 'failed', failures: 5, endedAt: new Date(clock.now()) })
  expect(await worker.drain()).toBe(false)
  expect(await read()).toMatchObject({ processed: 0 })
})

test('a job that is paused behind a step that failed is paused, and counts no failure', async () => {
  const { worker, errors, hook } = build(async () => {
    hook.beforeClaim = async () => {
      await replayJobs.move(database.db, id, { from: ['running'], to: 'paused', endedAt: null, now: CREATED })
    }
    throw new Error('a fault')
  })
  expect(await worker.drain()).toBe(false)
  expect(errors).toEqual([expect.stringContaining('a fault')])
  expect(await read()).toMatchObject({ status: 'paused', failures: 0 })
})
