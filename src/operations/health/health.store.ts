import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { COUNT_LIMIT, HEALTH_WINDOW_MS, type WebhookOutFacts } from './webhook-out.ts'

/** The due, unclaimed rows of one webhook of `active`, the longest due first. */
const dueRows = (limit: string) => `
    select d.next_attempt_at from webhook_dispatch_open d
    where d.webhook = active.webhook and d.next_attempt_at <= $now
    order by d.next_attempt_at, d.document_id limit ${limit}`

/**
 * `active`: the webhooks that have rows which wait and do not rest, at most `$limit`. A webhook with a limit a second
 * waits, in `longest`, since it was to be visited: the age of its rows follows from the limit.
 */
const selectFacts = statement<WebhookOutFacts, { now: Date; since: Date; limit: number }>(`
  with active as (
    select q.webhook, q.free_at is not null as is_throttled,
      case when w.max_per_second is not null then q.visit_at end as limited_at
    from webhook_queue q cross join lateral (
      select w.is_actived and w.deleted_at is null as is_live, w.max_per_second from webhook w
      where w.document_id = q.webhook offset 0) w
    where not q.is_held and w.is_live order by q.visit_at limit $limit
  ),
  due as (
    select from active cross join lateral (${dueRows('$limit')}) due where not active.is_throttled limit $limit
  ),
  throttled as (
    select from active cross join lateral (${dueRows('$limit')}) due where active.is_throttled limit $limit
  ),
  longest as (
    select min(greatest(due.next_attempt_at, active.limited_at)) as since,
      min(due.next_attempt_at) filter (where active.is_throttled) as throttled_since
    from active cross join lateral (${dueRows('1')}) due
  ),
  unrouted as (
    select count(*) as backlog,
      min((select e.created_at from event_occurrence e where e.document_id = q.event_id)) as since
    from (
      (select event_id from event_queue order by event_id limit $limit)
      union all (select event_id from webhook_fan_out order by event_id limit $limit)
    ) q
  )
  select
    (select count(*) from (
      select from webhook_dispatch_ended where status = 'exhausted' and ended_at >= $since limit $limit) e
    ) as exhausted_24h,
    (select count(*) from (
      select from webhook
      where deleted_at is null and not is_actived and disabled_reason = 'consecutive-failures' limit $limit) w
    ) as auto_disabled,
    least((select count(*) from due) + unrouted.backlog, $limit) as backlog,
    coalesce(floor(greatest(0, extract(epoch from $now::timestamptz - least(longest.since, unrouted.since)))), 0)::int
      as oldest_pending_s,
    (select count(*) from throttled) as throttled,
    coalesce(floor(extract(epoch from $now::timestamptz - longest.throttled_since)), 0)::int as oldest_throttled_s
  from longest, unrouted`)

const NOTHING: WebhookOutFacts = {
  ...{ exhausted_24h: 0, auto_disabled: 0, backlog: 0, oldest_pending_s: 0 },
  ...{ throttled: 0, oldest_throttled_s: 0 },
}

/**
 * Reads the facts for the health of outbound webhooks. Unrouted events count as waiting, because without a running
 * dispatcher there are no due dispatches.
 *
 * Each count stops at `limit` and reads a partial index of exactly these rows, so the statement reads a small multiple
 * of `limit` rows for any backlog.
 */
export async function readWebhookOutFacts(db: Database, now: Date, limit = COUNT_LIMIT): Promise<WebhookOutFacts> {
  const [row] = await selectFacts(db, { now, since: new Date(now.getTime() - HEALTH_WINDOW_MS), limit })
  return row ?? NOTHING
}
