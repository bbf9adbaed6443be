import { valueStatement } from '../../postgres/statement/statement.ts'
import { ADD_UP, startOf } from './breakdown.store.ts'
import { DURATION_BOUNDS_MS, EVERYTHING } from './outcome-keys.ts'

/**
 * The part of a statement that records the outcomes of the attempts of `claim` in one row: with `webhook`, `owner` (the
 * account of a webhook that is not global), `account`, `event`, `status`, `error_class`, `status_code`, `duration_ms`
 * and `ended_at`. An append costs a settling statement less than an update of counts, and waits for no lock.
 */
export const recordOutcomes = (claim: string) => `
  insert into webhook_outcome_batch (settled_at, webhooks, owners, statuses, causes, durations, events, counts)
  select max(g.at), array_agg(g.webhook), array_agg(g.owner), array_agg(g.status), array_agg(g.error_class),
    array_agg(g.duration), array_agg(g.event), array_agg(g.attempts)
  from (
    select webhook, case when owner = account then owner end as owner, status, error_class,
      case when status_code is not null then width_bucket(duration_ms, array[${DURATION_BOUNDS_MS.join(', ')}]) end
        as duration,
      event, count(*)::int as attempts, max(ended_at) as at
    from ${claim} group by 1, 2, 3, 4, 5, 6
  ) g
  having count(*) > 0`

/**
 * Adds up to `limit` batches of outcomes to the sums. Returns their number. The sums are written in the order of their
 * keys, one kind behind the other, so that no two processes wait for each other. The minutes of a fan-out are few, its
 * webhooks many: so a delivery writes one row of its webhook and event type, a failure one more, and the sums of
 * scopes and widths are made of minutes. The breakdown is written in its narrowest width only, and widened by the
 * maintenance.
 */
export const foldOutcomes = valueStatement<number, { limit: number }>(`
  with taken as (
    delete from webhook_outcome_batch where number = any(array(
      select number from webhook_outcome_batch order by number limit $limit for update skip locked))
    returning *
  ), entry as materialized (
    select t.settled_at, x.*
    from taken t
    cross join lateral unnest(t.webhooks, t.owners, t.statuses, t.causes, t.durations, t.events, t.counts)
      as x (webhook, owner, status, cause, duration, event, attempts)
  ), of_webhooks as (
    insert into webhook_outcome_hour (webhook, hour, event, success, retrying, failed, last_at)
    select webhook, date_trunc('hour', settled_at), event, coalesce(sum(attempts) filter (where status = 'success'), 0),
      coalesce(sum(attempts) filter (where status = 'retrying'), 0),
      coalesce(sum(attempts) filter (where status in ('exhausted', 'failed')), 0), max(settled_at)
    from entry group by 1, 2, 3 order by 1, 2, 3
    on conflict (webhook, hour, event) do update
      set success = webhook_outcome_hour.success + excluded.success,
        retrying = webhook_outcome_hour.retrying + excluded.retrying,
        failed = webhook_outcome_hour.failed + excluded.failed,
        last_at = greatest(webhook_outcome_hour.last_at, excluded.last_at)
    returning 1
  ), of_owners as materialized (
    select owner, ${startOf('five_minutes', 'settled_at')} as at, event, sum(attempts) as attempts,
      coalesce(sum(attempts) filter (where status <> 'success'), 0) as failed
    from entry group by 1, 2, 3
  ), of_breakdowns as (
    insert into webhook_breakdown (subject, at, width, measure, attempts, failed)
    select e.subject, e.at, 'five_minutes', e.measure, sum(e.attempts), sum(e.failed)
    from (
      select webhook as subject, ${startOf('five_minutes', 'settled_at')} as at, 'answer:' || cause as measure, attempts,
        attempts as failed
      from entry where status <> 'success'
      union all select '${EVERYTHING}'::uuid, at, 'event:' || event, attempts, failed from of_owners
      union all select owner, at, 'event:' || event, attempts, failed from of_owners where owner is not null
    ) e
    where (select count(*) from of_webhooks) >= 0
    group by 1, 2, 4 order by 1, 2, 4
    ${ADD_UP}
    returning 1
  ), of_minutes as materialized (
    select owner, date_trunc('minute', settled_at) as minute, status, cause, duration, sum(attempts) as attempts
    from entry group by 1, 2, 3, 4, 5
  ), of_scopes as (
    insert into webhook_outcome (scope, width, at, measure, count)
    select s.scope, w.width, date_bin(w.step, e.minute, timestamptz 'epoch'), m.measure, sum(e.attempts)
    from of_minutes e
    cross join lateral (select '${EVERYTHING}'::uuid as scope union all select e.owner where e.owner is not null) s
    cross join (values ('minute', interval '1 minute'), ('hour', interval '1 hour'), ('quarter', interval '6 hours'),
      ('day', interval '1 day')) w (width, step)
    cross join lateral (values (e.status), ('cause:' || e.cause), ('duration:' || e.duration)) m (measure)
    where m.measure is not null and (select count(*) from of_breakdowns) >= 0
    group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (scope, width, at, measure) do update set count = webhook_outcome.count + excluded.count
  )
  select count(*)::int as folded from taken`)

/** Retention limits of the sums of each width. */
interface OldBefore {
  minutes: Date
  hours: Date
  quarters: Date
  days: Date
}

/** The sums of a width from before an instant, by the index of their time. */
const oldOf = (width: string, before: string) => `
    delete from webhook_outcome where ctid = any(array(
      select ctid from webhook_outcome where width = '${width}' and at < ${before} order by at limit $limit
      for update skip locked))
    returning 1`

/** Deletes sums from before these instants, up to `limit` of a kind. Returns the number of the kind with the most. */
export const deleteOldOutcomes = valueStatement<number, OldBefore & { limit: number }>(`
  with minutes as (${oldOf('minute', '$minutes')}),
  hours as (${oldOf('hour', '$hours')}),
  quarters as (${oldOf('quarter', '$quarters')}),
  days as (${oldOf('day', '$days')})
  select greatest((select count(*) from minutes), (select count(*) from hours), (select count(*) from quarters),
    (select count(*) from days))::int as deleted`)
