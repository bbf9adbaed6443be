import type { JobMove } from '../../delivery/job/job-state.ts'
import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineRead, defineRow } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { loadTarget } from '../target/target.ts'
import { JobRow, JobWithOutcomes, toOutcomesRow } from './job.schema.ts'
import { selectJobs, toJobRow } from './job.store.ts'
import { changeJob, type JobDeps, loadJob, loadJobWithOutcomes, startJob } from './job.ts'
import type { JobKind } from './job-record.ts'

const JOB_FIELDS = rowFields({
  target: { type: 'uuid' },
  kind: { type: 'text', like: 'few-rows' },
  status: { type: 'text', like: 'few-rows' },
  created_by: { type: 'uuid' },
})

const OF_JOB = { resource: 'provisioning-job', path: '/api/v3/provisioning/job/{id}', accountScope: 'none' } as const

const job = defineRow(
  { ...OF_JOB, params: IdParams, data: JobRow },
  { noun: 'Job', load: ({ db, params }) => loadJob(db, params.id), toRow: toJobRow },
)

/** The kinds of jobs differ only in their texts. */
function defineStart(kind: JobKind, words: { summary: string; description: string }) {
  return defineRoute(
    {
      method: 'POST',
      path: `/api/v3/provisioning/target/{id}/${kind}`,
      resource: 'provisioning-target',
      action: kind,
      accountScope: 'none',
      status: 202,
      ...words,
      params: IdParams,
      data: JobRow,
    },
    {
      row: { find: (_deps: JobDeps, { db, params }) => loadTarget(db, params.id), neededBy: 'validation' },
      handle: async (deps, { db, params, caller, now }) => {
        const job = await startJob(deps, db, { target: params.id, kind, by: caller.userId, now })
        return {
          data: toJobRow(job),
          message: `Started. Read it at /api/v3/provisioning/job/${job.id}.`,
          changed: [{ id: job.target, account: null }],
          location: `/api/v3/provisioning/job/${job.id}`,
        }
      },
    },
  )
}

/** The three moves differ only in their texts. */
function defineMove(move: JobMove, words: { summary: string; description: string; message: string }) {
  const { message, ...declared } = words
  return job.change(
    { ...declared, method: 'POST', path: `${OF_JOB.path}/${move}`, action: move },
    async (_deps: JobDeps, { db, params, now }) => ({ row: await changeJob(db, params.id, { move, now }), message }),
  )
}

/** Jobs of provisioning (docs/contract/provisioning.md#sync-and-reconcile). */
export const jobRoutes: Routes<JobDeps> = [
  defineStart('sync', {
    summary: 'Send every user to a provisioning target',
    description: 'Starts a job that queues `user.provisioned` of every user, at the pace of the target.',
  }),
  defineStart('reconcile', {
    summary: 'Send the missing user states to a provisioning target',
    description:
      'Starts a job that compares each user with what the target accepted last, and queues the current state where they differ.',
  }),
  defineStart('redrive', {
    summary: 'Replay the failed deliveries of a provisioning target',
    description:
      'Starts a job that replays the latest delivery of each user where it is `failed` or `dead_letter`, at the pace of the target. A delivery that a later one of the same user supersedes is skipped.',
  }),
  job.list(
    { summary: 'List provisioning jobs', list: JOB_FIELDS },
    { rows: ({ db }) => buildWholeList(selectJobs(db)), message: 'Provisioning jobs.' },
  ),
  defineRead(
    {
      ...OF_JOB,
      summary: 'Read one provisioning job with its progress',
      params: IdParams,
      data: JobWithOutcomes,
    },
    {
      load: ({ db, params }) => loadJobWithOutcomes(db, params.id),
      toRow: ({ job, outcomes }) => ({ ...toJobRow(job), deliveries: toOutcomesRow(outcomes) }),
      message: 'Provisioning job.',
      changedOf: ({ job }) => [{ id: job.id, account: null }],
    },
  ),
  defineMove('pause', {
    summary: 'Pause a provisioning job',
    description: 'The job queues no further delivery until it is resumed; queued ones are delivered.',
    message: 'Job paused.',
  }),
  defineMove('resume', {
    summary: 'Resume a provisioning job',
    description: 'The job continues after the last processed user.',
    message: 'Job resumed.',
  }),
  defineMove('cancel', {
    summary: 'Cancel a provisioning job',
    description: 'The job queues no further delivery; queued ones are delivered.',
    message: 'Job cancelled.',
  }),
]
