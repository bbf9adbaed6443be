import { type ClaimRequest, listBlocked, type RoutingPart } from '../../delivery/policy.ts'
import { BUSY_WEBHOOKS, inFlightOf, listBusy } from './claimed-work.ts'
import { cameInto, countChanges, findShard } from './delivery-count.store.ts'
import { queueWebhooks } from './queue-head.ts'

/**
 * The id of the dispatch of an event for a webhook: made of both, so that an event is never routed to a webhook twice. The
 * first half is that of the event's id (the layout of RFC 9562, version 7), so that dispatches are in the order of events.
 */
const DISPATCH_ID = `
  (substr(e.document_id::text, 1, 14) || '7' || substr(e.document_id::text, 16, 3) || '-8' || substr(h.hash, 1, 3) || '-'
    || substr(h.hash, 4, 12))::uuid`

/**
 * Whom an event is delivered to, by the rules of `decideRouting` (a test holds both together). The index of subscriptions
 * by event type and account gives only those. `offset 0` keeps the order in which the tables are read: with the conditions on
 * webhooks beside the join, the planner may read all webhooks first.
 */
const MATCHED = `
    select ${DISPATCH_ID} as document_id, e.document_id as event_id, e.event, e.account, e.resource, e.action, e.resource_id,
      e.url as event_url, e.trace_context, e.created_at as event_created_at, w.document_id as webhook, w.url,
      w.secret_encrypted
    from routed e
    cross join lateral (
      select t.document_id, t.account_scope, t.is_actived from event t where t.internal = e.event offset 0
    ) t
    cross join lateral (
      select s.webhook from webhook_event s
      where s.event = t.document_id and s.account is null and s.deleted_at is null
      union all
      select s.webhook from webhook_event s
      where s.event = t.document_id and s.account = e.account and s.deleted_at is null
        and t.account_scope = 'account' and not e.is_purge
    ) s
    cross join lateral (
      select w.document_id, w.is_actived, w.deleted_at, w.created_at, w.url, w.secret_encrypted
      from webhook w where w.document_id = s.webhook offset 0
    ) w
    cross join lateral (select md5(e.document_id::text || w.document_id::text) as hash) h
    where t.is_actived and w.is_actived and w.deleted_at is null and w.created_at <= e.created_at
      and e.excluded_webhook is distinct from w.document_id`

/**
 * Which rows this worker claims as they are written: as many as it has slots for, no more of a webhook than its cap allows,
 * each webhook's first row before any second one. The others wait in the queue.
 */
const PLACED = `
  ${BUSY_WEBHOOKS('webhook_busy', { worker: '$1', webhooks: '$5', counts: '$6', hasPeers: '$9' })},
  webhook_placed as materialized (
    select t.*, t.is_eligible
      and row_number() over (partition by t.is_eligible order by t.turn, t.event_id) <= $3::int as is_claimed
    from (
      select m.*, m.turn <= $4::int and m.webhook <> all($7::uuid[]) as is_eligible
      from (
        select n.*, row_number() over (partition by n.webhook order by n.event_id)
          + ${inFlightOf('webhook_busy', 'n.webhook')} as turn
        from webhook_matched n
      ) m
    ) t
  )`

const WRITTEN = `
  webhook_opened as (
    insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, status, attempts, next_attempt_at,
      last_attempt_at, lease_owner, fence, created_at, updated_at)
    select p.document_id, p.webhook, p.event_id, p.event, p.account, 'pending', p.is_claimed::int,
      case when not p.is_claimed then $2::timestamptz end, case when p.is_claimed then $2::timestamptz end,
      case when p.is_claimed then $1 end, p.is_claimed::int, $2, $2
    from webhook_placed p
    returning document_id as id, created_at
  ),
  webhook_queued as (${queueWebhooks('webhook_placed where not is_claimed', { at: '$2' })}),
  webhook_counted as (${countChanges([cameInto('webhook_opened', `'pending'`)], '$8')}),
  webhook_work as (
    select json_build_array(document_id, 1, 1, 'schedule', false, (extract(epoch from $2::timestamptz) * 1000)::bigint, webhook, url,
      secret_encrypted, event_id, event, (extract(epoch from event_created_at) * 1000)::bigint, account, resource, action,
      resource_id, event_url, trace_context) as work
    from webhook_placed where is_claimed
  ),
  webhook_next as (
    select least(
      (select visit_at from webhook_queue where not is_held and webhook <> all($10::uuid[]) order by visit_at limit 1),
      (select $2::timestamptz from webhook_placed where not is_claimed and webhook <> all($10::uuid[]) limit 1)
    ) as due_at
  )`

/** The part of the routing statement that writes the ledger rows of webhooks. */
export function buildWebhookRouting(request: ClaimRequest): RoutingPart {
  const { workerId, now, fastSlots, perGroup, slowGroups, hasPeers } = request
  const [webhooks, counts] = listBusy(request)
  const values = [
    workerId,
    now,
    fastSlots,
    perGroup,
    webhooks,
    counts,
    slowGroups,
    findShard(workerId),
    hasPeers,
    listBlocked(request),
  ]
  return { matched: MATCHED, written: { name: 'webhook', text: [PLACED, WRITTEN].join(', '), values } }
}
