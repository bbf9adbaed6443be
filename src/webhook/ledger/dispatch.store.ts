import type { AccountId, DispatchId, EventId, WebhookId } from '../../id.ts'
import type { Database } from '../../postgres/database.ts'
import { aheadStatement, statement } from '../../postgres/statement.ts'
import type { AttemptTrigger, DispatchStatus } from '../delivery/outcome.ts'
import type { DispatchChange } from '../delivery/settle.store.ts'
import { countInto, findShard } from '../delivery/total.store.ts'

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
  /** The worker that posts it right now; null when nobody does. */
  leaseOwner: string | null
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
  lease_owner: string | null
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
  'lease_owner',
  'created_at',
  'updated_at',
] as const

/** The columns above that both tables of the ledger have, as SQL. */
export const LEDGER_COLUMNS = COLUMNS.filter((column) => column !== 'next_attempt_at' && column !== 'lease_owner').join(
  ', ',
)

/** The columns that `toDispatchRecord` reads of the row `d`, as SQL. */
export const OF_DISPATCH = COLUMNS.map((column) => `d.${column}`).join(', ')

/** Maps a row of the ledger, the view `webhook_dispatch`. */
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
    leaseOwner: row.lease_owner,
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

/** The part of a statement that lets the webhooks of its part `source` be visited at `$at`, also one that rests: for a test. */
export const queueWebhooks = (source: string, at: string) => `
  insert into webhook_queue (webhook, visit_at)
  select distinct webhook, ${at}::timestamptz from ${source} order by webhook
  on conflict (webhook) do update set visit_at = least(webhook_queue.visit_at, excluded.visit_at), is_held = false`

const insert = aheadStatement(`
  with opened as (
    insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, is_test, attempt_trigger,
      status, attempts, next_attempt_at, created_at, updated_at)
    values ($1, $2, $3, $4, $5, $6, $7, 'pending', 0, $8, $8, $8)
    returning webhook
  ), queued as (${queueWebhooks('opened', '$8')})
  ${countInto('opened', `'pending'`, '$9')}`)

/** Writes a ledger row, `pending` and due at once; sent with the next statement of the transaction. */
export async function insertDispatch(
  db: Database,
  dispatch: NewDispatch,
  { workerId, now }: { workerId: string; now: Date },
): Promise<void> {
  const { id, webhook, eventId, event, account, isTest, trigger } = dispatch
  await insert(db, [id, webhook, eventId, event, account, isTest, trigger, now, findShard(workerId)])
}

/** The ledger, as the base of a list. */
export function selectDispatches(db: Database) {
  return db.selectFrom('webhook_dispatch').select(COLUMNS)
}

/** One entry of the attempt log of a dispatch. */
export type LoggedAttempt = Pick<
  DispatchChange,
  | 'attempt'
  | 'trigger'
  | 'worker'
  | 'startedAt'
  | 'durationMs'
  | 'statusCode'
  | 'errorClass'
  | 'responseExcerpt'
  | 'responseHeaders'
  | 'timings'
>

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

/** The statement that ends the open rows that `ids` selects as cancelled, at `$1`, counts them on shard `$2`. */
const cancel = (ids: string) =>
  statement<{ cancelled: number }>(`
    with cancelled as (
      delete from webhook_dispatch_open where document_id = any(array(${ids})) returning *
    ), kept as (
      insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, last_error,
        last_attempt_at, last_status_code, last_duration_ms, delivered_at, ended_at, is_test, attempt_trigger,
        replay_job, fence, created_at, updated_at)
      select document_id, webhook, event_id, event, account, 'cancelled', attempts, last_error, last_attempt_at,
        last_status_code, last_duration_ms, delivered_at, $1, is_test, attempt_trigger, replay_job, fence, created_at, $1
      from cancelled
    ), counted as (${countInto('cancelled', `'cancelled'`, '$2')})
    select count(*)::int as cancelled from cancelled`)

const cancelWaiting = cancel(`
  select document_id from webhook_dispatch_open
  where webhook = $3 and next_attempt_at is not null limit ${CANCELLED_AT_ONCE} for update`)

/** Ends what waits for a webhook that was deleted (docs/contract/delivery.md#holding). What is being posted right now ends by its own result. */
export async function cancelWaitingDispatches(
  db: Database,
  input: { webhook: WebhookId; workerId: string; now: Date },
): Promise<number> {
  const { webhook, workerId, now } = input
  const [row] = await cancelWaiting(db, [now, findShard(workerId), webhook])
  return row?.cancelled ?? 0
}

const cancelOrphaned = cancel(`
  select d.document_id from webhook_queue q
  join webhook w on w.document_id = q.webhook and w.deleted_at is not null
  cross join lateral (
    select d.document_id from webhook_dispatch_open d
    where d.webhook = q.webhook and d.next_attempt_at is not null limit $3 for update skip locked) d
  limit $3`)

const deleteStray = statement<never>(`
  with stray as materialized (
    select q.webhook from webhook_queue q
    where not exists (select from webhook w where w.document_id = q.webhook) limit $1 for update skip locked
  ), gone as (
    delete from webhook_dispatch_open
    where webhook = any(array(select webhook from stray)) and next_attempt_at is not null
  )
  delete from webhook_queue where webhook = any(array(select webhook from stray))`)

/**
 * Ends up to `limit` rows that wait for a deleted webhook: routed or given back while it was deleted, or left by a deletion
 * with a long backlog. Returns how many there were. Deletes the rows that were routed to a webhook while it was purged.
 */
export async function cancelOrphanedDispatches(
  db: Database,
  input: { workerId: string; now: Date; limit: number },
): Promise<number> {
  const { workerId, now, limit } = input
  await deleteStray(db, [limit])
  const [row] = await cancelOrphaned(db, [now, findShard(workerId), limit])
  return row?.cancelled ?? 0
}

const deleteOrphaned = statement<{ deleted: number }>(`
  with orphan as materialized (
    select q.webhook, q.visit_at from webhook_queue q
    where not exists (select from webhook w where w.document_id = q.webhook) limit $1
  ), gone as (
    delete from webhook_dispatch_open where document_id = any(array(
      select d.document_id from orphan o
      cross join lateral (
        select d.document_id from webhook_dispatch_open d
        where d.webhook = o.webhook and d.next_attempt_at is not null limit $1 for update skip locked) d
      limit $1))
    returning document_id
  ), attempts as (
    delete from webhook_attempt where dispatch = any(array(select document_id from gone))
  ), unqueued as (
    delete from webhook_queue q using orphan o
    where q.webhook = o.webhook and o.visit_at < $2
      and not exists (select from webhook_dispatch_open d where d.webhook = o.webhook)
  )
  select count(*)::int as deleted from gone`)

/**
 * Deletes up to `limit` rows that wait for a webhook which was purged while an event was routed to it. Its place in the
 * queue is kept until `before`, when no statement is left that saw the webhook. Returns how many rows there were.
 */
export async function deleteOrphanedDispatches(db: Database, before: Date, limit: number): Promise<number> {
  const [row] = await deleteOrphaned(db, [limit, before])
  return row?.deleted ?? 0
}

/** The parts that delete the rows which `ids` selects from a table of the ledger, with their attempts. */
const deleteFrom = (table: string, ids: string) => `
  with gone as (delete from ${table} where document_id = any(array(${ids})) returning document_id),
  attempts as (delete from webhook_attempt where dispatch = any(array(select document_id from gone)))
  select count(*)::int as deleted from gone`

const ofWebhook = (table: string) => `select document_id from ${table} where webhook = $1 limit $2`

const deleteOpenOf = statement<{ deleted: number }>(
  deleteFrom('webhook_dispatch_open', ofWebhook('webhook_dispatch_open')),
)
const deleteEndedOf = statement<{ deleted: number }>(
  deleteFrom('webhook_dispatch_ended', ofWebhook('webhook_dispatch_ended')),
)

/** Deletes up to `limit` rows of a webhook with their attempts, whatever their state. Returns how many there were. */
export async function deleteDispatchesOf(db: Database, webhook: WebhookId, limit: number): Promise<number> {
  const [open] = await deleteOpenOf(db, [webhook, limit])
  const [ended] = await deleteEndedOf(db, [webhook, limit])
  return (open?.deleted ?? 0) + (ended?.deleted ?? 0)
}

const deleteOld = statement<{ deleted: number }>(
  deleteFrom(
    'webhook_dispatch_ended',
    `select document_id from webhook_dispatch_ended where created_at < $1
    order by created_at limit $2 for update skip locked`,
  ),
)

/** Deletes up to `limit` ended rows older than `before`, with their attempts (docs/contract/delivery.md#retention). Returns how many there were. */
export async function deleteOldDispatches(db: Database, before: Date, limit: number): Promise<number> {
  const [row] = await deleteOld(db, [before, limit])
  return row?.deleted ?? 0
}
