import type { AccountId, EventId } from '../../base/id.ts'
import type { Claim, ClaimRequest } from '../../delivery/policy.ts'
import { lostStatement, nextDueStatement, releaseStatement } from '../../delivery/queue/queue-statement.ts'
import { buildVisitingClaim, claimPlaced, type VisitParams } from '../../delivery/queue/visiting-claim.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { fragment } from '../../postgres/statement/fragment.ts'
import {
  type ClaimedMessage,
  countInFlight,
  inFlightOf,
  isTaken,
  MESSAGE_JSON,
  readClaimedMessage,
} from './claimed-message.ts'

/**
 * The order of the messages `source` of an account, in the order of its index: a claim reads only the messages that it
 * may take. The index has the id as text, so that no look-up by id uses it.
 */
const inOrder = (source: string) => `order by (${source}.document_id::text) collate "C"`

/**
 * As the claim of webhooks, except for the order: of each account the messages in the order of their events, up to the
 * first one that is not due, and none while another worker publishes messages of this account. `held` checks
 * `next_attempt_at`, which is null for a claimed message: by `lease_owner` the planner may read the whole index of the
 * order instead of the ids.
 */
const CLAIM = `
  with visited as materialized (
    select h.account, h.visit_at, ${inFlightOf('h.account')} as in_flight,
      h.account = any($slowGroups::uuid[]) as is_slow, ${isTaken('h.account')} as is_taken
    from unnest($visited::uuid[], $visitTimes::timestamptz[]) as h (account, visit_at)
  ),
  due as (
    select d.document_id, v.account, v.is_slow, v.visit_at,
      v.in_flight + row_number() over (partition by v.account order by d.document_id) as turn
    from visited v
    cross join lateral (
      select f.document_id from (
        select r.document_id, bool_and(r.next_attempt_at <= $now) over (order by r.document_id) as is_due from (
          select w.document_id, w.next_attempt_at from realtime_message_open w
          where w.account = v.account and w.lease_owner is null
          ${inOrder('w')}
          limit least(greatest($perGroup::int - v.in_flight, 0), $duePerGroup::int)
        ) r
      ) f where f.is_due
    ) d
    where not v.is_taken
  ),
  ${claimPlaced({
    ...{ table: 'realtime_message_open', group: 'account', order: 'visit_at, document_id' },
    ...{ isFree: 'd.next_attempt_at is not null', lock: 'for update' },
  })},
  next as materialized (
    select v.account, v.visit_at,
      case when v.account = any(array(select account from passed)) then v.visit_at else $now end as served_at, (
      select d.next_attempt_at from realtime_message_open d
      where d.account = v.account and d.lease_owner is null
        and d.document_id <> all(array(select document_id from held))
      ${inOrder('d')} limit 1) as due_at
    from visited v
  ),
  revisited as (
    insert into realtime_queue (account, visit_at)
    select account, greatest(due_at, served_at) from next
    where due_at is not null and visit_at <> greatest(due_at, served_at)
    on conflict (account) do update set visit_at = excluded.visit_at
  ),
  removed as (
    delete from realtime_queue where account = any(array(select account from next where due_at is null))
  )
  select ${MESSAGE_JSON} as work
  from claimed d
  cross join lateral (select * from event_occurrence e where e.document_id = d.document_id offset 0) e
  order by d.document_id`

interface ClaimParams extends VisitParams, Omit<ClaimRequest, 'inFlight' | 'lateGroups'> {
  /** Messages in flight in this process by account, as JSON (`countInFlight`). */
  busyCounts: string
}

const claim = fragment<ClaimParams>('realtime claim', CLAIM)

const visiting = buildVisitingClaim<ClaimedMessage>({
  queue: 'realtime_queue',
  group: 'account',
  build: (request, visits) => claim({ ...request, busyCounts: countInFlight(request), ...visits }),
  read: readClaimedMessage,
})

/** Claims due messages. Accounts take turns; within an account the order is that of the events. */
export function claimMessages(db: Database, request: ClaimRequest): Promise<ClaimedMessage[]> {
  return visiting.claim(db, request)
}

/** The part that schedules the visit of accounts at their column `visit_at`, never later than already scheduled. */
export const queueAccounts = (source: string) => `
    insert into realtime_queue (account, visit_at)
    select account, visit_at from ${source} order by account
    on conflict (account) do update set visit_at = least(realtime_queue.visit_at, excluded.visit_at)`

/** Releases claims that were not attempted: the attempt is not counted. */
export const releaseMessages = releaseStatement(`
  with released as (
    update realtime_message_open d
    set lease_owner = null, next_attempt_at = $dueAt, attempts = d.attempts - 1, fence = d.fence + 1, updated_at = $now
    where d.document_id = any($ids::uuid[])
      and (d.document_id, d.fence) in (select * from unnest($ids::uuid[], $fences::int[]))
    returning d.account
  ), due as (select distinct account, $dueAt::timestamptz as visit_at from released)
  ${queueAccounts('due')}`)

/** A claim of a lost worker that is taken back. */
export interface LostMessage extends Claim {
  id: EventId
  attempt: number
  account: AccountId
  event: string
  startedAt: Date
}

/** Finds claims of a worker. */
export const findLostMessages = lostStatement<LostMessage>(`
  select document_id as id, fence, attempts as attempt, account, event, last_attempt_at as "startedAt"
  from realtime_message_open where lease_owner = $workerId limit $limit`)

/** Due time of the next unclaimed message whose account is not blocked; null when none waits. */
export const findNextDueAt = nextDueStatement(`
  select visit_at as due_at from realtime_queue where account <> all($blocked::uuid[]) order by visit_at limit 1`)
