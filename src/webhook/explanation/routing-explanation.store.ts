import type { AccountId, DispatchId, EventId, WebhookId } from '../../base/id.ts'
import type { StoredEvent } from '../../event/occurrence/event.store.ts'
import type { AccountScope } from '../../http/route/route.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import type { DispatchStatus } from '../delivery/outcome.ts'

/** Facts of an event that an explanation reads. */
export type ExplainedEvent = Pick<
  StoredEvent,
  'id' | 'type' | 'account' | 'isPurge' | 'excludedWebhook' | 'createdAt' | 'routedAt'
> & {
  /** Its place in the order in which webhooks and events were recorded; null in one of an older release. */
  ordinal: number | null
}

/** The event type of an event as the catalogue has it now. */
export interface ExplainedType {
  accountScope: AccountScope
  isActived: boolean
}

/** A webhook as it stands now, with what the ledger says of one event. */
export interface ExplainedWebhook {
  id: WebhookId
  name: string | null
  isGlobal: boolean
  account: AccountId | null
  isActived: boolean
  disabledReason: string | null
  createdAt: Date
  /** Its place in that order. */
  ordinal: number
  deletedAt: Date | null
  /** Its link to the event type; null when it never had one. */
  link: { createdAt: Date; updatedAt: Date; deletedAt: Date | null } | null
  /** The ledger row of the event for this webhook. */
  dispatch: { id: DispatchId; status: DispatchStatus; attempts: number; lastError: string | null } | null
}

/** Facts of an explanation, all of one instant. */
export interface Explained {
  event: ExplainedEvent
  /** The type of the event; undefined when it is no longer in the catalogue. */
  eventType: ExplainedType | undefined
  webhooks: ExplainedWebhook[]
}

interface EventColumns {
  event_id: string
  event: string
  event_account: string | null
  is_purge: boolean
  excluded_webhook: string | null
  event_created_at: Date
  event_ordinal: number | null
  routed_at: Date | null
  account_scope: string | null
  type_is_actived: boolean | null
}

/** A webhook and its link, as statements of explanations select them. */
export interface WebhookColumns {
  document_id: WebhookId
  name: string | null
  is_global: boolean
  account: AccountId | null
  is_actived: boolean
  disabled_reason: string | null
  created_at: Date
  ordinal: number
  deleted_at: Date | null
  link_created_at: Date | null
  link_updated_at: Date | null
  link_deleted_at: Date | null
  dispatch: DispatchId | null
  status: DispatchStatus | null
  attempts: number | null
  last_error: string | null
}

type Columns = EventColumns & (WebhookColumns | (Partial<WebhookColumns> & { document_id: null }))

const select = statement<
  Columns,
  { event: string; webhook: string | null; limit: number; scope: readonly AccountId[] | null }
>(`
  select o.document_id as event_id, o.event, o.account as event_account, o.is_purge, o.excluded_webhook,
    o.created_at as event_created_at, o.ordinal::float8 as event_ordinal, o.routed_at, t.account_scope, t.is_actived as type_is_actived,
    w.document_id, w.name, w.is_global, w.account, w.is_actived, w.disabled_reason, w.created_at,
    w.ordinal::float8 as ordinal, w.deleted_at,
    s.created_at as link_created_at, s.updated_at as link_updated_at, s.deleted_at as link_deleted_at,
    d.document_id as dispatch, d.status, d.attempts, d.last_error
  from event_occurrence o
  left join event t on t.internal = o.event
  left join (
    select x.* from webhook x where x.document_id = $webhook
    union all select x.* from webhook x where $webhook::uuid is null and x.account = any($scope)
    union all select x.* from webhook x where $webhook::uuid is null and $scope::uuid[] is null
  ) w on $scope::uuid[] is null or (not w.is_global and w.account = any($scope))
  left join lateral (
    select * from webhook_event l where l.webhook = w.document_id and l.event = t.document_id offset 0
  ) s on true
  left join lateral (
    select * from webhook_dispatch l where l.webhook = w.document_id and l.event_id = o.document_id offset 0
  ) d on true
  where o.document_id = $event
  order by d.document_id is null, w.created_at, w.document_id
  limit $limit`)

/**
 * The event with this id and up to `limit` webhooks, deleted ones too, with their link to the event's type and their ledger
 * row of the event. Those with a row come first, then the others, oldest first. With `webhook`, only that one; only
 * webhooks within `scope`. Undefined when there is no such event.
 */
export async function findExplained(
  db: Database,
  input: { event: string; webhook: string | null; scope: PermissionScope; limit: number },
): Promise<Explained | undefined> {
  const rows = await select(db, {
    ...input,
    scope: input.scope === 'all' ? null : input.scope,
  })
  const [first] = rows
  if (!first) return undefined
  return {
    event: toExplainedEvent(first),
    eventType:
      first.account_scope === null
        ? undefined
        : { accountScope: first.account_scope as AccountScope, isActived: first.type_is_actived === true },
    webhooks: rows.filter(hasWebhook).map(toExplainedWebhook),
  }
}

function hasWebhook(row: Columns): row is EventColumns & WebhookColumns {
  return row.document_id !== null
}

function toExplainedEvent(row: EventColumns): ExplainedEvent {
  return {
    id: row.event_id as EventId,
    type: row.event,
    account: row.event_account as AccountId | null,
    isPurge: row.is_purge,
    excludedWebhook: row.excluded_webhook as WebhookId | null,
    createdAt: row.event_created_at,
    ordinal: row.event_ordinal,
    routedAt: row.routed_at,
  }
}

/** Maps a webhook of an explanation. */
export function toExplainedWebhook(row: WebhookColumns): ExplainedWebhook {
  const { link_created_at: createdAt, link_updated_at: updatedAt, link_deleted_at: deletedAt } = row
  return {
    id: row.document_id,
    name: row.name,
    isGlobal: row.is_global,
    account: row.account,
    isActived: row.is_actived,
    disabledReason: row.disabled_reason,
    createdAt: row.created_at,
    ordinal: row.ordinal,
    deletedAt: row.deleted_at,
    link: createdAt && updatedAt && { createdAt, updatedAt, deletedAt },
    dispatch: row.dispatch && {
      id: row.dispatch,
      status: row.status as DispatchStatus,
      attempts: row.attempts ?? 0,
      lastError: row.last_error,
    },
  }
}
