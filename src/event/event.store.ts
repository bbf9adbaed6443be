import { sql } from 'kysely'
import type { AccountId, EventId, WebhookId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { EventRecord } from './event.ts'

function toColumns(event: EventRecord) {
  return {
    document_id: event.id,
    event: event.event,
    account: event.account,
    resource: event.resource,
    action: event.action,
    resource_id: event.resourceId,
    url: event.url,
    is_purge: event.isPurge,
    excluded_webhook: event.excludedWebhook,
    created_at: event.createdAt,
  }
}

/** Inserts events for the router to find; with `routedAt`, as routed already. */
export async function insertEvents(
  db: Database,
  events: readonly EventRecord[],
  options: { routedAt?: Date } = {},
): Promise<void> {
  const routedAt = options.routedAt ?? null
  await db
    .insertInto('event_occurrence')
    .values(events.map((event) => ({ ...toColumns(event), routed_at: routedAt })))
    .execute()
}

/** Inserts those events whose type an active webhook subscribes to. */
export async function insertEventsWithSubscriber(db: Database, events: readonly EventRecord[]): Promise<void> {
  const types = [...new Set(events.map((event) => event.event))]
  const { rows } = await sql<{ internal: string }>`
    select e.internal from event e
    where e.internal = any(${types}) and exists (
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

/** The event with this id. */
export async function findEvent(db: Database, id: string): Promise<(EventRecord & { routedAt: Date | null }) | undefined> {
  const row = await db.selectFrom('event_occurrence').selectAll().where('document_id', '=', id).executeTakeFirst()
  return row && { ...toEventRecord(row), routedAt: row.routed_at }
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
    createdAt: row.created_at,
  }
}
