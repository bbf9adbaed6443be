import { type RawBuilder, sql } from 'kysely'
import type { AttemptTrigger, DispatchStatus } from '../../delivery/outcome.ts'
import type { AttemptRecord } from '../../delivery/settle.store.ts'
import { buildTotalsOf } from '../../delivery/total.store.ts'
import type { AccountId, DispatchId, EventId, WebhookId } from '../../id.ts'
import type { Database } from '../../postgres/database.ts'
import { markAhead } from '../../postgres/dialect.ts'
import { statement } from '../../postgres/statement.ts'

/** A row of the ledger (docs/contract/delivery.md#ledger-row). */
export interface DispatchRecord {
  id: DispatchId
  webhook: WebhookId
  eventId: EventId
  event: string
  account: AccountId | null
  status: DispatchStatus
  attempts: number
  nextAttemptAt: Date | null
  lastAttemptAt: Date | null
  lastStatusCode: number | null
  lastError: string | null
  lastDurationMs: number | null
  deliveredAt: Date | null
  isTest: boolean
  /** Who asked for the attempt that is due. */
  trigger: AttemptTrigger
  leaseUntil: Date | null
  createdAt: Date
  updatedAt: Date
}

/** What `toDispatchRecord` reads of a row. */
export interface DispatchColumns {
  document_id: string
  webhook: string
  event_id: string
  event: string
  account: string | null
  status: string
  attempts: number
  next_attempt_at: Date | null
  last_attempt_at: Date | null
  last_status_code: number | null
  last_error: string | null
  last_duration_ms: number | null
  delivered_at: Date | null
  is_test: boolean
  attempt_trigger: string
  lease_until: Date | null
  created_at: Date
  updated_at: Date
}

const COLUMNS = [
  'document_id',
  'webhook',
  'event_id',
  'event',
  'account',
  'status',
  'attempts',
  'next_attempt_at',
  'last_attempt_at',
  'last_status_code',
  'last_error',
  'last_duration_ms',
  'delivered_at',
  'is_test',
  'attempt_trigger',
  'lease_until',
  'created_at',
  'updated_at',
] as const

/** The columns that `toDispatchRecord` reads of the row `d`, as SQL. */
export const OF_DISPATCH = COLUMNS.map((column) => `d.${column}`).join(', ')

/** Maps a row of the `webhook_dispatch` table. */
export function toDispatchRecord(row: DispatchColumns): DispatchRecord {
  return {
    id: row.document_id as DispatchId,
    webhook: row.webhook as WebhookId,
    eventId: row.event_id as EventId,
    event: row.event,
    account: row.account as AccountId | null,
    status: row.status as DispatchStatus,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    lastAttemptAt: row.last_attempt_at,
    lastStatusCode: row.last_status_code,
    lastError: row.last_error,
    lastDurationMs: row.last_duration_ms,
    deliveredAt: row.delivered_at,
    isTest: row.is_test,
    trigger: row.attempt_trigger as AttemptTrigger,
    leaseUntil: row.lease_until,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** One event for one webhook, to be written into the ledger. */
export interface NewDispatch {
  id: DispatchId
  webhook: WebhookId
  eventId: EventId
  event: string
  account: AccountId | null
  isTest: boolean
  trigger: AttemptTrigger
}

/** The part of a statement that inserts ledger rows, `pending` and due at once. */
function buildDispatchInsert(dispatches: readonly NewDispatch[], now: Date): RawBuilder<unknown> {
  const column = <Value>(pick: (dispatch: NewDispatch) => Value) => dispatches.map(pick)
  return sql`
    insert into webhook_dispatch (document_id, webhook, event_id, event, account, is_test, attempt_trigger,
      status, attempts, next_attempt_at, created_at, updated_at)
    select x.id, x.webhook, x.event_id, x.event, x.account, x.is_test, x.attempt_trigger, 'pending', 0, ${now}, ${now}, ${now}
    from unnest(
      ${column((one) => one.id)}::uuid[], ${column((one) => one.webhook)}::uuid[],
      ${column((one) => one.eventId)}::uuid[], ${column((one) => one.event)}::text[],
      ${column((one) => one.account)}::uuid[], ${column((one) => one.isTest)}::boolean[],
      ${column((one) => one.trigger)}::text[]
    ) as x (id, webhook, event_id, event, account, is_test, attempt_trigger)
    returning 1`
}

/** Writes ledger rows, `pending` and due at once; sent with the next statement of the transaction. */
export async function insertDispatches(
  db: Database,
  input: { dispatches: readonly NewDispatch[]; workerId: string; now: Date },
): Promise<void> {
  const { dispatches, workerId, now } = input
  if (dispatches.length === 0) return
  const query = sql`
    with waiting as (${buildDispatchInsert(dispatches, now)}) ${buildTotalsOf('waiting', workerId, 'pending')}`
  await db.executeQuery(markAhead(query.compile(db)))
}

/** The ledger, as the base of a list. */
export function selectDispatches(db: Database) {
  return db.selectFrom('webhook_dispatch').select(COLUMNS)
}

/** One entry of the attempt log of a dispatch. */
export type LoggedAttempt = Omit<AttemptRecord, 'dispatch'>

interface AttemptJson extends Omit<LoggedAttempt, 'startedAt'> {
  startedAt: string
}

const selectWithAttempts = statement<DispatchColumns & { attempts_log: AttemptJson[] }>(`
  select ${OF_DISPATCH},
    array(select json_build_object('attempt', a.attempt, 'trigger', a.attempt_trigger, 'worker', a.worker,
        'startedAt', a.started_at, 'durationMs', a.duration_ms, 'statusCode', a.status_code, 'errorClass', a.error_class,
        'responseExcerpt', a.response_excerpt, 'responseHeaders', a.response_headers, 'timings', a.timings)
      from webhook_attempt a where a.dispatch = d.document_id order by a.attempt) as attempts_log
  from webhook_dispatch d where d.document_id = $1`)

/** The ledger row with this id and its attempts, first attempt first, both of one instant. */
export async function findDispatchWithAttempts(
  db: Database,
  id: string,
): Promise<{ dispatch: DispatchRecord; attempts: LoggedAttempt[] } | undefined> {
  const [row] = await selectWithAttempts(db, [id])
  if (!row) return undefined
  const attempts = row.attempts_log.map((one) => ({ ...one, startedAt: new Date(one.startedAt) }))
  return { dispatch: toDispatchRecord(row), attempts }
}

/**
 * How many waiting rows the deletion of a webhook cancels itself. No row of a deleted webhook is ever claimed, so the rest
 * of a longer backlog may follow in the sweeps (`cancelOrphanedDispatches`), and a deletion is quick whatever waits.
 */
const CANCELLED_AT_ONCE = 10_000

/** Ends what waits for a webhook that was deleted (docs/contract/delivery.md#holding). What is being posted right now ends by its own result. */
export async function cancelWaitingDispatches(
  db: Database,
  input: { webhook: WebhookId; workerId: string; now: Date },
): Promise<number> {
  const { webhook, workerId, now } = input
  return cancel(db, {
    ids: sql`
      select document_id from webhook_dispatch
      where webhook = ${webhook} and status in ('pending', 'retrying') and lease_until is null
      limit ${CANCELLED_AT_ONCE} for update`,
    workerId,
    now,
  })
}

/** Ends the rows that `ids` selects and counts them, in one statement. Returns how many there were. */
async function cancel(db: Database, input: { ids: RawBuilder<unknown>; workerId: string; now: Date }): Promise<number> {
  const { ids, workerId, now } = input
  const { rows } = await sql<{ cancelled: number }>`
    with cancelled as (
      update webhook_dispatch set status = 'cancelled', next_attempt_at = null, ended_at = ${now}, updated_at = ${now}
      where document_id in (${ids}) returning 1
    ), counted as (${buildTotalsOf('cancelled', workerId, 'cancelled')})
    select count(*)::int as cancelled from cancelled`.execute(db)
  return rows[0]?.cancelled ?? 0
}

/**
 * Ends up to `limit` rows that wait for a deleted webhook: given back by a process that stopped, or left by a deletion
 * with a long backlog. Returns how many there were.
 */
export async function cancelOrphanedDispatches(
  db: Database,
  input: { workerId: string; now: Date; limit: number },
): Promise<number> {
  const { workerId, now, limit } = input
  return cancel(db, {
    ids: sql`
      select d.document_id from webhook_dispatch d join webhook w on w.document_id = d.webhook
      where w.deleted_at is not null and d.status in ('pending', 'retrying') and d.lease_until is null
      limit ${limit} for update of d skip locked`,
    workerId,
    now,
  })
}

/** Deletes up to `limit` rows of a webhook with their attempts, whatever their state. Returns how many went. */
export async function deleteDispatchesOf(db: Database, webhook: WebhookId, limit: number): Promise<number> {
  const result = await sql`
    delete from webhook_dispatch where document_id in (
      select document_id from webhook_dispatch where webhook = ${webhook} limit ${limit})`.execute(db)
  return Number(result.numAffectedRows ?? 0)
}

/** Deletes up to `limit` ended rows older than `before`, with their attempts (docs/contract/delivery.md#retention). Returns how many went. */
export async function deleteOldDispatches(db: Database, before: Date, limit: number): Promise<number> {
  const result = await sql`
    delete from webhook_dispatch where document_id in (
      select document_id from webhook_dispatch
      where created_at < ${before} and status not in ('pending', 'retrying') and lease_until is null
      order by created_at limit ${limit} for update skip locked)`.execute(db)
  return Number(result.numAffectedRows ?? 0)
}
