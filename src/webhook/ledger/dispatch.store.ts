import { sql } from 'kysely'
import type { AttemptTrigger, DispatchStatus } from '../../delivery/outcome.ts'
import { addToTotals } from '../../delivery/total.store.ts'
import type { AccountId, DispatchId, EventId, WebhookId } from '../../id.ts'
import { type Database, inTransaction } from '../../postgres/database.ts'

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

interface DispatchColumns {
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

/** Writes ledger rows, `pending` and due at once. */
export async function insertDispatches(
  db: Database,
  input: { dispatches: readonly NewDispatch[]; workerId: string; now: Date },
): Promise<void> {
  const { dispatches, workerId, now } = input
  if (dispatches.length === 0) return
  await sql`
    insert into webhook_dispatch (document_id, webhook, event_id, event, account, is_test, attempt_trigger,
      status, attempts, next_attempt_at, created_at, updated_at)
    select x.id, x.webhook, x.event_id, x.event, x.account, x.is_test, x.attempt_trigger, 'pending', 0, ${now}, ${now}, ${now}
    from unnest(
      ${dispatches.map((one) => one.id)}::uuid[], ${dispatches.map((one) => one.webhook)}::uuid[],
      ${dispatches.map((one) => one.eventId)}::uuid[], ${dispatches.map((one) => one.event)}::text[],
      ${dispatches.map((one) => one.account)}::uuid[], ${dispatches.map((one) => one.isTest)}::boolean[],
      ${dispatches.map((one) => one.trigger)}::text[]
    ) as x (id, webhook, event_id, event, account, is_test, attempt_trigger)`.execute(db)
  await addToTotals(db, workerId, { pending: dispatches.length })
}

/** The ledger, as the base of a list. */
export function selectDispatches(db: Database) {
  return db.selectFrom('webhook_dispatch')
}

/** The ledger row with this id; `lock` keeps it from changing until the transaction ends. */
export async function findDispatch(
  db: Database,
  id: string,
  options: { lock?: boolean } = {},
): Promise<DispatchRecord | undefined> {
  let query = db.selectFrom('webhook_dispatch').selectAll().where('document_id', '=', id)
  if (options.lock) query = query.forUpdate()
  const row = await query.executeTakeFirst()
  return row && toDispatchRecord(row)
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
  const result = await sql`
    update webhook_dispatch set status = 'cancelled', next_attempt_at = null, ended_at = ${now}, updated_at = ${now}
    where document_id in (
      select document_id from webhook_dispatch
      where webhook = ${webhook} and status in ('pending', 'retrying') and lease_until is null
      limit ${CANCELLED_AT_ONCE} for update)`.execute(db)
  const cancelled = Number(result.numAffectedRows ?? 0)
  await addToTotals(db, workerId, { cancelled })
  return cancelled
}

/**
 * Ends up to `limit` rows that wait for a deleted webhook: given back by a process that stopped, or left by a deletion
 * with a long backlog. Returns how many there were.
 */
export async function cancelOrphanedDispatches(
  db: Database,
  input: { workerId: string; now: Date; limit: number },
): Promise<number> {
  return inTransaction(db, async (tx) => {
    const result = await sql`
      update webhook_dispatch set status = 'cancelled', next_attempt_at = null, ended_at = ${input.now}, updated_at = ${input.now}
      where document_id in (
        select d.document_id from webhook_dispatch d join webhook w on w.document_id = d.webhook
        where w.deleted_at is not null and d.status in ('pending', 'retrying') and d.lease_until is null
        limit ${input.limit} for update of d skip locked)`.execute(tx)
    const cancelled = Number(result.numAffectedRows ?? 0)
    await addToTotals(tx, input.workerId, { cancelled })
    return cancelled
  })
}

/** Makes a row due now for one replay POST (docs/contract/delivery.md#replay). */
export async function scheduleReplay(
  db: Database,
  id: DispatchId,
  input: { workerId: string; now: Date },
): Promise<DispatchRecord> {
  const [dispatch] = await scheduleReplays(db, [id], { ...input, job: null })
  if (!dispatch) throw new Error('a row was lost while it was locked')
  return dispatch
}

/** Makes rows due now for one replay POST each, on behalf of a job or of nobody's. */
export async function scheduleReplays(
  db: Database,
  ids: readonly DispatchId[],
  input: { job: string | null; workerId: string; now: Date },
): Promise<DispatchRecord[]> {
  if (ids.length === 0) return []
  const rows = await db
    .updateTable('webhook_dispatch')
    .set({
      status: 'retrying',
      attempt_trigger: 'replay',
      replay_job: input.job,
      next_attempt_at: input.now,
      ended_at: null,
      updated_at: input.now,
    })
    .where((eb) => eb('document_id', '=', eb.fn.any(eb.val([...ids]))))
    .returningAll()
    .execute()
  await addToTotals(db, input.workerId, { retrying: rows.length })
  return rows.map(toDispatchRecord)
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
