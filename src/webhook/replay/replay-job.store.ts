import { type Selectable, sql } from 'kysely'
import type { DispatchStatus } from '../../delivery/outcome.ts'
import type { DispatchId, UserId } from '../../id.ts'
import { applyFilters, countRows, type ListFields, type ListFilter } from '../../listing/listing.ts'
import type { Database } from '../../postgres/database.ts'
import type { JsonValue, ReplayJob } from '../../postgres/tables.generated.ts'
import { selectDispatches } from '../ledger/dispatch.store.ts'
import type { ReplayJobId, ReplayJobRecord, ReplayJobStatus, SkipCounts } from './replay-job.ts'

/** Maps a row of the `replay_job` table. */
export function toReplayJobRecord(row: Selectable<ReplayJob>): ReplayJobRecord {
  return {
    id: row.document_id as ReplayJobId,
    status: row.status as ReplayJobStatus,
    filters: row.filters,
    confirmDuplicate: row.confirm_duplicate,
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

/** Ledger rows that filters name. */
export interface MatchQuery {
  filters: readonly ListFilter[]
  fields: ListFields
}

/** The ids of the first `limit` rows that the filters name, oldest first. */
export async function listMatches(db: Database, query: MatchQuery & { limit: number }): Promise<DispatchId[]> {
  const { fields, limit } = query
  const rows = await applyFilters(selectDispatches(db), { filters: [...query.filters] }, fields)
    .select('document_id')
    .orderBy('created_at')
    .orderBy('document_id')
    .limit(limit)
    .execute()
  return rows.map((row) => row.document_id as DispatchId)
}

/** How many rows the filters name. */
export function countMatches(db: Database, query: MatchQuery): Promise<number> {
  return countRows(selectDispatches(db), { filters: [...query.filters] }, query.fields)
}

/** What the rule of a replay looks at in a ledger row. */
export interface ReplayFacts {
  status: DispatchStatus
  isWebhookActive: boolean
  isUnderWay: boolean
  hasEvent: boolean
  /** A replay of the row waits for its POST. */
  isReplayWaiting: boolean
}

interface FactColumns {
  document_id: DispatchId
  status: DispatchStatus
  is_webhook_active: boolean
  is_under_way: boolean
  has_event: boolean
  is_replay_waiting: boolean
}

/**
 * The facts of these rows. With `lock` they stay as they are until the transaction ends, and rows that another transaction
 * holds are left out: nothing is waited for.
 */
export async function listReplayFacts(
  db: Database,
  ids: readonly DispatchId[],
  options: { lock?: boolean } = {},
): Promise<Map<string, ReplayFacts>> {
  if (ids.length === 0) return new Map()
  const { rows } = await sql<FactColumns>`
    select d.document_id, d.status, w.is_actived and w.deleted_at is null as is_webhook_active,
      d.lease_until is not null as is_under_way,
      exists (select from event_occurrence e where e.document_id = d.event_id) as has_event,
      d.status = 'retrying' and d.attempt_trigger = 'replay' as is_replay_waiting
    from webhook_dispatch d join webhook w on w.document_id = d.webhook
    where d.document_id = any(${ids}::uuid[])
    ${options.lock ? sql`for update of d skip locked` : sql``}`.execute(db)
  return new Map(
    rows.map((row) => [
      row.document_id,
      {
        status: row.status,
        isWebhookActive: row.is_webhook_active,
        isUnderWay: row.is_under_way,
        hasEvent: row.has_event,
        isReplayWaiting: row.is_replay_waiting,
      },
    ]),
  )
}

/** Which of these rows exist. */
export async function findExistingDispatches(db: Database, ids: readonly DispatchId[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  const rows = await selectDispatches(db)
    .select('document_id')
    .where((eb) => eb('document_id', '=', eb.fn.any(eb.val([...ids]))))
    .execute()
  return new Set(rows.map((row) => row.document_id))
}

/** Inserts a job with its rows, numbered from 1. Without rows it is done already. */
export async function insertReplayJob(
  db: Database,
  row: {
    id: ReplayJobId
    filters: readonly string[]
    confirmDuplicate: boolean
    dispatches: readonly DispatchId[]
    by: UserId | null
    now: Date
  },
): Promise<ReplayJobRecord> {
  const isEmpty = row.dispatches.length === 0
  const inserted = await db
    .insertInto('replay_job')
    .values({
      document_id: row.id,
      status: isEmpty ? 'done' : 'running',
      filters: [...row.filters],
      confirm_duplicate: row.confirmDuplicate,
      total: row.dispatches.length,
      created_by: row.by,
      created_at: row.now,
      updated_at: row.now,
      ended_at: isEmpty ? row.now : null,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  await sql`
    insert into replay_job_item (job, position, dispatch)
    select ${row.id}, x.position, x.dispatch
    from unnest(${row.dispatches}::uuid[]) with ordinality as x (dispatch, position)`.execute(db)
  return toReplayJobRecord(inserted)
}

/** All jobs, as the base of a list. */
export function selectReplayJobs(db: Database) {
  return db.selectFrom('replay_job')
}

/** The job with this id; `lock` keeps it from changing until the transaction ends. */
export async function findReplayJob(
  db: Database,
  id: string,
  options: { lock?: boolean } = {},
): Promise<ReplayJobRecord | undefined> {
  let query = selectReplayJobs(db).selectAll().where('document_id', '=', id)
  if (options.lock) query = query.forUpdate()
  const row = await query.executeTakeFirst()
  return row && toReplayJobRecord(row)
}

/** What may change in a job. Members left out stay. */
export interface ReplayJobChange {
  status?: ReplayJobStatus
  processed?: number
  replayed?: number
  skipped?: number
  skippedReasons?: SkipCounts
  failures?: number
  lastError?: string | null
  endedAt?: Date | null
}

/** Changes a job. */
export async function changeReplayJob(
  db: Database,
  id: ReplayJobId,
  change: ReplayJobChange,
  now: Date,
): Promise<ReplayJobRecord> {
  const { skippedReasons } = change
  const updated = await db
    .updateTable('replay_job')
    .set({
      ...(change.status !== undefined && { status: change.status }),
      ...(change.processed !== undefined && { processed: change.processed }),
      ...(change.replayed !== undefined && { replayed: change.replayed }),
      ...(change.skipped !== undefined && { skipped: change.skipped }),
      ...(skippedReasons && { skipped_reasons: sql<JsonValue>`${JSON.stringify(skippedReasons)}::jsonb` }),
      ...(change.failures !== undefined && { failures: change.failures }),
      ...(change.lastError !== undefined && { last_error: change.lastError }),
      ...(change.endedAt !== undefined && { ended_at: change.endedAt }),
      updated_at: now,
    })
    .where('document_id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  return toReplayJobRecord(updated)
}

/** The jobs that run, oldest first. */
export async function listRunningJobs(db: Database): Promise<ReplayJobId[]> {
  const rows = await selectReplayJobs(db)
    .select('document_id')
    .where('status', '=', 'running')
    .orderBy('created_at')
    .limit(100)
    .execute()
  return rows.map((row) => row.document_id as ReplayJobId)
}

/** Locks a running job until the transaction ends; undefined when it runs no more, or another worker has it. */
export async function claimRunningJob(db: Database, id: ReplayJobId): Promise<ReplayJobRecord | undefined> {
  const row = await selectReplayJobs(db)
    .selectAll()
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

/** How many rows a job has on their way: put there by it and not posted yet. Rows that rest with their webhook do not count. */
export async function countOnTheirWay(db: Database, job: ReplayJobId): Promise<number> {
  const { rows } = await sql<{ open: number }>`
    select count(*)::int as open
    from webhook_dispatch d join webhook w on w.document_id = d.webhook and w.is_actived and w.deleted_at is null
    where d.replay_job = ${job} and d.status in ('pending', 'retrying')`.execute(db)
  return rows[0]?.open ?? 0
}

/** Deletes up to `limit` ended jobs older than `before`, with their rows. Returns how many went. */
export async function deleteOldReplayJobs(db: Database, before: Date, limit: number): Promise<number> {
  const result = await sql`
    delete from replay_job where document_id in (
      select document_id from replay_job where ended_at < ${before} order by ended_at limit ${limit}
      for update skip locked)`.execute(db)
  return Number(result.numAffectedRows ?? 0)
}
