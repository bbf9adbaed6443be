import { sql } from 'kysely'
import type { DispatchId } from '../id.ts'
import type { PostTimings } from '../outbound/post-result.ts'
import type { Database } from '../postgres/database.ts'
import type { AttemptTrigger, DispatchStatus, ErrorClass } from './outcome.ts'

/** What an attempt changes in its ledger row. */
export interface DispatchChange {
  id: DispatchId
  fence: number
  status: DispatchStatus
  nextAttemptAt: Date | null
  lastStatusCode: number | null
  lastError: ErrorClass | null
  lastDurationMs: number
  endedAt: Date
}

const FINAL: readonly DispatchStatus[] = ['success', 'exhausted', 'failed', 'cancelled']

/**
 * Writes the results of attempts and ends their claims. Returns the claims that were ended: a result whose fence was
 * passed (its lease ran out, another process claimed) is void and is left out. Two results of one dispatch may come
 * together, a late one and that of the next claim; at most one of them is written.
 */
export async function applyDispatchChanges(
  db: Database,
  changes: readonly DispatchChange[],
): Promise<{ id: DispatchId; fence: number }[]> {
  if (changes.length === 0) return []
  const column = <Value>(pick: (change: DispatchChange) => Value) => changes.map(pick)
  const { rows } = await sql<{ id: DispatchId; fence: number }>`
    update webhook_dispatch d
    set status = x.status, next_attempt_at = x.next_attempt_at, last_status_code = x.last_status_code,
      last_error = x.last_error, last_duration_ms = x.last_duration_ms,
      delivered_at = coalesce(d.delivered_at, x.delivered_at), ended_at = x.ended_at,
      attempt_trigger = case when d.attempt_trigger = 'test' then 'schedule' else d.attempt_trigger end,
      lease_owner = null, lease_until = null, updated_at = x.updated_at
    from unnest(
      ${column((one) => one.id)}::uuid[], ${column((one) => one.fence)}::int[], ${column((one) => one.status)}::text[],
      ${column((one) => one.nextAttemptAt)}::timestamptz[], ${column((one) => one.lastStatusCode)}::int[],
      ${column((one) => one.lastError)}::text[], ${column((one) => Math.round(one.lastDurationMs))}::int[],
      ${column((one) => (one.status === 'success' ? one.endedAt : null))}::timestamptz[],
      ${column((one) => (FINAL.includes(one.status) ? one.endedAt : null))}::timestamptz[],
      ${column((one) => one.endedAt)}::timestamptz[]
    ) as x (id, fence, status, next_attempt_at, last_status_code, last_error, last_duration_ms, delivered_at, ended_at, updated_at)
    where d.document_id = x.id and d.fence = x.fence and d.lease_until is not null
    returning x.id, x.fence`.execute(db)
  return rows
}

/** One entry of the attempt log (docs/contract/delivery.md#ledger-row): one POST. */
export interface AttemptRecord {
  dispatch: DispatchId
  attempt: number
  trigger: AttemptTrigger
  worker: string
  startedAt: Date
  durationMs: number
  statusCode: number | null
  errorClass: ErrorClass | null
  responseExcerpt: string | null
  responseHeaders: Record<string, string> | null
  timings: PostTimings | null
}

/** Adds entries to the attempt log. */
export async function insertAttempts(db: Database, attempts: readonly AttemptRecord[]): Promise<void> {
  if (attempts.length === 0) return
  const column = <Value>(pick: (attempt: AttemptRecord) => Value) => attempts.map(pick)
  const json = (value: unknown) => (value === null ? null : JSON.stringify(value))
  await sql`
    insert into webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms, status_code,
      error_class, response_excerpt, response_headers, timings)
    select * from unnest(
      ${column((one) => one.dispatch)}::uuid[], ${column((one) => one.attempt)}::int[],
      ${column((one) => one.trigger)}::text[], ${column((one) => one.worker)}::text[],
      ${column((one) => one.startedAt)}::timestamptz[], ${column((one) => Math.round(one.durationMs))}::int[],
      ${column((one) => one.statusCode)}::int[], ${column((one) => one.errorClass)}::text[],
      ${column((one) => one.responseExcerpt)}::text[], ${column((one) => json(one.responseHeaders))}::jsonb[],
      ${column((one) => json(one.timings))}::jsonb[])`.execute(db)
}

/** The attempt log of a dispatch, first attempt first. */
export async function listAttempts(db: Database, dispatch: DispatchId): Promise<AttemptRecord[]> {
  const rows = await db
    .selectFrom('webhook_attempt')
    .selectAll()
    .where('dispatch', '=', dispatch)
    .orderBy('attempt')
    .execute()
  return rows.map((row) => ({
    dispatch: row.dispatch as DispatchId,
    attempt: row.attempt,
    trigger: row.attempt_trigger as AttemptTrigger,
    worker: row.worker,
    startedAt: row.started_at,
    durationMs: row.duration_ms,
    statusCode: row.status_code,
    errorClass: row.error_class as ErrorClass | null,
    responseExcerpt: row.response_excerpt,
    responseHeaders: row.response_headers as Record<string, string> | null,
    timings: row.timings as PostTimings | null,
  }))
}
