import { sql } from 'kysely'
import type { AccountId, Id, WebhookId } from '../../base/id.ts'
import type { EventTypeRecord } from '../../event/catalogue/catalogue.store.ts'
import { countBehindLock } from '../../postgres/statement/counted-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { isNull, type Joined, rowStatement, soleRowStatement } from '../../postgres/statement/statement.ts'

export type SubscriptionId = Id<'subscription'>

/** A webhook's link to an event type. */
export const link = defineRecord('webhook_event', [
  'document_id',
  'webhook',
  'event',
  'created_at',
  'updated_at',
  'deleted_at',
])
export type SubscriptionRecord = RecordOf<typeof link>

/** Facts of the webhook of a subscription. */
export interface SubscribingWebhook {
  id: WebhookId
  account: AccountId | null
  isGlobal: boolean
}

/** A row with the members that `OF_WEBHOOK` selects. */
export interface WithWebhook {
  hook: WebhookId
  hookAccount: AccountId | null
  hookIsGlobal: boolean
}

/** The webhook `w` of a row, as SQL. */
export const OF_WEBHOOK = 'w.document_id as hook, w.account as "hookAccount", w.is_global as "hookIsGlobal"'

/** Splits a row into the webhook of `OF_WEBHOOK` and the rest. */
export function splitWebhook<Row extends WithWebhook>({ hook, hookAccount, hookIsGlobal, ...rest }: Row) {
  return { webhook: { id: hook, account: hookAccount, isGlobal: hookIsGlobal }, rest }
}

/** A webhook that another database still has, during a move, counts as present: its links are copied before it. */
const IS_HOOK_PRESENT = sql<boolean>`
  (select w.deleted_at from webhook w where w.document_id = webhook_event.webhook) is null`

/** The existing links of existing webhooks, as the base of a list. */
export function selectSubscriptions(db: Database) {
  return selectRecord(db.selectFrom('webhook_event'), link).where('deleted_at', 'is', null).where(IS_HOOK_PRESENT)
}

const count = countBehindLock<{ subscriptions: number }, { webhook: WebhookId }>({
  counts: 'subscriptions of a webhook',
  lock: 'webhook',
  take: 'select from webhook where document_id = $webhook for update',
  count: `
    select count(*)::int as subscriptions from webhook_event s join event e on e.document_id = s.event
    where s.webhook = $webhook and ${isNull('s.deleted_at')} and e.internal <> 'webhook.test'`,
})

/** Number of links of a webhook except to `webhook.test`, which count for the limit of an account. */
export async function countSubscriptions(db: Database, webhook: WebhookId): Promise<number> {
  const [row] = await count(db, { webhook })
  return row?.subscriptions ?? 0
}

const selectOne = rowStatement<SubscriptionRecord & WithWebhook & { internal: string }, { id: string }>(`
  select ${link.members('s')}, ${OF_WEBHOOK}, e.internal
  from webhook_event s join webhook w on w.document_id = s.webhook join event e on e.document_id = s.event
  where s.document_id = $id and s.deleted_at is null and w.deleted_at is null`)

/** The existing link with this id, its existing webhook, and the name of its event type. */
export async function findSubscription(
  db: Database,
  id: string,
): Promise<{ subscription: SubscriptionRecord; webhook: SubscribingWebhook; internal: string } | undefined> {
  const row = await selectOne(db, { id })
  if (!row) return undefined
  const { webhook, rest } = splitWebhook(row)
  const { internal, ...subscription } = rest
  return { subscription, webhook, internal }
}

/** Facts for the check of a subscription and its warning. */
export type NamedType = Pick<EventTypeRecord, 'internal' | 'accountScope' | 'isActived' | 'deprecationRemedy'>

function toNamedType({ internal, accountScope, ...rest }: Joined<NamedType>): NamedType | undefined {
  const { isActived, deprecationRemedy } = rest
  return internal === null || accountScope === null
    ? undefined
    : { internal, accountScope, isActived: isActived === true, deprecationRemedy }
}

type InsertedRow = Joined<SubscriptionRecord> &
  Joined<WithWebhook> & {
    internal: string | null
    typeScope: NamedType['accountScope'] | null
    typeIsActived: boolean | null
    typeRemedy: string | null
  }

const insert = soleRowStatement<InsertedRow, { id: SubscriptionId; webhook: string; event: string; now: Date }>(`
  with hook as (
    select ${OF_WEBHOOK} from webhook w where w.document_id = $webhook and w.deleted_at is null for update
  ), type as (
    select document_id, internal, account_scope as "typeScope", is_actived as "typeIsActived",
      deprecation_remedy as "typeRemedy"
    from event where document_id = $event
  ), s as (
    insert into webhook_event as l (document_id, webhook, event, created_at, updated_at)
    select $id, hook.hook, type.document_id, $now, $now from hook, type where type."typeIsActived"
    on conflict (webhook, event) do update set deleted_at = null, updated_at = $now where l.deleted_at is not null
    returning ${link.select('l')}
  )
  select ${link.members('s')}, hook.*, type.internal, type."typeScope", type."typeIsActived", type."typeRemedy"
  from (select) one left join hook on true left join type on true left join s on true`)

/** Result of a new link: the rows found, and the link unless it exists or a row is missing. */
export interface InsertedSubscription {
  webhook: SubscribingWebhook | undefined
  eventType: NamedType | undefined
  subscription: SubscriptionRecord | undefined
}

/** Links an existing webhook, which it locks, to an active event type. A deleted link is restored. */
export async function insertSubscription(
  db: Database,
  row: { id: SubscriptionId; webhook: string; event: string; now: Date },
): Promise<InsertedSubscription> {
  const found = await insert(db, row)
  const { webhook, rest } = splitWebhook(found as InsertedRow & WithWebhook)
  const { internal, typeScope, typeIsActived, typeRemedy, ...subscription } = rest
  return {
    webhook: found.hook === null ? undefined : webhook,
    eventType: toNamedType({
      ...{ internal, accountScope: typeScope, isActived: typeIsActived, deprecationRemedy: typeRemedy },
    }),
    subscription: subscription.id === null ? undefined : (subscription as SubscriptionRecord),
  }
}

const remove = rowStatement<SubscriptionRecord & WithWebhook, { id: string; kept: string; now: Date }>(`
  with hook as (
    select ${OF_WEBHOOK} from webhook w
    where w.document_id = (select webhook from webhook_event where document_id = $id) and w.deleted_at is null
    for update
  )
  update webhook_event s set deleted_at = $now, updated_at = $now from hook, event e
  where s.document_id = $id and s.deleted_at is null and s.webhook = hook.hook
    and e.document_id = s.event and e.internal <> $kept
  returning ${link.members('s')}, hook.*`)

/** Soft-deletes this link, its webhook locked. Undefined for an unknown link, or one to the event type `kept`. */
export async function removeSubscription(
  db: Database,
  id: string,
  { kept, now }: { kept: string; now: Date },
): Promise<{ subscription: SubscriptionRecord; webhook: SubscribingWebhook } | undefined> {
  const row = await remove(db, { id, kept, now })
  if (!row) return undefined
  const { webhook, rest: subscription } = splitWebhook(row)
  return { subscription, webhook }
}

type MoveRow = SubscriptionRecord &
  WithWebhook & {
    internal: string
    newInternal: string | null
    newScope: NamedType['accountScope'] | null
    newIsActived: boolean | null
    newRemedy: string | null
    present: SubscriptionId | null
    presentCreatedAt: Date | null
    isPresent: boolean
  }

const lockForMove = rowStatement<MoveRow, { id: string; event: string }>(`
  with w as (
    select * from webhook
    where document_id = (select webhook from webhook_event where document_id = $id) and deleted_at is null for update
  ), link as materialized (
    select l.* from w cross join lateral links_of(w.document_id) l
  )
  select ${link.members('s')}, ${OF_WEBHOOK}, o.internal,
    e.internal as "newInternal", e.account_scope as "newScope", e.is_actived as "newIsActived",
    e.deprecation_remedy as "newRemedy",
    p.document_id as present, p.created_at as "presentCreatedAt",
    p.document_id is not null and p.deleted_at is null as "isPresent"
  from w join link s on s.document_id = $id and s.deleted_at is null join event o on o.document_id = s.event
  left join event e on e.document_id = $event
  left join link p on p.event = $event`)

export interface SubscriptionMove {
  subscription: SubscriptionRecord
  webhook: SubscribingWebhook
  /** The name of its event type. */
  internal: string
  eventType: NamedType | undefined
  /** The webhook's link to that event type, deleted or not. */
  present: { id: SubscriptionId; createdAt: Date; isDeleted: boolean } | undefined
}

/** Locks the webhook of an existing link, and reads behind the lock the facts for its move. */
export async function lockMove(db: Database, id: string, event: string): Promise<SubscriptionMove | undefined> {
  const row = await lockForMove(db, { id, event })
  if (!row) return undefined
  const { webhook, rest } = splitWebhook(row)
  const {
    internal,
    newInternal,
    newScope,
    newIsActived,
    newRemedy,
    present,
    presentCreatedAt,
    isPresent,
    ...subscription
  } = rest
  return {
    subscription,
    webhook,
    internal,
    eventType: toNamedType({
      ...{ internal: newInternal, accountScope: newScope, isActived: newIsActived, deprecationRemedy: newRemedy },
    }),
    present: present === null ? undefined : { id: present, createdAt: presentCreatedAt as Date, isDeleted: !isPresent },
  }
}
