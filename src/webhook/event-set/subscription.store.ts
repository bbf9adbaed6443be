import type { AccountId, EventTypeId, Id, WebhookId } from '../../base/id.ts'
import type { EventTypeRecord } from '../../event/catalogue/catalogue.store.ts'
import { countBehindLock } from '../../postgres/statement/counted-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { isNull, type Joined, statement } from '../../postgres/statement/statement.ts'

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

/** What a subscription needs to know of its webhook. */
export interface SubscribingWebhook {
  id: WebhookId
  account: AccountId | null
  isGlobal: boolean
}

interface SubscriptionColumns {
  document_id: string
  webhook: string
  event: string
  created_at: Date
  updated_at: Date
  deleted_at: Date | null
}

const COLUMNS = ['document_id', 'webhook', 'event', 'created_at', 'updated_at', 'deleted_at'] as const

/** The columns above of the link `s`, as SQL. */
const OF_LINK = COLUMNS.map((column) => `s.${column}`).join(', ')

/** What `toSubscribingWebhook` reads of a row. */
export interface WebhookColumns {
  hook: string
  hook_account: string | null
  hook_is_global: boolean
}

/** The columns above of the webhook `w`, as SQL. */
export const OF_WEBHOOK = 'w.document_id as hook, w.account as hook_account, w.is_global as hook_is_global'

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

/** Maps `OF_WEBHOOK`. */
export function toSubscribingWebhook(row: WebhookColumns): SubscribingWebhook {
  return { id: row.hook as WebhookId, account: row.hook_account as AccountId | null, isGlobal: row.hook_is_global }
}

/** The living links, as the base of a list. */
export function selectSubscriptions(db: Database) {
  return db.selectFrom('webhook_event').select(COLUMNS).where('deleted_at', 'is', null)
}

const count = countBehindLock<{ subscriptions: number }, { webhook: WebhookId }>({
  counts: 'subscriptions of a webhook',
  lock: 'webhook',
  take: 'select from webhook where document_id = $webhook for update',
  count: `
    select count(*)::int as subscriptions from webhook_event s join event e on e.document_id = s.event
    where s.webhook = $webhook and ${isNull('s.deleted_at')} and e.internal <> 'webhook.test'`,
})

/** How many links a webhook has beside that to `webhook.test`: those that count for the limit of an account. */
export async function countSubscriptions(db: Database, webhook: WebhookId): Promise<number> {
  const [row] = await count(db, { webhook })
  return row?.subscriptions ?? 0
}

const selectOne = statement<SubscriptionColumns & WebhookColumns & { internal: string }, { id: string }>(`
  select ${OF_LINK}, ${OF_WEBHOOK}, e.internal
  from webhook_event s join webhook w on w.document_id = s.webhook join event e on e.document_id = s.event
  where s.document_id = $id and s.deleted_at is null and w.deleted_at is null`)

/** The living link with this id, its living webhook, and the name of its event type. */
export async function findSubscription(
  db: Database,
  id: string,
): Promise<{ subscription: SubscriptionRecord; webhook: SubscribingWebhook; internal: string } | undefined> {
  const [row] = await selectOne(db, { id })
  return row && { subscription: toSubscriptionRecord(row), webhook: toSubscribingWebhook(row), internal: row.internal }
}

/** What decides whether an event type can be subscribed to, and with which warning. */
export type NamedType = Pick<EventTypeRecord, 'internal' | 'accountScope' | 'isActived'>

function toNamedType(internal: string | null, scope: string | null, isActived: boolean | null): NamedType | undefined {
  if (internal === null) return undefined
  return { internal, accountScope: scope as NamedType['accountScope'], isActived: isActived === true }
}

type InsertedColumns = Joined<SubscriptionColumns> &
  Joined<WebhookColumns> & {
    internal: string | null
    type_account_scope: string | null
    type_is_actived: boolean | null
  }

const insert = statement<InsertedColumns, { id: SubscriptionId; webhook: string; event: string; now: Date }>(`
  with hook as (
    select ${OF_WEBHOOK} from webhook w where w.document_id = $webhook and w.deleted_at is null for update
  ), type as (
    select document_id, internal, account_scope as type_account_scope, is_actived as type_is_actived
    from event where document_id = $event
  ), s as (
    insert into webhook_event as l (document_id, webhook, event, created_at, updated_at)
    select $id, hook.hook, type.document_id, $now, $now from hook, type where type.type_is_actived
    on conflict (webhook, event) do update set deleted_at = null, updated_at = $now where l.deleted_at is not null
    returning l.document_id, l.webhook, l.event, l.created_at, l.updated_at, l.deleted_at
  )
  select ${OF_LINK}, hook.*, type.internal, type.type_account_scope, type.type_is_actived
  from (select) one left join hook on true left join type on true left join s on true`)

/** What came of a new link: what was found, and the link unless it was there already or something is missing. */
export interface InsertedSubscription {
  webhook: SubscribingWebhook | undefined
  eventType: NamedType | undefined
  subscription: SubscriptionRecord | undefined
}

/** Links a living webhook, locked until the transaction ends, to an active event type. A deleted link is revived. */
export async function insertSubscription(
  db: Database,
  row: { id: SubscriptionId; webhook: string; event: string; now: Date },
): Promise<InsertedSubscription> {
  const [found] = (await insert(db, row)) as [InsertedColumns]
  const { internal, type_account_scope: accountScope, type_is_actived: isActived } = found
  return {
    webhook: found.hook === null ? undefined : toSubscribingWebhook(found as WebhookColumns),
    eventType: toNamedType(internal, accountScope, isActived),
    subscription: found.document_id === null ? undefined : toSubscriptionRecord(found as SubscriptionColumns),
  }
}

const remove = statement<SubscriptionColumns & WebhookColumns, { id: string; kept: string; now: Date }>(`
  with hook as (
    select ${OF_WEBHOOK} from webhook w
    where w.document_id = (select webhook from webhook_event where document_id = $id) and w.deleted_at is null
    for update
  )
  update webhook_event s set deleted_at = $now, updated_at = $now from hook, event e
  where s.document_id = $id and s.deleted_at is null and s.webhook = hook.hook
    and e.document_id = s.event and e.internal <> $kept
  returning ${OF_LINK}, hook.*`)

/**
 * Soft-deletes the link with this id, its webhook locked until the transaction ends. Undefined when there is no living
 * link with this id, or it leads to the event type `kept`.
 */
export async function removeSubscription(
  db: Database,
  id: string,
  { kept, now }: { kept: string; now: Date },
): Promise<{ subscription: SubscriptionRecord; webhook: SubscribingWebhook } | undefined> {
  const [row] = await remove(db, { id, kept, now })
  return row && { subscription: toSubscriptionRecord(row), webhook: toSubscribingWebhook(row) }
}

type MoveColumns = SubscriptionColumns &
  WebhookColumns & {
    old_internal: string
    new_internal: string | null
    new_account_scope: string | null
    new_is_actived: boolean | null
    present: string | null
    present_created_at: Date | null
    is_present: boolean
  }

const lockForMove = statement<MoveColumns, { id: string; event: string }>(`
  with w as (
    select * from webhook
    where document_id = (select webhook from webhook_event where document_id = $id) and deleted_at is null for update
  ), link as materialized (
    select l.* from w cross join lateral links_of(w.document_id) l
  )
  select ${OF_LINK}, ${OF_WEBHOOK}, o.internal as old_internal,
    e.internal as new_internal, e.account_scope as new_account_scope, e.is_actived as new_is_actived,
    p.document_id as present, p.created_at as present_created_at,
    p.document_id is not null and p.deleted_at is null as is_present
  from w join link s on s.document_id = $id and s.deleted_at is null join event o on o.document_id = s.event
  left join event e on e.document_id = $event
  left join link p on p.event = $event`)

/** A link that is to move to another event type. */
export interface SubscriptionMove {
  subscription: SubscriptionRecord
  webhook: SubscribingWebhook
  /** The name of the event type that it leads to. */
  internal: string
  /** The event type that it is to lead to. */
  eventType: NamedType | undefined
  /** The webhook's link to that event type, deleted or not. */
  present: { id: SubscriptionId; createdAt: Date; isDeleted: boolean } | undefined
}

/** Locks the webhook of a living link until the transaction ends, and reads behind the lock what decides over its move. */
export async function lockMove(db: Database, id: string, event: string): Promise<SubscriptionMove | undefined> {
  const [row] = await lockForMove(db, { id, event })
  if (!row) return undefined
  const { new_internal: internal, new_account_scope: accountScope, new_is_actived: isActived, present } = row
  return {
    subscription: toSubscriptionRecord(row),
    webhook: toSubscribingWebhook(row),
    internal: row.old_internal,
    eventType: toNamedType(internal, accountScope, isActived),
    present:
      present === null
        ? undefined
        : { id: present as SubscriptionId, createdAt: row.present_created_at as Date, isDeleted: !row.is_present },
  }
}
