import { type RawBuilder, sql } from 'kysely'
import type { AccountId, EventId, WebhookId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { EventRecord, StoredEvent } from './event.ts'

const EVENT_COLUMNS = sql`document_id, event, account, resource, action, resource_id, url, is_purge, excluded_webhook,
  trace_context, created_at, routed_at`

/**
 * The statement that inserts events for the router to find; with `routedAt`, as routed already. Several events go as one
 * array for each column: a statement takes 65,535 parameters at most, and a bulk operation may change 10,000 resources.
 */
export function buildEventInsert(events: readonly EventRecord[], routedAt: Date | null = null): RawBuilder<unknown> {
  const [one] = events
  if (one && events.length === 1)
    return sql`
      insert into event_occurrence (${EVENT_COLUMNS})
      values (${one.id}, ${one.type}, ${one.account}, ${one.resource}, ${one.action}, ${one.resourceId}, ${one.url},
        ${one.isPurge}, ${one.excludedWebhook}, ${one.trace}, ${one.createdAt}, ${routedAt})`
  const column = <Value>(pick: (event: EventRecord) => Value) => events.map(pick)
  return sql`
    insert into event_occurrence (${EVENT_COLUMNS})
    select x.*, ${routedAt}::timestamptz from unnest(
      ${column((each) => each.id)}::uuid[], ${column((each) => each.type)}::text[],
      ${column((each) => each.account)}::uuid[], ${column((each) => each.resource)}::text[],
      ${column((each) => each.action)}::text[], ${column((each) => each.resourceId)}::text[],
      ${column((each) => each.url)}::text[], ${column((each) => each.isPurge)}::boolean[],
      ${column((each) => each.excludedWebhook)}::uuid[], ${column((each) => each.trace)}::text[],
      ${column((each) => each.createdAt)}::timestamptz[]
    ) as x`
}

/** Inserts events for the router to find; with `routedAt`, as routed already. */
export async function insertEvents(
  db: Database,
  events: readonly EventRecord[],
  options: { routedAt?: Date } = {},
): Promise<void> {
  await buildEventInsert(events, options.routedAt).execute(db)
}

/** The event types of routes that are active and have an active webhook that subscribes to them. */
export async function listSubscribedTypes(db: Database): Promise<string[]> {
  const { rows } = await sql<{ internal: string }>`
    select e.internal from event e
    where e.source = 'route' and e.is_actived and exists (
      select from webhook_event s join webhook w on w.document_id = s.webhook
      where s.event = e.document_id and s.deleted_at is null and w.is_actived and w.deleted_at is null)`.execute(db)
  return rows.map((row) => row.internal)
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

/** Deletes up to `limit` events older than `before` that no ledger row refers to (docs/contract/delivery.md#retention). Returns how many went. */
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
    type: row.event,
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
