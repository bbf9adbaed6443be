import { sql } from 'kysely'
import { HEALTH_WINDOW_MS } from '../health/webhook-out.ts'
import type { Database } from '../postgres/database.ts'
import { type DispatchRecord, toDispatchRecord } from '../webhook/ledger/dispatch.store.ts'

function startOfWindow(now: Date): Date {
  return new Date(now.getTime() - HEALTH_WINDOW_MS)
}

/** Deliveries of the last 24 h by status. Every status is there, also with none. */
export async function countDeliveries(db: Database, now: Date): Promise<Record<string, number>> {
  const { rows } = await sql<{ status: string; deliveries: number }>`
    select s.status, count(d.document_id) as deliveries
    from unnest(array['pending', 'retrying', 'success', 'exhausted', 'failed', 'cancelled']) as s (status)
    left join webhook_dispatch d on d.status = s.status and d.created_at >= ${startOfWindow(now)}
    group by s.status`.execute(db)
  return Object.fromEntries(rows.map((row) => [row.status, row.deliveries]))
}

/** Living webhooks: active ones, inactive ones, and among the inactive those that the service disabled itself. */
export async function countWebhooks(
  db: Database,
): Promise<{ active: number; inactive: number; auto_disabled: number }> {
  const { rows } = await sql<{ active: number; inactive: number; auto_disabled: number }>`
    select count(*) filter (where is_actived) as active, count(*) filter (where not is_actived) as inactive,
      count(*) filter (where not is_actived and disabled_reason = 'consecutive-failures') as auto_disabled
    from webhook where deleted_at is null`.execute(db)
  return rows[0] ?? { active: 0, inactive: 0, auto_disabled: 0 }
}

/** The most recent deliveries that ended without success in the last 24 h. */
export async function listRecentFailures(db: Database, now: Date, limit: number): Promise<DispatchRecord[]> {
  const rows = await db
    .selectFrom('webhook_dispatch')
    .selectAll()
    .where('status', 'in', ['exhausted', 'failed'])
    .where('ended_at', '>=', startOfWindow(now))
    .orderBy('ended_at', 'desc')
    .orderBy('document_id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(toDispatchRecord)
}

/** Deliveries by the hour they were made in, over the last 24 h, oldest hour first, empty hours included. */
export async function countByHour(db: Database, now: Date): Promise<{ hour: Date; success: number; failed: number }[]> {
  const { rows } = await sql<{ hour: Date; success: number; failed: number }>`
    select h.hour, coalesce(d.success, 0) as success, coalesce(d.failed, 0) as failed
    from generate_series(
      date_trunc('hour', ${now}::timestamptz) - interval '23 hours', date_trunc('hour', ${now}::timestamptz), interval '1 hour'
    ) as h (hour)
    left join (
      select date_trunc('hour', created_at) as hour,
        count(*) filter (where status = 'success') as success,
        count(*) filter (where status in ('exhausted', 'failed')) as failed
      from webhook_dispatch
      where created_at >= date_trunc('hour', ${now}::timestamptz) - interval '23 hours'
      group by 1
    ) d on d.hour = h.hour
    order by h.hour`.execute(db)
  return rows
}
