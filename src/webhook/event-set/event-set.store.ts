import type { EventTypeId, WebhookId } from '../../base/id.ts'
import { type EventTypeRecord, eventType } from '../../event/catalogue/catalogue.store.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { closingStatement, isNull, type Joined, statement } from '../../postgres/statement/statement.ts'
import {
  OF_WEBHOOK,
  type SubscribingWebhook,
  type SubscriptionId,
  splitWebhook,
  type WithWebhook,
} from './subscription.store.ts'

const selectSet = statement<WithWebhook & Joined<EventTypeRecord>, { webhook: string }>(`
  select ${OF_WEBHOOK}, ${eventType.members('e')}
  from webhook w
  left join (webhook_event s join event e on e.document_id = s.event)
    on s.webhook = w.document_id and ${isNull('s.deleted_at')}
  where w.document_id = $webhook and w.deleted_at is null order by e.internal`)

/** An existing webhook and its subscribed event types, by name. */
export async function findEventSet(
  db: Database,
  webhook: string,
): Promise<{ webhook: SubscribingWebhook; events: EventTypeRecord[] } | undefined> {
  const rows = await selectSet(db, { webhook })
  const [first] = rows
  return first && { webhook: splitWebhook(first).webhook, events: listEvents(rows) }
}

function listEvents<Row extends WithWebhook & Joined<EventTypeRecord>>(rows: readonly Row[]) {
  const isThere = (row: Row): row is Row & EventTypeRecord => row.id !== null
  return rows.filter(isThere).map((row) => splitWebhook(row).rest)
}

export interface EventTypeOfSet extends EventTypeRecord {
  isSubscribed: boolean
}

const lockToChange = statement<
  WithWebhook & Joined<EventTypeRecord> & { isSubscribed: boolean },
  { webhook: string; names: readonly string[]; ids: readonly string[] }
>(`
  with w as (
    select * from webhook where document_id = $webhook and deleted_at is null for update
  ), link as (
    select l.event from w cross join lateral links_of(w.document_id) l where l.deleted_at is null
  )
  select ${OF_WEBHOOK}, ${eventType.members('e')}, e.is_subscribed as "isSubscribed"
  from w left join (
    select t.*, s.event is not null as is_subscribed from event t left join link s on s.event = t.document_id
    where t.internal = any($names) or t.document_id = any($ids) or s.event is not null
  ) e on true order by e.internal`)

/** Locks an existing webhook and reads its subscribed event types and those named: changes are serialized. */
export async function lockEventSet(
  db: Database,
  input: { webhook: string; names: readonly string[]; ids: readonly string[] },
): Promise<{ webhook: SubscribingWebhook; events: EventTypeOfSet[] } | undefined> {
  const rows = await lockToChange(db, input)
  const [first] = rows
  return first && { webhook: splitWebhook(first).webhook, events: listEvents(rows) }
}

const change = closingStatement<{
  webhook: WebhookId
  now: Date
  remove: readonly EventTypeId[]
  ids: readonly SubscriptionId[]
  events: readonly EventTypeId[]
}>(`
  removed_links as (
    update webhook_event set deleted_at = $now, updated_at = $now
    where webhook = $webhook and event = any($remove) and ${isNull('deleted_at')}
  ), added_links as (
    insert into webhook_event (document_id, webhook, event, created_at, updated_at)
    select x.id, $webhook, x.event, $now, $now from unnest($ids::uuid[], $events::uuid[]) as x (id, event)
    on conflict (webhook, event) do update set deleted_at = null, updated_at = $now
    where webhook_event.deleted_at is not null)`)

/** Soft-deletes the links of `remove`, and links or restores those of `add`, with the last statement. */
export async function changeSubscriptions(
  db: Database,
  input: {
    webhook: WebhookId
    remove: readonly EventTypeId[]
    add: readonly { id: SubscriptionId; event: EventTypeId }[]
    now: Date
  },
): Promise<void> {
  const { webhook, remove, add, now } = input
  if (remove.length + add.length === 0) return
  await change(
    db,
    { webhook, now, remove, ids: add.map((addition) => addition.id), events: add.map((addition) => addition.event) },
    { invalidations: 'r' },
  )
}
