import type { ClaimRequest } from '../../delivery/policy.ts'
import { lostStatement, nextDueStatement, releaseStatement } from '../../delivery/queue/queue-statement.ts'
import { buildVisitingClaim, claimPlaced, type VisitParams } from '../../delivery/queue/visiting-claim.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { fragment } from '../../postgres/statement/fragment.ts'
import { ADVISORY_LOCKS } from '../../postgres/statement/locks.ts'
import { aheadStatement } from '../../postgres/statement/statement.ts'
import {
  BUSY_WEBHOOKS,
  type BusyParams,
  type ClaimedDispatch,
  inFlightOf,
  LOCKED_CLAIMS,
  listBusy,
  readClaimedDispatch,
  WORK_JSON,
} from './claimed-work.ts'
import type { ClaimedAttempt, EndedAttempt } from './outcome.ts'
import { queueWebhooks } from './queue-head.ts'

const TESTS_AT_ONCE = 16

/** Time after which a throttled webhook is visited by any worker, not only by the one that visited it last. */
const LATE_VISIT = `interval '200 milliseconds'`

/**
 * The lock of claims, which `claims_of_others` takes exclusively, taken before the rows of the queue, as in the router,
 * to avoid a deadlock. Claims share it, since each locks the webhooks that it visits and skips those of others; so no
 * two count the same webhook at once.
 */
const shareClaims = aheadStatement(`select pg_advisory_xact_lock_shared(${ADVISORY_LOCKS.webhookClaims.key})`)
const lockClaims = aheadStatement(`select pg_advisory_xact_lock(${ADVISORY_LOCKS.webhookClaims.key})`)

/**
 * `due`: rows of each visited webhook up to its cap and its share of the slots, each with its turn; and tests of
 * inactive webhooks. Then the parts of `claimPlaced`: `passed` webhooks keep their place; all others, also those at
 * their cap, move behind them. `held` skips rows that another transaction is changing: all claims would wait for it,
 * and it might wait for them. `next`: due time of each visited webhook; without rows it leaves the queue, an inactive
 * one stays. `room`: attempts that the limit of a webhook lets start now, null without a limit; the claimed ones are
 * counted in `next`, and `free_at` is the time before which the webhook is not visited again. The visit holds the lock
 * of its row, so no other claim counts meanwhile.
 *
 * Rows are changed by `any (array)` and `on conflict`, and looked up by subqueries with `offset 0`, never by a join: each
 * leaves the planner only the primary key, even for a statement that was planned while the table was empty.
 */
const CLAIM = `
  with ${BUSY_WEBHOOKS('busy', LOCKED_CLAIMS)},
  visited as materialized (
    select h.webhook, coalesce(w.is_actived and w.deleted_at is null, false) as is_live,
      ${inFlightOf('busy', 'h.webhook')} as in_flight, h.webhook = any($slowGroups::uuid[]) as is_slow, h.visit_at,
      w.max_per_second, case when w.max_per_second is not null and w.is_actived and w.deleted_at is null then
        throttle_room(h.webhook, w.max_per_second, $now) end as room
    from unnest($visited::uuid[], $visitTimes::timestamptz[]) as h (webhook, visit_at)
    left join lateral (select * from webhook w where w.document_id = h.webhook offset 0) w on true
  ),
  due as (
    select d.document_id, v.webhook, d.next_attempt_at, v.is_slow, v.visit_at,
      v.in_flight + row_number() over (partition by v.webhook order by d.next_attempt_at, d.document_id) as turn
    from visited v
    cross join lateral (
      select d.document_id, d.next_attempt_at from webhook_dispatch_open d
      where d.webhook = v.webhook and d.next_attempt_at <= $now
      order by d.next_attempt_at
      limit least(greatest($perGroup::int - v.in_flight, 0), $duePerGroup::int, v.room)
    ) d
    where v.is_live
    union all
    select d.document_id, d.webhook, d.next_attempt_at, false, d.next_attempt_at, 1
    from (
      select d.document_id, d.next_attempt_at, d.webhook from webhook_dispatch_open d
      where d.is_test and d.kept_until is null and d.next_attempt_at <= $now
      order by d.next_attempt_at limit ${TESTS_AT_ONCE}
    ) d
    cross join lateral (select * from webhook w where w.document_id = d.webhook offset 0) w
    where w.deleted_at is null and not w.is_actived
  ),
  ${claimPlaced({
    ...{ table: 'webhook_dispatch_open', group: 'webhook', order: 'visit_at, next_attempt_at, document_id' },
    ...{ isFree: 'd.lease_owner is null', lock: 'for update skip locked' },
  })},
  next as materialized (
    select v.webhook, v.is_live,
      case when v.webhook = any(array(select webhook from passed)) then v.visit_at else $now end as served_at, (
      select d.next_attempt_at from webhook_dispatch_open d
      where d.webhook = v.webhook and d.next_attempt_at is not null
        and d.document_id <> all(array(select document_id from held))
      order by d.next_attempt_at limit 1) as due_at, v.visit_at,
      case when v.room is not null then take_throttle(v.webhook, v.max_per_second, $now,
        (select count(*)::int from claimed c where c.webhook = v.webhook)) end as free_at
    from visited v
  ),
  revisited as (
    insert into webhook_queue (webhook, visit_at, is_held, free_at, visitor)
    select webhook, greatest(due_at, served_at, free_at), not is_live, free_at,
      case when free_at is not null then $workerId end
    from next
    where due_at is not null and (not is_live or visit_at <> greatest(due_at, served_at, free_at))
    on conflict (webhook) do update
      set visit_at = excluded.visit_at, is_held = excluded.is_held, free_at = excluded.free_at,
        visitor = excluded.visitor
  ),
  removed as (
    delete from webhook_queue where webhook = any(array(select webhook from next where due_at is null))
  )
  select ${WORK_JSON} as work
  from claimed d
  cross join lateral (select * from webhook w where w.document_id = d.webhook offset 0) w
  cross join lateral (select * from event_occurrence e where e.document_id = d.event_id offset 0) e`

const claim = fragment<BusyParams & VisitParams & Omit<ClaimRequest, 'inFlight' | 'lateGroups'>>('claim', CLAIM)

const visiting = buildVisitingClaim<ClaimedDispatch>({
  queue: 'webhook_queue',
  group: 'webhook',
  isOpen: `not is_held and (visitor is null or visitor = $workerId or visit_at <= $now::timestamptz - ${LATE_VISIT}) and`,
  build: (request, visits) => claim({ ...request, ...listBusy(request), ...visits }),
  read: readClaimedDispatch,
})

/** Claims due dispatches, webhooks in turns (docs/contract/delivery.md#lanes); within one the longest due first. */
export async function claimDispatches(db: Database, request: ClaimRequest): Promise<ClaimedDispatch[]> {
  const lock = request.hasPeers ? shareClaims : undefined
  const claimed = await visiting.claim(db, request, lock)
  if (claimed.length > 0) return claimed
  if (!request.hasPeers || !(await isDue(db, request))) return []
  // Other workers visit due webhooks too, and may leave some rows; a single worker skips nothing.
  return visiting.claimOnce(db, request, lockClaims)
}

async function isDue(db: Database, request: ClaimRequest): Promise<boolean> {
  const dueAt = await findNextDueAt(db, request)
  return dueAt !== null && dueAt <= request.now
}

/** Releases claims that were not posted: the attempt is not counted. */
export const releaseClaims = releaseStatement(`
  with released as (
    update webhook_dispatch_open d
    set lease_owner = null, next_attempt_at = $dueAt, attempts = d.attempts - 1, fence = d.fence + 1, updated_at = $now,
      last_attempt_at = (select max(a.started_at) from webhook_attempt a where a.dispatch = d.document_id)
    where d.document_id = any($ids::uuid[])
      and (d.document_id, d.fence) in (select * from unnest($ids::uuid[], $fences::int[]))
    returning d.webhook
  )
  ${queueWebhooks('released', { at: '$dueAt' })}`)

/** A claim of a lost worker that is taken back. */
export type LostClaim = ClaimedAttempt & Pick<EndedAttempt, 'workerId'>

/** Finds claims of a worker. */
export const findLostClaims = lostStatement<LostClaim>(`
  select document_id as id, fence, attempts as attempt, attempt_trigger as trigger, is_test as "isTest",
    keeps_schedule as "keepsSchedule", webhook, event, $workerId::text as "workerId", last_attempt_at as "startedAt"
  from webhook_dispatch_open where lease_owner = $workerId limit $limit`)

/** Due time of the next unclaimed dispatch whose webhook is not blocked; null when none waits. */
export const findNextDueAt = nextDueStatement(`
  select least(
    (select visit_at from webhook_queue where not is_held and webhook <> all($blocked::uuid[])
      and (visitor is null or visitor = coalesce($workerId, visitor)) order by visit_at limit 1),
    (select visit_at + ${LATE_VISIT} from webhook_queue where visitor <> $workerId and not is_held
      and webhook <> all($blocked::uuid[]) order by visit_at limit 1),
    (select min(d.next_attempt_at) from (
      select d.next_attempt_at, d.webhook from webhook_dispatch_open d
      where d.is_test and d.kept_until is null and d.next_attempt_at is not null
      order by d.next_attempt_at limit ${TESTS_AT_ONCE}
    ) d
    cross join lateral (select * from webhook w where w.document_id = d.webhook offset 0) w
    where w.deleted_at is null and not w.is_actived)
  ) as due_at`)
