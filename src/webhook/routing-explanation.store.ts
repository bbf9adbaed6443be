import { sql } from 'kysely'
import type { DispatchStatus } from '../delivery/outcome.ts'
import type { AccountScope } from '../http/route.ts'
import type { AccountId, DispatchId, EventId, WebhookId } from '../id.ts'
import type { Database } from '../postgres/database.ts'

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
  deletedAt: Date | null
  /** Its link to the event type; null when it never had one. */
  link: { createdAt: Date; updatedAt: Date; deletedAt: Date | null } | null
  /** The ledger row of the event for this webhook. */
  dispatch: { id: DispatchId; status: DispatchStatus; attempts: number; lastError: string | null } | null
}

/** The event type with this name. */
export async function findExplainedType(db: Database, event: string): Promise<ExplainedType | undefined> {
  const row = await db
    .selectFrom('event')
    .select(['account_scope', 'is_actived'])
    .where('internal', '=', event)
    .executeTakeFirst()
  return row && { accountScope: row.account_scope as AccountScope, isActived: row.is_actived }
}

interface Columns {
  document_id: WebhookId
  name: string | null
  is_global: boolean
  account: AccountId | null
  is_actived: boolean
  disabled_reason: string | null
  created_at: Date
  deleted_at: Date | null
  link_created_at: Date | null
  link_updated_at: Date | null
  link_deleted_at: Date | null
  dispatch: DispatchId | null
  status: DispatchStatus | null
  attempts: number | null
  last_error: string | null
}

/**
 * Up to `limit` webhooks, deleted ones too, with their link to the event's type and their ledger row of the event. Those
 * with a row come first, then the others, oldest first. With `webhook`, only that one.
 */
export async function listExplainedWebhooks(
  db: Database,
  input: { eventId: EventId; event: string; webhook: string | null; limit: number },
): Promise<ExplainedWebhook[]> {
  const { rows } = await sql<Columns>`
    select w.document_id, w.name, w.is_global, w.account, w.is_actived, w.disabled_reason, w.created_at, w.deleted_at,
      s.created_at as link_created_at, s.updated_at as link_updated_at, s.deleted_at as link_deleted_at,
      d.document_id as dispatch, d.status, d.attempts, d.last_error
    from webhook w
    left join event t on t.internal = ${input.event}
    left join webhook_event s on s.webhook = w.document_id and s.event = t.document_id
    left join webhook_dispatch d on d.webhook = w.document_id and d.event_id = ${input.eventId}
    where ${input.webhook}::uuid is null or w.document_id = ${input.webhook}::uuid
    order by d.document_id is null, w.created_at, w.document_id
    limit ${input.limit}`.execute(db)
  return rows.map(toExplainedWebhook)
}

function toExplainedWebhook(row: Columns): ExplainedWebhook {
  const { link_created_at: createdAt, link_updated_at: updatedAt, link_deleted_at: deletedAt } = row
  return {
    id: row.document_id,
    name: row.name,
    isGlobal: row.is_global,
    account: row.account,
    isActived: row.is_actived,
    disabledReason: row.disabled_reason,
    createdAt: row.created_at,
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
