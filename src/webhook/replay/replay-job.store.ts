import { sql } from 'kysely'
import type { AccountId, DispatchId, UserId } from '../../base/id.ts'
import { buildJobTable } from '../../delivery/job/job-table.ts'
import type { ListFields, ListFilter } from '../../http/listing/listing.ts'
import { countListed, findListed, type ListTotal } from '../../http/listing/page.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { columnsOf, wireOf } from '../../http/shape/wire-row.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { closingStatement, valueStatement } from '../../postgres/statement/statement.ts'
import { listDispatches } from '../ledger/dispatch.store.ts'
import { ReplayJobRow } from './replay-job.schema.ts'
import type { ReplayJobId, SkipCounts } from './replay-job-record.ts'

/** A bulk replay; its rows are fixed at its creation. */
const job = defineRecord('replay_job', [...columnsOf(ReplayJobRow), 'failures']).typed<{
  /** The accounts to whose rows it is limited; null for a job over all accounts. */
  accounts: AccountId[] | null
  skippedReasons: SkipCounts
}>()
export type ReplayJobRecord = RecordOf<typeof job>
export const toReplayJobRow = wireOf(job, ReplayJobRow)

/** Changes of the counts of a job by a step. */
export type ReplayProgress = Partial<Pick<ReplayJobRecord, 'processed' | 'replayed' | 'skipped' | 'skippedReasons'>>

export interface MatchQuery {
  filters: readonly ListFilter[]
  fields: ListFields
  scope: PermissionScope
}

/** The matching rows, as a list in the order of their replay: oldest first. */
function listOf(db: Database, { filters, fields, scope }: MatchQuery, limit: number) {
  const list = listDispatches(db, filters, scope)
  const sort = { field: 'created_at', descending: false }
  // A page is read with one extra row.
  return {
    ...list,
    fields,
    listing: { filters: [...filters], sort, pageSize: limit - 1, after: undefined, count: true },
  }
}

/** The first `limit` matching rows, oldest first. */
export async function listMatches(
  db: Database,
  query: MatchQuery & { limit: number },
): Promise<{ id: DispatchId; account: AccountId | null }[]> {
  const rows = await findListed(db, listOf(db, query, query.limit))
  return rows.map((row) => ({ id: row.id, account: row.account }))
}

/** Number of matching rows, exact up to the limit of a total. */
export function countMatches(db: Database, query: MatchQuery): Promise<ListTotal> {
  return countListed(db, listOf(db, query, 1))
}

/** The existing rows among these, without those that accounts left behind when they moved. */
export async function findExistingDispatches(db: Database, ids: readonly DispatchId[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  const rows = await db
    .selectFrom('webhook_dispatch')
    .select('document_id')
    .where((eb) => eb('document_id', '=', eb.fn.any(eb.val([...ids]))))
    .where(sql<boolean>`(select is_resting(w.account) from webhook w where w.document_id = webhook) is not true`)
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

/** Inserts a job with its rows, numbered from 1, with the last statement. Without rows it is done at once. */
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
  return selectRecord(db.selectFrom('replay_job'), job)
}

/** The statements by which a runner and an operator move jobs. */
export const replayJobs = buildJobTable<ReplayJobId, ReplayJobRecord, ReplayProgress>({
  table: 'replay_job',
  members: job.members(),
  progress: {
    processed: 'processed = $processed',
    replayed: 'replayed = $replayed',
    skipped: 'skipped = $skipped',
    skippedReasons: 'skipped_reasons = $skippedReasons::jsonb',
  },
})

/** Locks a running job and its accounts; undefined when another worker has it, or an account is being moved. */
export function claimRunningJob(db: Database, id: ReplayJobId): Promise<ReplayJobRecord | undefined> {
  return selectReplayJobs(db)
    .where('document_id', '=', id)
    .where('status', '=', 'running')
    .where(sql<boolean>`find_refused_of_job(accounts, 'ended') is null`)
    .forUpdate()
    .skipLocked()
    .executeTakeFirst()
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

/** Number of queued rows of a job: made due by it and not posted yet. Rows of inactive webhooks do not count. */
export const countOnTheirWay = valueStatement<number, { job: ReplayJobId }>(`
  select count(*)::int as open
  from webhook_dispatch_open d join webhook w on w.document_id = d.webhook and w.is_actived and w.deleted_at is null
  where d.replay_job = $job`)

/** Deletes up to `limit` ended jobs older than `before`, with their rows. Returns their number. */
export const deleteOldReplayJobs = deletionOfOld('replay_job', { key: 'document_id', time: 'ended_at' })
