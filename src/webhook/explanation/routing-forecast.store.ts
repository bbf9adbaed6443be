import type { AccountScope } from '../../http/route/route.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import {
  type ExplainedType,
  type ExplainedWebhook,
  toExplainedWebhook,
  type WebhookColumns,
} from './routing-explanation.store.ts'

interface TypeColumns {
  event: string
  account_scope: AccountScope
  type_is_actived: boolean
}

type Columns = TypeColumns & (WebhookColumns | (Partial<WebhookColumns> & { document_id: null }))

const select = statement<
  Columns,
  { eventType: string; webhook: string | null; account: string | null; limit: number }
>(`
  select t.internal as event, t.account_scope, t.is_actived as type_is_actived,
    w.document_id, w.name, w.is_global, w.account, w.is_actived, w.disabled_reason, w.created_at,
    w.ordinal::float8 as ordinal, w.deleted_at,
    s.created_at as link_created_at, s.updated_at as link_updated_at, s.deleted_at as link_deleted_at,
    null::uuid as dispatch, null as status, null::int as attempts, null as last_error
  from event t
  left join (
    select x.* from webhook x where x.document_id = $webhook
    union all (
      select x.* from webhook x
      where $webhook::uuid is null and x.account = $account and not x.is_global and x.deleted_at is null
      order by x.created_at limit $limit
    )
    union all (
      select x.* from webhook x where $webhook::uuid is null and x.is_global and x.deleted_at is null
      order by x.created_at limit $limit
    )
  ) w on true
  left join lateral (
    select * from webhook_event l where l.webhook = w.document_id and l.event = t.document_id offset 0
  ) s on true
  where t.document_id = $eventType
  order by w.is_global, w.created_at, w.document_id
  limit $limit`)

/** An event type, and webhooks that an event of it may reach. */
export interface Candidates {
  /** The name of the event type. */
  type: string
  eventType: ExplainedType
  webhooks: ExplainedWebhook[]
}

/**
 * The event type with this id, and up to `limit` living webhooks: those of `account`, oldest first, then the global ones. With
 * `webhook`, only that one, also when it is deleted. Undefined when there is no such event type.
 */
export async function findCandidates(
  db: Database,
  input: { eventType: string; webhook: string | null; account: string | null; limit: number },
): Promise<Candidates | undefined> {
  const rows = await select(db, input)
  const [first] = rows
  if (!first) return undefined
  return {
    type: first.event,
    eventType: { accountScope: first.account_scope, isActived: first.type_is_actived },
    webhooks: rows.filter(hasWebhook).map(toExplainedWebhook),
  }
}

function hasWebhook(row: Columns): row is TypeColumns & WebhookColumns {
  return row.document_id !== null
}
