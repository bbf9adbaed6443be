import { type ClaimRequest, listBlocked, listUnready, type RoutingPart } from '../../delivery/policy.ts'
import { fragment } from '../../postgres/statement/fragment.ts'
import { countInFlight, inFlightOf, isTaken } from './claimed-message.ts'

/** A `resource_id` that is the id of a row; others belong to outside services. */
const IS_ROW_ID = `e.resource_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'`

/**
 * The events that have an owner (docs/contract/realtime.md#published-events) and were recorded in this database: those of
 * another one are published there. `contract` is the one that the event is
 * about, if the account of the event owns it: a publisher for one account must not reach the channel of another
 * account's contract.
 */
const MATCHED = `
    select e.document_id, e.event, e.account, e.resource, e.action, e.resource_id, e.url, e.created_at as event_created_at,
      (select c.document_id from contract c
        where c.document_id = case when e.resource = 'contract' and ${IS_ROW_ID} then e.resource_id::uuid end
          and c.account = e.account) as contract
    from routed e where e.account is not null and e.origin is null`

/** The messages claimed as they are written: up to the free slots, unless earlier ones of their account wait. */
const PLACED = `
  realtime_placed as materialized (
    select t.*, t.is_eligible
      and row_number() over (partition by t.is_eligible order by t.turn, t.document_id) <= $fastSlots::int as is_claimed
    from (
      select n.*, n.turn <= $perGroup::int and n.account <> all($unready::uuid[]) and not n.is_behind as is_eligible
      from (
        select m.*,
          row_number() over (partition by m.account order by m.document_id) + ${inFlightOf('m.account')} as turn,
          exists (select from realtime_queue q where q.account = m.account offset 0)
            or ${isTaken('m.account')} as is_behind
        from realtime_matched m
      ) n
    ) t
  )`

/** An account that is in the queue keeps its place: its first message says when it is visited. */
const WRITTEN = `
  realtime_opened as (
    insert into realtime_message_open (document_id, account, event, contract, attempts, next_attempt_at, last_attempt_at,
      lease_owner, fence, created_at, updated_at)
    select p.document_id, p.account, p.event, p.contract, p.is_claimed::int,
      case when not p.is_claimed then $now::timestamptz end, case when p.is_claimed then $now::timestamptz end,
      case when p.is_claimed then $workerId end, p.is_claimed::int, $now, $now
    from realtime_placed p
    returning document_id as id
  ),
  realtime_queued as (
    insert into realtime_queue (account, visit_at)
    select distinct account, $now::timestamptz from realtime_placed where not is_claimed order by account
    on conflict (account) do update set visit_at = realtime_queue.visit_at
  ),
  realtime_work as (
    select json_build_array(document_id, 1, 1, account, contract, event,
      (extract(epoch from event_created_at) * 1000)::bigint, resource, action, resource_id, url) as work
    from realtime_placed where is_claimed order by document_id
  ),
  realtime_next as (
    select least(
      (select visit_at from realtime_queue where account <> all($blocked::uuid[]) order by visit_at limit 1),
      (select $now::timestamptz from realtime_placed where not is_claimed and account <> all($blocked::uuid[]) limit 1)
    ) as due_at
  )`

interface RoutingParams extends Pick<ClaimRequest, 'workerId' | 'now' | 'fastSlots' | 'perGroup' | 'hasPeers'> {
  /** Messages in flight in this process by account, as JSON (`countInFlight`). */
  busyCounts: string
  /** The accounts without claims here (`listUnready`), and those without room (`listBlocked`). */
  unready: readonly string[]
  blocked: readonly string[]
}

const write = fragment<RoutingParams>('realtime', [PLACED, WRITTEN].join(', '))

/** The part of the routing statement that writes realtime messages. */
export function buildRealtimeRouting(request: ClaimRequest): RoutingPart {
  const written = write({
    ...request,
    busyCounts: countInFlight(request),
    unready: listUnready(request),
    blocked: listBlocked(request),
  })
  return { matched: MATCHED, written }
}
