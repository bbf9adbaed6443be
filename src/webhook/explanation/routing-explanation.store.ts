import type { AccountId, DispatchId, WebhookId } from '../../base/id.ts'
import type { StoredEvent } from '../../event/occurrence/event.store.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../postgres/statement/record.ts'
import { type Joined, statement } from '../../postgres/statement/statement.ts'
import type { DispatchStatus } from '../delivery/outcome.ts'

/** Facts of an event for an explanation. */
export type ExplainedEvent = Pick<
  StoredEvent,
  'id' | 'type' | 'account' | 'isPurge' | 'excludedWebhook' | 'resourceId' | 'createdAt' | 'routedAt'
> & {
  /** Its ordinal among recorded webhooks and events; null for an older release. */
  ordinal: number | null
}

export const eventType = defineRecord('event', ['account_scope', 'is_actived'], { is_actived: 'isTypeActived' })
type EventTypeRow = RecordOf<typeof eventType>

/** The event type of an event as the catalogue has it now. */
export interface ExplainedType extends Pick<EventTypeRow, 'accountScope'> {
  isActived: boolean
}

const webhook = defineRecord('webhook', [
  'document_id',
  'name',
  'is_global',
  'account',
  'resource_ids',
  'is_actived',
  'disabled_reason',
  'created_at',
  'deleted_at',
]).typed<{ account: AccountId | null; resourceIds: readonly string[] | null }>()
const link = defineRecord('webhook_event', ['created_at', 'updated_at', 'deleted_at'], {
  created_at: 'linkedAt',
  updated_at: 'linkUpdatedAt',
  deleted_at: 'unlinkedAt',
})

/** A webhook in its current state, with the ledger row of one event. */
export interface ExplainedWebhook extends RecordOf<typeof webhook> {
  /** Its ordinal. */
  ordinal: number
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

/** The webhook `w` and its link `s`, as statements of explanations select them. */
export const OF_WEBHOOK = `${webhook.members('w')}, w.ordinal::float8 as ordinal, ${link.members('s')}`

type WebhookRow = Omit<ExplainedWebhook, 'link'> & Joined<RecordOf<typeof link>>

/** The columns of an outer join with webhooks. */
export type JoinedWebhook = WebhookRow | (Partial<WebhookRow> & { id: null })

/** The event `o`, beside the members of a webhook. */
const event = defineRecord(
  'event_occurrence',
  ['document_id', 'event', 'account', 'is_purge', 'excluded_webhook', 'resource_id', 'created_at', 'routed_at'],
  { document_id: 'eventId', event: 'type', account: 'eventAccount', created_at: 'recordedAt' },
).typed<{ eventAccount: AccountId | null; excludedWebhook: WebhookId | null }>()

type EventRow = RecordOf<typeof event> & { eventOrdinal: number | null } & Joined<EventTypeRow>

const select = statement<
  EventRow & JoinedWebhook,
  { event: string; webhook: string | null; limit: number; scope: readonly AccountId[] | null }
>(`
  select ${event.members('o')}, o.ordinal::float8 as "eventOrdinal", ${eventType.members('t')}, ${OF_WEBHOOK},
    case when d.document_id is not null then json_build_object('id', d.document_id, 'status', d.status,
      'attempts', d.attempts, 'lastError', d.last_error) end as dispatch
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
 * The event and up to `limit` webhooks of `scope` with link and ledger row, those with a row first, or `webhook` alone.
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
      first.accountScope === null
        ? undefined
        : { accountScope: first.accountScope, isActived: first.isTypeActived === true },
    webhooks: toExplainedWebhooks(rows),
  }
}

function toExplainedEvent(row: EventRow): ExplainedEvent {
  const { eventId: id, type, eventAccount: account, isPurge, excludedWebhook, resourceId, recordedAt, routedAt } = row
  return {
    ...{ id, type, account, isPurge, excludedWebhook, resourceId, routedAt },
    createdAt: recordedAt,
    ordinal: row.eventOrdinal,
  }
}

/** Maps the webhooks of an explanation. */
export function toExplainedWebhooks(rows: readonly JoinedWebhook[]): ExplainedWebhook[] {
  return rows.filter((row) => row.id !== null).map(toExplainedWebhook)
}

function toExplainedWebhook(row: WebhookRow): ExplainedWebhook {
  const { linkedAt: createdAt, linkUpdatedAt: updatedAt, unlinkedAt: deletedAt } = row
  const { id, name, isGlobal, account, resourceIds, isActived, disabledReason, ordinal, dispatch } = row
  return {
    ...{ id, name, isGlobal, account, resourceIds, isActived, disabledReason, ordinal, dispatch },
    createdAt: row.createdAt,
    deletedAt: row.deletedAt,
    link: createdAt && updatedAt && { createdAt, updatedAt, deletedAt },
  }
}
