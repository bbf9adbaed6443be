import type { JobMove } from '../../delivery/job/job-state.ts'
import { parseFilters, rowFields } from '../../http/listing/listing.ts'
import { buildList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineRow } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { DISPATCH_FIELDS } from '../ledger/dispatch.routes.ts'
import { isJobOf, keepOwnJobs } from '../reach/account-reach.store.ts'
import { loadWithin, rowWithin } from '../reach/account-reach.ts'
import { BY_JOB, BY_REPLAY_FILTERS } from '../reach/row-owner.ts'
import { BulkReplayBody, ReplayJobRow, ReplayPreviewRow, toReplayPreviewRow } from './replay-job.schema.ts'
import { selectReplayJobs, toReplayJobRow } from './replay-job.store.ts'
import { createReplayJob, loadReplayJob, moveReplayJob, previewReplay, type ReplayJobDeps } from './replay-job.ts'

const REPLAY_JOB_FIELDS = rowFields({
  status: { type: 'text', like: 'few-rows' },
  created_by: { type: 'uuid' },
})

const OF_REPLAY_JOB = {
  resource: 'replay-job',
  path: '/api/v3/webhook/replay-job/{id}',
  accountScope: 'none',
  ownAccounts: true,
  cell: BY_JOB,
  params: IdParams,
  data: ReplayJobRow,
} as const

const replayJob = defineRow(OF_REPLAY_JOB, {
  noun: 'Replay job',
  load: (request) => loadWithin('job', request, loadReplayJob),
  row: rowWithin('job'),
  toRow: toReplayJobRow,
})

const defineMove = (move: JobMove, message: string, words: { summary: string; description: string }) =>
  replayJob.change(
    { method: 'POST', path: `/api/v3/webhook/replay-job/{id}/${move}`, action: move, ...words },
    async (_deps, { db, params, now }) => ({ row: await moveReplayJob(db, params.id, { move, now }), message }),
  )

export const replayJobRoutes: Routes<ReplayJobDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/webhook/dispatch/replay',
      resource: 'webhook-dispatch',
      action: 'replay-all',
      permission: 'webhook-dispatch:replay',
      cell: BY_REPLAY_FILTERS,
      accountScope: 'none',
      ownAccounts: true,
      isExpensive: true,
      status: 202,
      summary: 'Replay many dispatches',
      description:
        'Creates a job of the rows that match the filters now, at most 10,000 (422 when they are more and ' +
        'no `limit` is sent). Its worker puts them on their way, oldest first, one POST each, a few hundred at a time, so ' +
        'that new events are not pushed back. Rows that may not be replayed when their turn comes are skipped and counted ' +
        'by reason. With `dry_run` nothing is done.',
      body: BulkReplayBody,
      data: ReplayJobRow,
      also: { status: 200, description: 'With `dry_run`: the expected result.', data: ReplayPreviewRow },
    },
    async (deps: ReplayJobDeps, { db, scope, body, caller, now }) => {
      const { filters, confirm_duplicate: confirmDuplicate = false, limit } = body
      const selection = {
        filters: parseFilters(filters, DISPATCH_FIELDS, scope),
        fields: DISPATCH_FIELDS,
        scope,
        confirmDuplicate,
        limit,
      }
      const keptFor = scope === 'all' ? null : (scope[0] ?? null)
      if (body.dry_run) {
        const preview = await previewReplay(db, selection)
        const message = `Nothing was done: ${preview.wouldReplay} would be replayed, ${preview.wouldSkip} skipped.`
        return { status: 200, data: toReplayPreviewRow(preview), message, changed: [], keptFor }
      }
      const job = await createReplayJob(deps, db, { selection, filterTexts: filters, by: caller.userId, now })
      const url = `/api/v3/webhook/replay-job/${job.id}`
      return {
        data: toReplayJobRow(job),
        message: `Replay job of ${job.total} dispatches created. Follow it at ${url}.`,
        changed: [{ id: job.id, account: null, url }],
        keptFor,
        location: url,
      }
    },
  ),
  replayJob.list(
    {
      cell: { by: 'scope', several: 'merge', staysBehind: true },
      summary: 'List bulk replays',
      list: REPLAY_JOB_FIELDS,
    },
    {
      rows: ({ db, scope, reach }) =>
        buildList(reach, (own) => keepOwnJobs(selectReplayJobs(db), own, { scope, reach })),
      isOf: isJobOf,
      message: 'Replay jobs.',
    },
  ),
  defineRoute(
    { ...OF_REPLAY_JOB, method: 'GET', action: 'find-one', summary: 'Read the progress of a bulk replay' },
    {
      row: { find: (_deps: ReplayJobDeps, request) => loadWithin('job', request, loadReplayJob), neededBy: 'handle' },
      handle: async (_deps, { target }) => ({
        data: toReplayJobRow(target),
        message: `${target.processed} of ${target.total} dispatches dealt with.`,
        changed: [{ id: target.id, account: null }],
      }),
    },
  ),
  defineMove('pause', 'Replay job paused.', {
    summary: 'Pause a bulk replay',
    description: 'No further row is queued; queued ones are posted.',
  }),
  defineMove('resume', 'Replay job resumed.', {
    summary: 'Resume a bulk replay',
    description: 'Continues after the last processed row of a paused or failed job.',
  }),
  defineMove('cancel', 'Replay job cancelled.', {
    summary: 'Cancel a bulk replay',
    description: 'Final. No further row is queued; queued ones are posted.',
  }),
]
