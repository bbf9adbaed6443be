import type { IdMaker, UserId } from '../../base/id.ts'
import { moveJob } from '../../delivery/job/job-move.ts'
import type { JobMove } from '../../delivery/job/job-state.ts'
import type { ListFields, ListFilter } from '../../http/listing/listing.ts'
import { buildFieldProblem, orNotFound } from '../../http/problem/problem.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { AccountLimiter } from '../../identity/account/limit/account-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { endReadLimit, limitReads } from '../../postgres/statement/statement.ts'
import { checkQueueEnabled } from '../ledger/dispatch.ts'
import { type ListedReplayFacts, listReplayFacts, type ReplayFacts } from '../ledger/replay.store.ts'
import { decideReplay } from '../ledger/replay.ts'
import { countMatches, insertReplayJob, listMatches, type ReplayJobRecord, replayJobs } from './replay-job.store.ts'
import {
  PREVIEWED_WEBHOOKS_LIMIT,
  REPLAY_JOB_ROWS_LIMIT,
  type ReplayPreview,
  type SkipCounts,
} from './replay-job-record.ts'

export interface ReplayJobDeps {
  ids: IdMaker
  enableApiEventQueue: boolean
  accountLimits: Pick<AccountLimiter, 'take'>
}

export interface ReplaySelection {
  filters: readonly ListFilter[]
  fields: ListFields
  /** Restricts the matching rows to these accounts. */
  scope: PermissionScope
  /** Number of oldest rows; undefined takes all, which is refused above `REPLAY_JOB_ROWS_LIMIT`. */
  limit: number | undefined
  confirmDuplicate: boolean
}

/** Classifies each row of a bulk replay by its current state. Changes nothing. */
export async function previewReplay(db: Database, selection: ReplaySelection): Promise<ReplayPreview> {
  const ids = (await listSelected(db, selection)).map((row) => row.id)
  const facts = await listReplayFacts(db, ids)
  const { replayable, skipped } = decideRows(ids, facts, selection.confirmDuplicate)
  const { total: matched, is_total_exact: isMatchedExact } = await countMatches(db, selection)
  return {
    matched,
    isMatchedExact,
    total: ids.length,
    wouldReplay: replayable.length,
    wouldSkip: ids.length - replayable.length,
    skippedReasons: skipped,
    ...summarizeByWebhook([...facts.values()]),
  }
}

/** Sums of the rows of a bulk replay, in total and by webhook. Pure. */
export function summarizeByWebhook(
  facts: readonly Pick<ListedReplayFacts, 'webhook' | 'status' | 'isWebhookActive'>[],
): Pick<ReplayPreview, 'succeeded' | 'toInactive' | 'byWebhook' | 'webhooks'> {
  const sumOf = (rows: typeof facts) => ({
    total: rows.length,
    succeeded: rows.filter(({ status }) => status === 'success').length,
  })
  const all = [...Map.groupBy(facts, ({ webhook }) => webhook)]
    .map(([webhook, rows]) => ({ webhook, isActive: rows[0]?.isWebhookActive ?? false, ...sumOf(rows) }))
    .sort((a, b) => b.total - a.total || a.webhook.localeCompare(b.webhook))
  return {
    succeeded: sumOf(facts).succeeded,
    toInactive: facts.filter(({ isWebhookActive }) => !isWebhookActive).length,
    byWebhook: all.slice(0, PREVIEWED_WEBHOOKS_LIMIT),
    webhooks: all.length,
  }
}

/** Creates a bulk replay of matching rows (docs/contract/delivery.md#replay). Throws a 422 on `filters`, 409, 429. */
export async function createReplayJob(
  deps: ReplayJobDeps,
  db: Database,
  input: { selection: ReplaySelection; filterTexts: readonly string[]; by: UserId | null; now: Date },
): Promise<ReplayJobRecord> {
  const { selection, filterTexts, by, now } = input
  const rows = await listSelected(db, selection)
  checkQueueEnabled(deps)
  const id = deps.ids.next<'replay job'>()
  const { confirmDuplicate, scope } = selection
  const accounts = scope === 'all' ? null : [...scope]
  const owners = rows.map((row) => row.account)
  if (accounts) await deps.accountLimits.take(db, 'replays_per_minute', owners)
  const dispatches = rows.map((row) => row.id)
  return insertReplayJob(db, { id, filters: filterTexts, confirmDuplicate, accounts, dispatches, by, now })
}

async function listSelected(db: Database, selection: ReplaySelection) {
  const { limit } = selection
  await limitReads(db)
  const rows = await listMatches(db, { ...selection, limit: limit ?? REPLAY_JOB_ROWS_LIMIT + 1 })
  await endReadLimit(db)
  if (limit !== undefined || rows.length <= REPLAY_JOB_ROWS_LIMIT) return rows
  throw buildFieldProblem({
    path: 'filters',
    code: 'too_many_matches',
    message: `name more than ${REPLAY_JOB_ROWS_LIMIT} rows; at most ${REPLAY_JOB_ROWS_LIMIT} are replayed at once. Narrow the filters, or send limit`,
    params: { limit: REPLAY_JOB_ROWS_LIMIT },
  })
}

/** Separates replayable rows from skipped ones by reason. In `exists` without `facts`: locked by others. Pure. */
export function decideRows<RowId extends string>(
  ids: readonly RowId[],
  facts: ReadonlyMap<string, ReplayFacts>,
  isConfirmed: boolean,
  exists: ReadonlySet<string> = new Set(),
): { replayable: RowId[]; skipped: SkipCounts } {
  const skipped: SkipCounts = {}
  const replayable = ids.filter((id) => {
    const fact = facts.get(id)
    const verdict = fact ? decideReplay({ ...fact, isConfirmed }) : exists.has(id) ? 'under_way' : 'gone'
    if (verdict !== 'replay') skipped[verdict] = (skipped[verdict] ?? 0) + 1
    return verdict === 'replay'
  })
  return { replayable, skipped }
}

/** The job with this id, or a 404. */
export async function loadReplayJob(db: Database, id: string): Promise<ReplayJobRecord> {
  return orNotFound(await replayJobs.find(db, id), 'replay job')
}

/** Pauses, resumes or cancels a job (`moveJob`). */
export function moveReplayJob(db: Database, id: string, input: { move: JobMove; now: Date }): Promise<ReplayJobRecord> {
  return moveJob({ table: replayJobs, load: loadReplayJob, noun: 'replay job' }, db, id, input)
}
