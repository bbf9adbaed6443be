import type { UserId } from '../../base/id.ts'
import { type Claim, type ClaimRequest, listBlocked } from '../../delivery/policy.ts'
import { lostStatement, nextDueStatement, releaseStatement } from '../../delivery/queue/queue-statement.ts'
import { HAS_SLOT, placeDue } from '../../delivery/queue/visiting-claim.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { ADVISORY_LOCKS } from '../../postgres/statement/locks.ts'
import { aheadStatement, statement } from '../../postgres/statement/statement.ts'
import { type ClaimedDelivery, DELIVERY_JSON, type DeliveryId, readClaimedDelivery } from '../claim/claimed-delivery.ts'
import type { DeliveryTrigger } from '../claim/outcome.ts'
import type { TargetId } from '../target/target.store.ts'

/** Claims of all processes follow each other, so that they count each other and no row is read before it is free. */
const lockClaims = aheadStatement(`select pg_advisory_xact_lock(${ADVISORY_LOCKS.provisioningClaims.key})`)

/**
 * Targets are not visited by a queue of their own (`buildVisitingClaim`), which would make changes of users wait for each other
 * (docs/decisions/0042-no-queue-of-targets.md); turns and slots are those of the other claims.
 *
 * `live`: the active targets, each with its attempts in flight: those of this worker are parameters, those of others
 * are counted. `due`: the due streams of each, the longest due first, up to its cap, each with its turn. `placed`: each
 * target gets one before any gets a second; within a turn the least recently served target comes first. `held` skips
 * streams that another transaction is changing, and reads each by its key: `coalesce` excludes the index of due
 * streams. `head`: the first open delivery of each stream, so that no delivery of a user is claimed before the previous
 * one has ended. Only the index of open deliveries has the order of the sum: the planner might read all ended ones
 * by the index of the position.
 */
const CLAIM = `
  with busy as materialized (
    select b.target, sum(b.in_flight)::int as in_flight from (
      select o.target, count(*) as in_flight from (
        select target from provisioning_stream where lease_owner < $workerId
        union all select target from provisioning_stream where lease_owner > $workerId
      ) o where $hasPeers::boolean group by o.target
      union all
      select x.target, x.in_flight from unnest($busyTargets::uuid[], $busyCounts::int[]) as x (target, in_flight)
    ) b group by b.target
  ),
  live as materialized (
    select t.document_id as target, coalesce(b.in_flight, 0) as in_flight, coalesce(n.last_claimed_at, 'epoch') as last_claimed_at,
      t.document_id = any($slowGroups::uuid[]) as is_slow
    from provisioning_target t
    left join lateral (select * from busy where busy.target = t.document_id) b on true
    left join lateral (select * from provisioning_target_claim where target = t.document_id offset 0) n on true
    where t.is_actived and t.deleted_at is null and t.document_id <> all($blocked::uuid[])
  ),
  due as (
    select l.target, l.is_slow, l.last_claimed_at, s.user_id, s.due_at,
      l.in_flight + row_number() over (partition by l.target order by s.due_at, s.user_id) as turn
    from live l
    cross join lateral (
      select s.user_id, s.due_at from provisioning_stream s
      where s.target = l.target and s.due_at <= $now
      order by s.due_at
      limit least(greatest($perGroup::int - l.in_flight, 0), $fastSlots::int + $slowSlots::int)
    ) s
  ),
  ${placeDue('target, user_id', 'last_claimed_at, due_at, user_id')},
  held as materialized (
    select s.target, s.user_id
    from placed p
    cross join lateral (
      select s.target, s.user_id from provisioning_stream s
      where s.target = p.target and s.user_id = p.user_id and coalesce(s.due_at, 'infinity') <= $now
      offset 0 for update skip locked
    ) s
    where ${HAS_SLOT}
  ),
  head as materialized (
    select h.target, h.user_id, d.document_id from held h
    cross join lateral (
      select d.document_id from provisioning_delivery d
      where d.target = h.target and d.user_id = h.user_id and d.ended_at is null order by d.position + 0 limit 1
    ) d
  ),
  s as (
    update provisioning_stream s
    set lease_owner = $workerId, claimed = h.document_id, claimed_at = $now, due_at = null, fence = s.fence + 1
    from head h where s.target = h.target and s.user_id = h.user_id
    returning s.claimed, s.fence, s.remote_id, s.generation
  ),
  d as (
    update provisioning_delivery set attempts = attempts + 1, last_attempt_at = $now, updated_at = $now
    where document_id = any(array(select document_id from head))
    returning *
  ),
  turned as (
    insert into provisioning_target_claim (target, last_claimed_at) select distinct target, $now::timestamptz from head order by 1
    on conflict (target) do update set last_claimed_at = excluded.last_claimed_at
  )
  select ${DELIVERY_JSON} as work
  from d join s on s.claimed = d.document_id
  cross join lateral (select * from provisioning_target t where t.document_id = d.target offset 0) t`

/** The parameters of `CLAIM`. */
interface ClaimParams extends Omit<ClaimRequest, 'inFlight' | 'lateGroups'> {
  /** The targets with attempts in flight in this process, and how many each has. */
  busyTargets: readonly string[]
  busyCounts: readonly number[]
  blocked: readonly string[]
}

const claim = statement<{ work: unknown }, ClaimParams>(CLAIM)

/**
 * Claims due deliveries. Targets take turns, so that a long backlog of one delays no other; only the first open
 * delivery of a user at a target is claimed (docs/contract/provisioning.md#order-of-deliveries).
 */
export async function claimDeliveries(db: Database, request: ClaimRequest): Promise<ClaimedDelivery[]> {
  const { inFlight } = request
  return inTransaction(db, async (tx) => {
    await lockClaims(tx)
    const rows = await claim(tx, {
      ...request,
      busyTargets: [...inFlight.keys()],
      busyCounts: [...inFlight.values()],
      blocked: listBlocked(request),
    })
    return rows.map(({ work }) => readClaimedDelivery(work))
  })
}

/** Gives back claims that were not posted: the attempt was not made, so it is not counted. */
export const releaseDeliveries = releaseStatement(`
  with s as (
    update provisioning_stream s
    set lease_owner = null, claimed = null, claimed_at = null, due_at = $dueAt, fence = s.fence + 1
    from unnest($ids::uuid[], $fences::int[]) as x (claimed, fence)
    where s.claimed = x.claimed and s.fence = x.fence and s.lease_owner is not null
    returning x.claimed
  )
  update provisioning_delivery d
  set attempts = d.attempts - 1, updated_at = $now,
    last_attempt_at = (select max(a.started_at) from provisioning_attempt a where a.delivery = d.document_id)
  where d.document_id = any(array(select claimed from s))`)

/** A claim of a lost worker that is taken back. */
export interface LostDelivery extends Claim {
  id: DeliveryId
  attempt: number
  trigger: DeliveryTrigger
  target: TargetId
  user: UserId
  type: string
  workerId: string
  startedAt: Date
}

/** Finds claims of a worker. */
export const findLostDeliveries = lostStatement<LostDelivery>(`
  select s.claimed as id, s.fence, d.attempts as attempt, d.attempt_trigger as trigger, s.target, s.user_id as "user", d.type,
    $workerId::text as "workerId", s.claimed_at as "startedAt"
  from provisioning_stream s
  cross join lateral (select * from provisioning_delivery d where d.document_id = s.claimed offset 0) d
  where s.lease_owner = $workerId limit $limit`)

/** Due time of the next unclaimed delivery whose target is not blocked; null when none waits. */
export const findNextDeliveryAt = nextDueStatement(`
  select min(s.due_at) as due_at from provisioning_target t
  cross join lateral (
    select s.due_at from provisioning_stream s
    where s.target = t.document_id and s.due_at is not null order by s.due_at limit 1
  ) s
  where t.is_actived and t.deleted_at is null and t.document_id <> all($blocked::uuid[])`)
