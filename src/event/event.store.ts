import { sql } from 'kysely'
import type { AccountId, EventId, WebhookId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { EventRecord, StoredEvent } from './event.ts'

/**
 * Inserts events for the router to find; with `routedAt`, as routed already. One statement with an array for each column:
 * a statement takes 65,535 parameters at most, and a bulk operation may change 10,000 resources.
 */
export async function insertEvents(
  db: Database,
  events: readonly EventRecord[],
  options: { routedAt?: Date } = {},
): Promise<void> {
  const column = <Value>(pick: (event: EventRecord) => Value) => events.map(pick)
  await sql`
    insert into event_occurrence (document_id, event, account, resource, action, resource_id, url, is_purge,
      excluded_webhook, trace_context, created_at, routed_at)
    select x.*, ${options.routedAt ?? null}::timestamptz from unnest(
      ${column((one) => one.id)}::uuid[], ${column((one) => one.event)}::text[], ${column((one) => one.account)}::uuid[],
      ${column((one) => one.resource)}::text[], ${column((one) => one.action)}::text[],
      ${column((one) => one.resourceId)}::text[], ${column((one) => one.url)}::text[],
      ${column((one) => one.isPurge)}::boolean[], ${column((one) => one.excludedWebhook)}::uuid[],
      ${column((one) => one.trace)}::text[], ${column((one) => one.createdAt)}::timestamptz[]
    ) as x`.execute(db)
}

/** Inserts those events whose type is active and has an active webhook that subscribes to it. */
export async function insertEventsWithSubscriber(db: Database, events: readonly EventRecord[]): Promise<void> {
  const types = [...new Set(events.map((event) => event.event))]
  const { rows } = await sql<{ internal: string }>`
    select e.internal from event e
    where e.internal = any(${types}) and e.is_actived and exists (
      select from webhook_event s join webhook w on w.document_id = s.webhook
      where s.event = e.document_id and s.deleted_at is null and w.is_actived and w.deleted_at is null)`.execute(db)
  const wanted = new Set(rows.map((row) => row.internal))
  const kept = events.filter((event) => wanted.has(event.event))
  if (kept.length > 0) await insertEvents(db, kept)
}

/** Claims up to `limit` events that no router has seen, oldest first, and locks them until the transaction ends. */
export async function claimUnroutedEvents(db: Database, limit: number): Promise<EventRecord[]> {
  const rows = await db
    .selectFrom('event_occurrence')
    .selectAll()
    .where('routed_at', 'is', null)
    .orderBy('document_id')
    .limit(limit)
    .forUpdate()
    .skipLocked()
    .execute()
  return rows.map(toEventRecord)
}

/** Marks events as routed. */
export async function markRouted(db: Database, ids: readonly EventId[], now: Date): Promise<void> {
  await sql`update event_occurrence set routed_at = ${now} where document_id = any(${ids}::uuid[])`.execute(db)
}

/** All events, as the base of a list. */
export function selectEvents(db: Database) {
  return db.selectFrom('event_occurrence')
}

/** Maps a row of the `event_occurrence` table. */
export function toStoredEvent(row: EventColumns & { routed_at: Date | null }): StoredEvent {
  return { ...toEventRecord(row), routedAt: row.routed_at }
}

/** The event with this id. */
export async function findEvent(db: Database, id: string): Promise<StoredEvent | undefined> {
  const row = await selectEvents(db).selectAll().where('document_id', '=', id).executeTakeFirst()
  return row && toStoredEvent(row)
}

/** When the oldest event that still waits for its routing was recorded. */
export async function findOldestUnroutedAt(db: Database): Promise<Date | null> {
  const row = await db
    .selectFrom('event_occurrence')
    .select('created_at')
    .where('routed_at', 'is', null)
    .orderBy('document_id')
    .limit(1)
    .executeTakeFirst()
  return row?.created_at ?? null
}

/** Deletes up to `limit` events older than `before` that no ledger row refers to (D78). Returns how many went. */
export async function deleteOldEvents(db: Database, before: Date, limit: number): Promise<number> {
  const result = await sql`
    delete from event_occurrence where document_id in (
      select e.document_id from event_occurrence e
      where e.created_at < ${before} and e.routed_at is not null
        and not exists (select from webhook_dispatch d where d.event_id = e.document_id)
      order by e.created_at limit ${limit} for update skip locked)`.execute(db)
  return Number(result.numAffectedRows ?? 0)
}

interface EventColumns {
  document_id: string
  event: string
  account: string | null
  resource: string
  action: string
  resource_id: string | null
  url: string | null
  is_purge: boolean
  excluded_webhook: string | null
  trace_context: string | null
  created_at: Date
}

function toEventRecord(row: EventColumns): EventRecord {
  return {
    id: row.document_id as EventId,
    event: row.event,
    account: row.account as AccountId | null,
    resource: row.resource,
    action: row.action,
    resourceId: row.resource_id,
    url: row.url,
    isPurge: row.is_purge,
    excludedWebhook: row.excluded_webhook as WebhookId | null,
    trace: row.trace_context,
    createdAt: row.created_at,
  }
}
