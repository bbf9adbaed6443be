import { SLOW_AFTER_MS } from '../../delivery/dispatcher/lanes.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { COUNT_LIMIT } from '../health/webhook-out.ts'

/** Lanes of due deliveries: of webhooks that answer, of slow ones, and of those that wait for their limit a second. */
const DUE_LANES = ['fast', 'slow', 'throttled'] as const

type DueLane = (typeof DUE_LANES)[number]

interface LaneDepth {
  /** Due deliveries that no process has begun. */
  waiting: number
  in_flight: number
  /** Age of the longest due one in seconds; 0 when none waits. */
  oldest_due_s: number
}

/** The work of outbound webhooks, by lane. */
export interface QueueDepth {
  unrouted: number
  oldest_unrouted_s: number
  lanes: Record<DueLane, LaneDepth>
  /** Deliveries that wait for a time of the retry schedule, and the next of these. */
  retry: { waiting: number; next_attempt_at: Date | null }
}

interface DepthRow {
  unrouted: number
  oldest_unrouted_s: number
  lanes: Record<DueLane, LaneDepth>
  retry_waiting: number
  retry_at: Date | null
}

const rowsOf = (condition: string, limit: string) => `
    select d.next_attempt_at from webhook_dispatch_open d
    where d.webhook = active.webhook and d.next_attempt_at ${condition} $now
    order by d.next_attempt_at, d.document_id limit ${limit}`

const countOf = (lane: DueLane) => `
  ${lane} as (
    select from active cross join lateral (${rowsOf('<=', '$limit')}) due where active.lane = '${lane}' limit $limit
  )`

const ageOf = (since: string) =>
  `coalesce(floor(greatest(0, extract(epoch from $now::timestamptz - ${since}))), 0)::int`

const depthOf = (lane: DueLane) => `
    '${lane}', json_build_object('waiting', (select count(*) from ${lane}),
      'in_flight', (select coalesce(sum(b.in_flight), 0) from busy b where b.lane = '${lane}'),
      'oldest_due_s', (select ${ageOf('min(l.since)')} from longest l where l.lane = '${lane}'))`

/**
 * `busy`: webhooks with attempts in flight; slow is one with an attempt that runs over `SLOW_AFTER_MS`. Its row of the
 * index is read first, then its rows in flight, which have no next attempt. `active`: webhooks with rows that wait and do
 * not rest, at most `$limit`. A webhook with a limit a second waits since it was to be visited.
 */
const selectDepth = statement<DepthRow, { now: Date; slowSince: Date; limit: number }>(`
  with busy as materialized (
    select f.webhook, f.in_flight, case when exists (
        select from webhook_dispatch_open d
        where d.webhook = f.webhook and d.next_attempt_at is null and d.last_attempt_at <= $slowSince
          and d.lease_owner is not null) then 'slow' else 'fast' end as lane
    from (
      select w.webhook, count(*)::int as in_flight from (
        select webhook from webhook_dispatch_open where lease_owner > '' limit $limit) w
      group by w.webhook
    ) f
  ),
  active as (
    select q.webhook, case when w.max_per_second is not null then q.visit_at end as limited_at,
      case when q.free_at is not null then 'throttled'
        when exists (select from busy b where b.webhook = q.webhook and b.lane = 'slow') then 'slow'
        else 'fast' end as lane
    from webhook_queue q cross join lateral (
      select w.is_actived and w.deleted_at is null as is_live, w.max_per_second from webhook w
      where w.document_id = q.webhook offset 0) w
    where not q.is_held and w.is_live order by q.visit_at limit $limit
  ),
  ${DUE_LANES.map(countOf).join(',')},
  longest as (
    select active.lane, greatest(due.next_attempt_at, active.limited_at) as since
    from active cross join lateral (${rowsOf('<=', '1')}) due
  ),
  later as (
    select due.next_attempt_at from active cross join lateral (${rowsOf('>', '$limit')}) due limit $limit
  ),
  soonest as (
    select min(due.next_attempt_at) as at from active cross join lateral (${rowsOf('>', '1')}) due
  ),
  unrouted as (
    select count(*) as events,
      min((select e.created_at from event_occurrence e where e.document_id = q.event_id)) as since
    from (
      (select event_id from event_queue order by event_id limit $limit)
      union all (select event_id from webhook_fan_out order by event_id limit $limit)
    ) q
  )
  select least(unrouted.events, $limit)::int as unrouted, ${ageOf('unrouted.since')} as oldest_unrouted_s,
    json_build_object(${DUE_LANES.map(depthOf).join(',')}) as lanes,
    (select count(*) from later)::int as retry_waiting, soonest.at as retry_at
  from unrouted, soonest`)

/** Reads the work of outbound webhooks by lane. Each count stops at `limit`, so no backlog is read. */
export async function readQueueDepth(db: Database, now: Date, limit = COUNT_LIMIT): Promise<QueueDepth> {
  const slowSince = new Date(now.getTime() - SLOW_AFTER_MS)
  const [row] = await selectDepth(db, { now, slowSince, limit })
  if (!row) throw new Error('the depth of the queue is one row')
  const { retry_waiting: waiting, retry_at: at, ...depth } = row
  return { ...depth, retry: { waiting, next_attempt_at: at } }
}
