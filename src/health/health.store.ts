import { sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import { HEALTH_WINDOW_MS, type WebhookOutFacts } from './webhook-out.ts'

/**
 * Reads what the health of outbound webhooks is judged by. Auto-disabled are those that the service disabled itself. Events
 * that no router has seen wait like due dispatches do: without a running dispatcher they are all there is to see.
 */
export async function readWebhookOutFacts(db: Database, now: Date): Promise<WebhookOutFacts> {
  const since = new Date(now.getTime() - HEALTH_WINDOW_MS)
  const { rows } = await sql<WebhookOutFacts>`
    select
      (select count(*) from webhook_dispatch where status = 'exhausted' and ended_at >= ${since}) as exhausted_24h,
      (select count(*) from webhook
        where deleted_at is null and not is_actived and disabled_reason = 'consecutive-failures') as auto_disabled,
      due.backlog + unrouted.backlog as backlog,
      coalesce(floor(greatest(0, extract(epoch from ${now}::timestamptz - least(due.oldest, unrouted.oldest)))), 0)::int
        as oldest_pending_s
    from (
      select count(*) as backlog, min(d.next_attempt_at) as oldest
      from webhook_dispatch d join webhook w on w.document_id = d.webhook
      where d.status in ('pending', 'retrying') and d.next_attempt_at <= ${now}
        and d.lease_until is null and w.is_actived and w.deleted_at is null
    ) due,
    (select count(*) as backlog, min(created_at) as oldest from event_occurrence where routed_at is null) unrouted`.execute(
    db,
  )
  return rows[0] ?? { exhausted_24h: 0, auto_disabled: 0, backlog: 0, oldest_pending_s: 0 }
}
