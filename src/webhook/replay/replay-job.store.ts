import type { Selectable } from 'kysely'
import type { AccountId, DispatchId, UserId } from '../../base/id.ts'
import type { JobStatus } from '../../delivery/job/job-state.ts'
import { buildJobTable } from '../../delivery/job/job-table.ts'
import type { ListFields, ListFilter } from '../../http/listing/listing.ts'
import { countListed, findListed, type ListTotal } from '../../http/listing/page.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { changeStatement, closingStatement, statement } from '../../postgres/statement/statement.ts'
import type { ReplayJob } from '../../postgres/statement/tables.generated.ts'
import { listDispatches } from '../ledger/dispatch.store.ts'
import type { ReplayJobId, ReplayJobRecord, SkipCounts } from './replay-job-record.ts'

const COLUMNS = [
  'document_id',
  'status',
  'filters',
  'confirm_duplicate',
  'accounts',
  'total',
  'processed',
  'replayed',
  'skipped',
  'skipped_reasons',
  'failures',
  'last_error',
  'created_by',
  'created_at',
  'updated_at',
  'ended_at',
] as const

type ReplayJobColumns = Pick<Selectable<ReplayJob>, (typeof COLUMNS)[number]>

/** Maps a row of the `replay_job` table. */
export function toReplayJobRecord(row: ReplayJobColumns): ReplayJobRecord {
  return {
    id: row.document_id as ReplayJobId,
    status: row.status as JobStatus,
    filters: row.filters,
    confirmDuplicate: row.confirm_duplicate,
    accounts: row.accounts as AccountId[] | null,
    total: row.total,
    processed: row.processed,
    replayed: row.replayed,
    skipped: row.skipped,
    skippedReasons: row.skipped_reasons as SkipCounts,
    failures: row.failures,
    lastError: row.last_error,
    createdBy: row.created_by as UserId | null,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    endedAt: row.ended_at,
  }
}

/** What a step of a job changes in its counts. */
export type ReplayProgress = Partial<Pick<ReplayJobRecord, 'processed' | 'replayed' | 'skipped' | 'skippedReasons'>>

/** Ledger rows that filters name. */
export interface MatchQuery {
  filters: readonly ListFilter[]
  fields: ListFields
  scope: PermissionScope
}

/** The rows that the filters name, as a list in the order in which they are replayed: oldest first. */
function listOf(db: Database, { filters, fields, scope }: MatchQuery, limit: number) {
  const list = listDispatches(db, filters, scope)
  const sort = { field: 'created_at', descending: false }
  // A page is read with one row more.
  return {
    ...list,
    fields,
    listing: { filters: [...filters], sort, pageSize: limit - 1, after: undefined, count: true },
  }
}

/** The first `limit` rows that the filters name, oldest first. */
export async function listMatches(
  db: Database,
  query: MatchQuery & { limit: number },
): Promise<{ id: DispatchId; account: AccountId | null }[]> {
  const rows = await findListed(db, listOf(db, query, query.limit))
  return rows.map((row) => ({ id: row.document_id as DispatchId, account: row.account as AccountId | null }))
}

/** How many rows the filters name, exact up to the limit of a total. */
export function countMatches(db: Database, query: MatchQuery): Promise<ListTotal> {
  return countListed(db, listOf(db, query, 1))
}

/** Which of these rows exist. */
export async function findExistingDispatches(db: Database, ids: readonly DispatchId[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  const rows = await db
    .selectFrom('webhook_dispatch')
    .select('document_id')
    .where((eb) => eb('document_id', '=', eb.fn.any(eb.val([...ids]))))
    .execute()
  return new Set(rows.map((row) => row.document_id))
}

const insert = closingStatement<{
  id: ReplayJobId
  status: 'running' | 'done'
  filters: readonly string[]
  confirmDuplicate: boolean
  total: number
  by: UserId | null
  now: Date
  endedAt: Date | null
  dispatches: readonly DispatchId[]
  accounts: readonly AccountId[] | null
}>(`
  new_job as (
    insert into replay_job (document_id, status, filters, confirm_duplicate, total, created_by, created_at, updated_at, ended_at,
      accounts)
    values ($id, $status, $filters, $confirmDuplicate, $total, $by, $now, $now, $endedAt, $accounts::uuid[])
    returning document_id
  ), new_items as (
    insert into replay_job_item (job, position, dispatch)
    select j.document_id, x.position, x.dispatch
    from new_job j, unnest($dispatches::uuid[]) with ordinality as x (dispatch, position))`)

/**
 * Inserts a job with its rows, numbered from 1, with the last statement of the transaction. Without rows it is done
 * already.
 */
export async function insertReplayJob(
  db: Database,
  row: {
    id: ReplayJobId
    filters: readonly string[]
    confirmDuplicate: boolean
    accounts: AccountId[] | null
    dispatches: readonly DispatchId[]
    by: UserId | null
    now: Date
  },
): Promise<ReplayJobRecord> {
  const { id, filters, confirmDuplicate, accounts, dispatches, by, now } = row
  const total = dispatches.length
  const status = total === 0 ? 'done' : 'running'
  const endedAt = total === 0 ? now : null
  await insert(db, { id, status, filters, confirmDuplicate, total, by, now, endedAt, dispatches, accounts })
  const none = { processed: 0, replayed: 0, skipped: 0, skippedReasons: {}, failures: 0, lastError: null }
  const times = { createdAt: now, updatedAt: now, endedAt }
  return { id, status, filters: [...filters], confirmDuplicate, accounts, total, ...none, createdBy: by, ...times }
}

/** All jobs, as the base of a list. */
export function selectReplayJobs(db: Database) {
  return db.selectFrom('replay_job').select(COLUMNS)
}

/** The jobs as a runner and an operator move them. */
export const replayJobs = buildJobTable<ReplayJobId, ReplayJobColumns, ReplayJobRecord, ReplayProgress>({
  table: 'replay_job',
  columns: COLUMNS,
  progress: {
    processed: 'processed = $processed',
    replayed: 'replayed = $replayed',
    skipped: 'skipped = $skipped',
    skippedReasons: 'skipped_reasons = $skippedReasons::jsonb',
  },
  toRecord: toReplayJobRecord,
})

/** Locks a running job until the transaction ends; undefined when it runs no more, or another worker has it. */
export async function claimRunningJob(db: Database, id: ReplayJobId): Promise<ReplayJobRecord | undefined> {
  const row = await selectReplayJobs(db)
    .where('document_id', '=', id)
    .where('status', '=', 'running')
    .forUpdate()
    .skipLocked()
    .executeTakeFirst()
  return row && toReplayJobRecord(row)
}

/** The next rows of a job after the first `processed`, in order. */
export async function listNextItems(
  db: Database,
  job: Pick<ReplayJobRecord, 'id' | 'processed'>,
  limit: number,
): Promise<DispatchId[]> {
  const rows = await db
    .selectFrom('replay_job_item')
    .select('dispatch')
    .where('job', '=', job.id)
    .where('position', '>', job.processed)
    .orderBy('position')
    .limit(limit)
    .execute()
  return rows.map((row) => row.dispatch as DispatchId)
}

const countOpen = statement<{ open: number }, { job: ReplayJobId }>(`
  select count(*)::int as open
  from webhook_dispatch_open d join webhook w on w.document_id = d.webhook and w.is_actived and w.deleted_at is null
  where d.replay_job = $job`)

/** How many rows a job has on their way: put there by it and not posted yet. Rows that rest with their webhook do not count. */
export async function countOnTheirWay(db: Database, job: ReplayJobId): Promise<number> {
  const [row] = await countOpen(db, { job })
  return row?.open ?? 0
}

const deleteEnded = changeStatement<{ before: Date; limit: number }>(`
  delete from replay_job where document_id = any(array(
    select document_id from replay_job where ended_at < $before order by ended_at limit $limit
    for update skip locked))`)

/** Deletes up to `limit` ended jobs older than `before`, with their rows. Returns how many went. */
export function deleteOldReplayJobs(db: Database, before: Date, limit: number): Promise<number> {
  return deleteEnded(db, { before, limit })
}
