import { sql } from 'kysely'
import { type EventTypeRecord, toEventTypeRecord } from '../catalogue/catalogue.store.ts'
import type { EventTypeId, Id, IdMaker, WebhookId } from '../id.ts'
import type { Database } from '../postgres/database.ts'

export type SubscriptionId = Id<'subscription'>

/** A row of the `webhook_event` table: a webhook's link to an event type. */
export interface SubscriptionRecord {
  id: SubscriptionId
  webhook: WebhookId
  event: EventTypeId
  createdAt: Date
  updatedAt: Date
  deletedAt: Date | null
}

interface SubscriptionColumns {
  document_id: string
  webhook: string
  event: string
  created_at: Date
  updated_at: Date
  deleted_at: Date | null
}

/** Maps a row of the `webhook_event` table. */
export function toSubscriptionRecord(row: SubscriptionColumns): SubscriptionRecord {
  return {
    id: row.document_id as SubscriptionId,
    webhook: row.webhook as WebhookId,
    event: row.event as EventTypeId,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
  }
}

/** The living links, as the base of a list. */
export function selectSubscriptions(db: Database) {
  return db.selectFrom('webhook_event').where('deleted_at', 'is', null)
}

/** The living link with this id. */
export async function findSubscription(db: Database, id: string): Promise<SubscriptionRecord | undefined> {
  const row = await selectSubscriptions(db).selectAll().where('document_id', '=', id).executeTakeFirst()
  return row && toSubscriptionRecord(row)
}

/** The event types a webhook subscribes to, by name. */
export async function listSubscribedEventTypes(db: Database, webhook: WebhookId): Promise<EventTypeRecord[]> {
  const rows = await db
    .selectFrom('event')
    .selectAll('event')
    .innerJoin('webhook_event', 'webhook_event.event', 'event.document_id')
    .where('webhook_event.webhook', '=', webhook)
    .where('webhook_event.deleted_at', 'is', null)
    .orderBy('event.internal')
    .execute()
  return rows.map(toEventTypeRecord)
}

/** Subscribes: new links are inserted, deleted ones revived, living ones left alone. */
export async function addSubscriptions(
  db: Database,
  ids: IdMaker,
  input: { webhook: WebhookId; events: readonly EventTypeId[]; now: Date },
): Promise<void> {
  const { webhook, events, now } = input
  if (events.length === 0) return
  await db
    .insertInto('webhook_event')
    .values(
      events.map((event) => ({
        document_id: ids.next<'subscription'>(),
        webhook,
        event,
        created_at: now,
        updated_at: now,
      })),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['webhook', 'event'])
        .doUpdateSet({ deleted_at: null, updated_at: now })
        .where('webhook_event.deleted_at', 'is not', null),
    )
    .execute()
}

/** Soft-deletes the links of `webhook` to `events`. */
export async function removeSubscriptions(
  db: Database,
  input: { webhook: WebhookId; events: readonly EventTypeId[]; now: Date },
): Promise<void> {
  const { webhook, events, now } = input
  if (events.length === 0) return
  await sql`
    update webhook_event set deleted_at = ${now}, updated_at = ${now}
    where webhook = ${webhook} and event = any(${events}::uuid[]) and deleted_at is null`.execute(db)
}

/** The link of `webhook` to `event`, deleted or not. */
export async function findSubscriptionOf(
  db: Database,
  webhook: WebhookId,
  event: EventTypeId,
): Promise<SubscriptionRecord | undefined> {
  const row = await db
    .selectFrom('webhook_event')
    .selectAll()
    .where('webhook', '=', webhook)
    .where('event', '=', event)
    .executeTakeFirst()
  return row && toSubscriptionRecord(row)
}
