import type { Database } from '../../postgres/statement/database.ts'
import { buildJobRunner, type JobRunner, type JobRunnerDeps } from './job-runner.ts'
import { countJobFailure, type JobStatus } from './job-state.ts'
import type { JobTable } from './job-table.ts'

export interface JobStepResult<Progress> {
  progress: Progress
  queued: number
  isDone: boolean
}

/** A kind of job: its table, and one step of it. */
export interface JobKind<Id extends string, Job, Claimed extends { job: Job }, Progress extends object>
  extends Pick<JobRunnerDeps<Id, Job & { status: JobStatus }>, 'name' | 'failedLine' | 'describe'> {
  table: Pick<JobTable<Id, Job, Progress>, 'listRunning' | 'change'>
  /** Locks a running job until the transaction ends; undefined when it runs no longer, or another worker has it. */
  claim(tx: Database, id: Id): Promise<Claimed | undefined>
  /** Does a part of a claimed job in the transaction `tx`. Undefined when there is nothing to do now. */
  step(tx: Database, claimed: Claimed, now: Date): Promise<JobStepResult<Progress> | undefined>
}

/** Dependencies of the mover of a kind of job. */
export type JobWorkerDeps = Pick<
  JobRunnerDeps<string, { status: string }>,
  'db' | 'clock' | 'isTrusted' | 'logger' | 'onQueued' | 'latch'
>

/** Builds the mover of a kind of job: each step, its progress and the end of the job are one transaction. */
export function buildJobWorker<
  Id extends string,
  Job extends { status: JobStatus; failures: number },
  Claimed extends { job: Job },
  Progress extends object,
>(deps: JobWorkerDeps, kind: JobKind<Id, Job, Claimed, Progress>): JobRunner {
  const { name, failedLine, table } = kind
  return buildJobRunner<Id, Job>({
    ...deps,
    ...{ name, failedLine, listRunning: table.listRunning, describe: kind.describe },
    advance: async (tx, id, now) => {
      const claimed = await kind.claim(tx, id)
      const done = claimed && (await kind.step(tx, claimed, now))
      if (!done) return undefined
      const end = done.isDone ? { status: 'done' as const, endedAt: now } : {}
      const job = await table.change(tx, id, { ...done.progress, ...end, failures: 0, lastError: null }, now)
      return { job, queued: done.queued }
    },
    fail: async (tx, id, now) => {
      const claimed = await kind.claim(tx, id)
      if (!claimed) return undefined
      const counted = countJobFailure(claimed.job.failures)
      const end = counted.status ? { endedAt: now } : {}
      return table.change(tx, id, { ...counted, ...end } as Parameters<typeof table.change>[2], now)
    },
  })
}
