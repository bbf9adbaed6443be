import type { ClaimRequest, RoutingPart } from '../../delivery/policy.ts'
import { BUSY_WEBHOOKS, listBusy, WORK_JSON } from './claimed-work.ts'
import { countInto, findShard } from './total.store.ts'

/**
 * The id of the dispatch of an event for a webhook: made of both, so that an event is never routed to a webhook twice, with
 * the time of the event in front (the layout of RFC 9562, version 7).
 */
const DISPATCH_ID = `
  (substr(e.document_id::text, 1, 14) || '7' || substr(h.hash, 1, 3) || '-8' || substr(h.hash, 4, 3) || '-'
    || substr(h.hash, 7, 12))::uuid`

/**
 * Whom an event is delivered to, by the rules of `decideRouting` (a test holds both together). The index of subscriptions
 * by event type and account gives only those.
 */
const MATCHED = `
  webhook_matched as (
    select ${DISPATCH_ID} as document_id, e.document_id as event_id, w.document_id as webhook,
      row_number() over (partition by w.document_id order by e.document_id) as nth
    from routed e
    join event t on t.internal = e.event and t.is_actived
    cross join lateral (
      select s.webhook from webhook_event s
      where s.event = t.document_id and s.account is null and s.deleted_at is null
      union all
      select s.webhook from webhook_event s
      where s.event = t.document_id and s.account = e.account and s.deleted_at is null
        and t.account_scope = 'account' and not e.is_purge
    ) s
    join webhook w on w.document_id = s.webhook
    cross join lateral (select md5(e.document_id::text || w.document_id::text) as hash) h
    where w.is_actived and w.deleted_at is null and w.created_at <= e.created_at
      and e.excluded_webhook is distinct from w.document_id
  )`

/**
 * Which rows this worker claims as they are written: as many as it has slots for, no more of a webhook than its cap allows,
 * each webhook's first row before any second one. The others wait in the queue.
 */
const PLACED = `
  ${BUSY_WEBHOOKS('webhook_busy', '$1', '$5', '$6')},
  webhook_eligible as (
    select m.document_id, m.event_id, m.webhook, m.nth + coalesce(b.in_flight, 0) as turn,
      m.nth + coalesce(b.in_flight, 0) <= $4::int and m.webhook <> all($7::uuid[]) as is_eligible
    from webhook_matched m left join webhook_busy b on b.webhook = m.webhook
  ),
  webhook_placed as (
    select document_id, event_id, webhook,
      is_eligible and row_number() over (partition by is_eligible order by turn, event_id) <= $3::int as is_claimed
    from webhook_eligible
  )`

const WRITTEN = `
  webhook_written as (
    insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, status, attempts, next_attempt_at,
      last_attempt_at, lease_owner, fence, created_at, updated_at)
    select p.document_id, p.webhook, p.event_id, e.event, e.account, 'pending', p.is_claimed::int,
      case when not p.is_claimed then $2::timestamptz end, case when p.is_claimed then $2::timestamptz end,
      case when p.is_claimed then $1 end, p.is_claimed::int, $2, $2
    from webhook_placed p join event_occurrence e on e.document_id = p.event_id
    returning *
  ),
  webhook_opened as (select document_id as id from webhook_written),
  webhook_queued as (
    insert into webhook_queue (webhook, visit_at)
    select distinct webhook, $2::timestamptz from webhook_written where lease_owner is null order by webhook
    on conflict (webhook) do update set visit_at = least(webhook_queue.visit_at, excluded.visit_at)
  ),
  webhook_counted as (${countInto('webhook_written', `'pending'`, '$8')}),
  webhook_work as (
    select ${WORK_JSON} as work
    from webhook_written d
    join webhook w on w.document_id = d.webhook
    join routed e on e.document_id = d.event_id
    where d.lease_owner is not null
  ),
  webhook_next as (select visit_at as due_at from webhook_queue where not is_held order by visit_at limit 1)`

/** The part of the routing statement that writes the ledger rows of webhooks. */
export function buildWebhookRouting(request: ClaimRequest): RoutingPart {
  const { workerId, now, fastSlots, perGroup, slowGroups } = request
  const [webhooks, counts] = listBusy(request)
  return {
    name: 'webhook',
    text: [MATCHED, PLACED, WRITTEN].join(', '),
    values: [workerId, now, fastSlots, perGroup, webhooks, counts, slowGroups, findShard(workerId)],
  }
}
