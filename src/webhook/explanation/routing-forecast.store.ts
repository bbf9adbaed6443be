import type { Database } from '../../postgres/statement/database.ts'
import type { RecordOf } from '../../postgres/statement/record.ts'
import { statement } from '../../postgres/statement/statement.ts'
import {
  type ExplainedType,
  type ExplainedWebhook,
  eventType,
  type JoinedWebhook,
  OF_WEBHOOK,
  toExplainedWebhooks,
} from './routing-explanation.store.ts'

const select = statement<
  { type: string } & RecordOf<typeof eventType> & JoinedWebhook,
  { eventType: string; webhook: string | null; account: string | null; limit: number }
>(`
  select t.internal as type, ${eventType.members('t')}, ${OF_WEBHOOK}, null::json as dispatch
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

/** An event type, and the webhooks that may receive an event of it. */
export interface Candidates {
  type: string
  eventType: ExplainedType
  webhooks: ExplainedWebhook[]
}

/** The event type, and up to `limit` webhooks, those of `account` first; or `webhook` alone. Undefined for no type. */
export async function findCandidates(
  db: Database,
  input: { eventType: string; webhook: string | null; account: string | null; limit: number },
): Promise<Candidates | undefined> {
  const rows = await select(db, input)
  const [first] = rows
  if (!first) return undefined
  return {
    type: first.type,
    eventType: { accountScope: first.accountScope, isActived: first.isTypeActived },
    webhooks: toExplainedWebhooks(rows),
  }
}
