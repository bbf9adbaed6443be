import type { AccountId, WebhookId } from '../../base/id.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { isNull, statement } from '../../postgres/statement/statement.ts'
import { EVERYTHING } from '../../webhook/activity/outcome-keys.ts'
import { findStart, type Measured, RANGES, type Range } from './series.ts'

/** Each scope is read by the key of its sums, in their order. */
const selectMeasured = statement<Measured, { scopes: readonly string[]; width: string; start: Date }>(`
  select o.at, o.measure, sum(o.count)::float8 as count
  from unnest($scopes::uuid[]) s (scope)
  cross join lateral (
    select at, measure, count from webhook_outcome
    where scope = s.scope and width = $width and at >= $start offset 0
  ) o
  group by 1, 2`)

/** The sums of a range that ends with the bucket of `now`, of everything or of the accounts of `scope`, by its buckets. */
export function readMeasured(
  db: Database,
  { range, now, scope }: { range: Range; now: Date; scope: PermissionScope },
): Promise<Measured[]> {
  const { width } = RANGES[range]
  const scopes = scope === 'all' ? [EVERYTHING] : scope
  return selectMeasured(db, { scopes, width, start: findStart(range, now) })
}

/** Activity of a webhook in the last 24 hours. */
export interface WebhookActivity {
  webhook: WebhookId
  /** End of the newest known attempt. */
  lastAttemptAt: Date | null
  /** The hours with attempts, oldest first. */
  hours: { hour: Date; success: number; retrying: number; failed: number }[]
  eventTypes: number
}

/** In JSON an instant is text. */
type ActivityRow = Omit<WebhookActivity, 'hours'> & {
  hours: (Omit<WebhookActivity['hours'][number], 'hour'> & { hour: string })[]
}

/** Each webhook, its hours and its last ended delivery are looked up by their keys: `offset 0` keeps it so. */
const selectActivity = statement<
  ActivityRow,
  { webhooks: readonly string[]; accounts: readonly AccountId[] | null; since: Date }
>(`
  select w.document_id as webhook, greatest(h.last_at, (
      select d.ended_at from webhook_dispatch_ended d where d.webhook = w.document_id order by d.created_at desc limit 1
    )) as "lastAttemptAt", h.hours,
    (select count(*)::int from webhook_event e where e.webhook = w.document_id and ${isNull('e.deleted_at')}) as "eventTypes"
  from (select id, min(place) as place from unnest($webhooks::uuid[]) with ordinality as x (id, place) group by id) x
  cross join lateral (
    select w.document_id from webhook w
    where w.document_id = x.id and w.deleted_at is null
      and ($accounts::uuid[] is null or (not w.is_global and w.account = any($accounts::uuid[]))) offset 0
  ) w
  cross join lateral (
    select max(o.last_at) as last_at, coalesce(json_agg(json_build_object('hour', o.hour, 'success', o.success,
      'retrying', o.retrying, 'failed', o.failed) order by o.hour), '[]') as hours
    from (
      select o.hour, sum(o.success) as success, sum(o.retrying) as retrying, sum(o.failed) as failed, max(o.last_at) as last_at
      from (select * from webhook_outcome_hour o where o.webhook = w.document_id offset 0) o
      where o.hour >= $since group by 1
    ) o
  ) h
  order by x.place`)

/** Activity of these webhooks, each once, in the 24 hours that end with that of `now`; none deleted or outside `scope`. */
export async function readActivity(
  db: Database,
  { webhooks, now, scope }: { webhooks: readonly string[]; now: Date; scope: PermissionScope },
): Promise<WebhookActivity[]> {
  const accounts = scope === 'all' ? null : scope
  const rows = await selectActivity(db, { webhooks, accounts, since: findStart('24h', now) })
  return rows.map(({ hours, ...activity }) => ({
    ...activity,
    hours: hours.map((hour) => ({ ...hour, hour: new Date(hour.hour) })),
  }))
}
