import { NIL_ID } from '../../base/id.ts'
import { type ClaimRequest, listBlocked, listUnready, type RoutingPart } from '../../delivery/policy.ts'
import { type Fragment, fragment } from '../../postgres/statement/fragment.ts'
import { BUSY_WEBHOOKS, type BusyParams, inFlightOf, LOCKING_CLAIMS, listBusy } from './claimed-work.ts'
import { cameInto, countChanges, findShard } from './delivery-count.store.ts'
import { findKeptUntil, queueWebhooks } from './queue-head.ts'

/**
 * The id of the dispatch of an event for a webhook: derived from both, so that an event is never routed to a webhook
 * twice. The first half is that of the event's id (the layout of RFC 9562, version 7), so that dispatches are in the
 * order of events.
 */
const DISPATCH_ID = `
  (substr(e.document_id::text, 1, 14) || '7' || substr(e.document_id::text, 16, 3) || '-8' || substr(h.hash, 1, 3) || '-'
    || substr(h.hash, 4, 12))::uuid`

/** The columns of a new row, of the event `e`, the webhook `w` and the hash `h` of both. */
const COLUMNS = `
    ${DISPATCH_ID} as document_id, e.document_id as event_id, e.event, e.account, e.resource, e.action, e.resource_id,
      e.url as event_url, e.trace_context, e.created_at as event_created_at, w.document_id as webhook, w.url,
      w.secret_encrypted, w.headers_encrypted, w.signing_key_encrypted, w.max_per_second, w.mode = 'pull' as is_pull`

const HASH = 'cross join lateral (select md5(e.document_id::text || w.document_id::text) as hash) h'

/** The type `t` of the event `e`. */
const TYPE_OF_EVENT = `
    cross join lateral (
      select t.document_id, t.account_scope, t.is_actived from event t where t.internal = e.event offset 0
    ) t`

/** The webhook `w` with this id, and its conditions to receive the event `e`. */
const findWebhook = (id: string) => `
    cross join lateral (
      select w.document_id, w.is_actived, w.deleted_at, w.ordinal, w.created_at, w.url, w.secret_encrypted,
        w.headers_encrypted, w.signing_key_encrypted, w.resource_ids, w.max_per_second, w.mode
      from webhook w where w.document_id = ${id} offset 0
    ) w`
/** Events of an older release have no `ordinal`; their times are compared. */
const IS_RECIPIENT = `w.is_actived and w.deleted_at is null and coalesce(w.ordinal <= e.ordinal, w.created_at <= e.created_at)
      and e.excluded_webhook is distinct from w.document_id
      and (w.resource_ids is null or e.resource_id = any(w.resource_ids))`

/** The subscriptions `s` that an event `e` of the type `t` reaches: the global ones, and those of its account. */
const IS_GLOBAL = 's.event = t.document_id and s.account is null and s.deleted_at is null'
const IS_OF_ACCOUNT = `s.event = t.document_id and s.account = e.account and s.deleted_at is null
      and t.account_scope = 'account' and not e.is_purge`

/**
 * The receivers of an event, by the rules of `decideRouting` (a test compares both): at most `most` and one more. The
 * index of subscriptions by event type and account returns only those. `offset 0` fixes the order in which the tables
 * are read: with the conditions on webhooks in the join, the planner may read all webhooks first.
 */
const findMatched = (most: number) => `
    select ${COLUMNS}
    from routed e
    ${TYPE_OF_EVENT}
    cross join lateral (
      select w.document_id, w.url, w.secret_encrypted, w.headers_encrypted, w.signing_key_encrypted, w.max_per_second, w.mode
      from (
        select s.webhook from webhook_event s where ${IS_GLOBAL}
        union all
        select s.webhook from webhook_event s where ${IS_OF_ACCOUNT}
      ) s
      ${findWebhook('s.webhook')}
      where ${IS_RECIPIENT}
      limit ${most + 1}
    ) w
    ${HASH}
    where t.is_actived`

/** `webhook_kept`: the rows written now. Events for more than `most` webhooks are set aside. */
const setAside = (most: number) => `
  webhook_aside as materialized (
    select event_id from webhook_matched group by event_id having count(*) > ${most}
  ),
  webhook_put_aside as (insert into webhook_fan_out (event_id) select event_id from webhook_aside),
  webhook_kept as (
    select * from webhook_matched where event_id <> all(array(select event_id from webhook_aside))
  )`

/** Below every id of a webhook. */
const FIRST = `'${NIL_ID}'`

/**
 * The next subscriptions of one event that was set aside, in the order of their webhooks, and the last of them. Each
 * webhook is judged once, in its current state: its id never changes. The rows of each `select` have one account, so it
 * reads only its part of the index, in the order of webhooks.
 */
const NEXT_PART = `
  webhook_taken as materialized (
    select event_id, reached from webhook_fan_out order by event_id limit 1 for update skip locked
  ),
  webhook_part as materialized (
    select e.*, s.webhook
    from webhook_taken f
    cross join lateral (select * from event_occurrence e where e.document_id = f.event_id offset 0) e
    ${TYPE_OF_EVENT}
    cross join lateral (
      select s.webhook from (
        (select s.webhook from webhook_event s where ${IS_GLOBAL} and s.webhook > coalesce(f.reached, ${FIRST})
          order by s.account, s.webhook limit $limit)
        union all
        (select s.webhook from webhook_event s where ${IS_OF_ACCOUNT} and s.webhook > coalesce(f.reached, ${FIRST})
          order by s.account, s.webhook limit $limit)
      ) s order by s.webhook limit $limit
    ) s
    where t.is_actived
  ),
  webhook_reached as materialized (
    select f.event_id, (select count(*) from webhook_part) < $limit as is_last,
      (select webhook from webhook_part order by webhook desc limit 1) as reached
    from webhook_taken f
  ),
  webhook_moved as (
    update webhook_fan_out set reached = (select reached from webhook_reached)
    where event_id = any(array(select event_id from webhook_reached where not is_last))
  ),
  webhook_done as (
    delete from webhook_fan_out where event_id = any(array(select event_id from webhook_reached where is_last))
  ),
  webhook_kept as (
    select ${COLUMNS}
    from webhook_part e
    ${findWebhook('e.webhook')}
    ${HASH}
    where ${IS_RECIPIENT}
  )`

/**
 * The rows that this worker claims as they are written: up to its free slots and the cap of each webhook, each
 * webhook's first row before any second one. The others wait in the queue, those that are pulled outside of it, and so does
 * every row of a webhook with a limit a second: claims alone count it.
 */
const PLACED = `
  ${BUSY_WEBHOOKS('webhook_busy', LOCKING_CLAIMS)},
  webhook_placed as materialized (
    select t.*, t.is_eligible
      and row_number() over (partition by t.is_eligible order by t.turn, t.event_id) <= $fastSlots::int as is_claimed
    from (
      select m.*, not m.is_pull and m.turn <= $perGroup::int and m.webhook <> all($unready::uuid[])
        and m.max_per_second is null as is_eligible
      from (
        select n.*, row_number() over (partition by n.webhook order by n.event_id)
          + ${inFlightOf('webhook_busy', 'n.webhook')} as turn
        from webhook_kept n
      ) m
    ) t
  )`

const WRITTEN = `
  webhook_opened as (
    insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, status, attempts, next_attempt_at,
      last_attempt_at, lease_owner, fence, kept_until, created_at, updated_at)
    select p.document_id, p.webhook, p.event_id, p.event, p.account, 'pending', p.is_claimed::int,
      case when not p.is_claimed then $now::timestamptz end, case when p.is_claimed then $now::timestamptz end,
      case when p.is_claimed then $workerId end, p.is_claimed::int, case when p.is_pull then $keptUntil::timestamptz end,
      $now, $now
    from webhook_placed p
    returning document_id as id, created_at
  ),
  webhook_queued as (${queueWebhooks('webhook_placed where not is_claimed and not is_pull', { at: '$now' })}),
  webhook_counted as (${countChanges([cameInto('webhook_opened', `'pending'`)], '$shard')}),
  webhook_work as (
    select json_build_array(document_id, 1, 1, 'schedule', false,
      (extract(epoch from $now::timestamptz) * 1000)::bigint, webhook, url, secret_encrypted, event_id, event,
      (extract(epoch from event_created_at) * 1000)::bigint, account, resource, action, resource_id, event_url,
      trace_context, false, headers_encrypted, signing_key_encrypted) as work
    from webhook_placed where is_claimed
  ),
  webhook_next as (
    select least(
      (select visit_at from webhook_queue where not is_held and webhook <> all($blocked::uuid[])
        order by visit_at limit 1),
      (select $now::timestamptz from webhook_placed p
        where not p.is_claimed and not p.is_pull and p.webhook <> all($blocked::uuid[]) and (p.max_per_second is null
          or not exists (select from webhook_queue q where q.webhook = p.webhook and q.free_at > $now))
        limit 1)
    ) as due_at
  )`

/** Maximum number of webhooks of an event in one statement; an event with more is routed in parts. */
const ROWS_OF_EVENT = 1_000

interface RoutingParams extends BusyParams, Pick<ClaimRequest, 'now' | 'fastSlots' | 'perGroup'> {
  /** The webhooks without claims here (`listUnready`), and those without room (`listBlocked`). */
  unready: readonly string[]
  blocked: readonly string[]
  /** Expiry of rows that are pulled. */
  keptUntil: Date
  shard: number
}

const fanOut = fragment<RoutingParams & { limit: number }>('webhook fan-out', [NEXT_PART, PLACED, WRITTEN].join(', '))

/** The parts of the statement by `rowsOfEvent`, which is the same for all statements of a process. */
const parts = new Map<number, { matched: string; write: (params: RoutingParams) => Fragment }>()

function findParts(rowsOfEvent: number) {
  const found = parts.get(rowsOfEvent)
  if (found) return found
  const text = [setAside(rowsOfEvent), PLACED, WRITTEN].join(', ')
  const made = { matched: findMatched(rowsOfEvent), write: fragment<RoutingParams>(`webhook ${rowsOfEvent}`, text) }
  parts.set(rowsOfEvent, made)
  return made
}

/** The part of the routing statement that writes the ledger rows of webhooks. */
export function buildWebhookRouting(request: ClaimRequest, rowsOfEvent = ROWS_OF_EVENT): RoutingPart {
  const { matched, write } = findParts(rowsOfEvent)
  return { matched, written: write(toParams(request)), rowsOfEvent }
}

/** The parts that write up to `limit` further rows of an event that was set aside. */
export function buildWebhookFanOut(request: ClaimRequest, limit: number): Fragment {
  return fanOut({ ...toParams(request), limit })
}

function toParams(request: ClaimRequest): RoutingParams {
  const shard = findShard(request.workerId)
  const keptUntil = findKeptUntil(request.now)
  return {
    ...request,
    ...listBusy(request),
    unready: listUnready(request),
    blocked: listBlocked(request),
    keptUntil,
    shard,
  }
}
