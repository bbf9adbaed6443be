import type { UserId } from '../../base/id.ts'
import type { Claim } from '../../delivery/policy.ts'
import type { ErrorClass } from '../../delivery/post/attempt-result.ts'
import { type AttemptChange, type AttemptParams, listAttemptColumns } from '../../delivery/queue/settled-columns.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import type { DeliveryId } from '../claim/claimed-delivery.ts'
import type { DeliveryStatus, DeliveryTrigger } from '../claim/outcome.ts'
import type { TargetId } from '../target/target.store.ts'

/** A valid claim, locked. */
export interface HeldClaim extends Claim {
  /** A replay of a waiting delivery, whose schedule continues after it. */
  keepsSchedule: boolean
  isTargetDeleted: boolean
}

/** Locked in the order of targets and users, like every lock on several streams. */
const lock = statement<
  HeldClaim,
  { claims: readonly string[]; fences: readonly number[]; targets: readonly TargetId[]; users: readonly UserId[] }
>(`
  select s.claimed as id, s.fence,
    (select d.keeps_schedule from provisioning_delivery d where d.document_id = s.claimed) as "keepsSchedule",
    (select t.deleted_at is not null from provisioning_target t where t.document_id = s.target) as "isTargetDeleted"
  from (
    select * from unnest($claims::uuid[], $fences::int[], $targets::uuid[], $users::uuid[])
      as x (claimed, fence, target, user_id)
    order by target, user_id
  ) x
  cross join lateral (
    select * from provisioning_stream s where s.target = x.target and s.user_id = x.user_id
      and s.claimed = x.claimed and s.fence = x.fence and num_nulls(s.lease_owner) = 0 offset 0 for update
  ) s`)

/** Locks the streams of the valid claims, without those taken back or claimed by another worker. */
export async function lockHeldClaims(
  db: Database,
  claims: readonly (Claim & { target: TargetId; user: UserId })[],
): Promise<HeldClaim[]> {
  const column = <Value>(pick: (claim: Claim & { target: TargetId; user: UserId }) => Value) => claims.map(pick)
  return lock(db, {
    claims: column((row) => row.id),
    fences: column((row) => row.fence),
    targets: column((row) => row.target),
    users: column((row) => row.user),
  })
}

/** Changes by an attempt, and its entry of the attempt log. */
export interface DeliveryChange extends AttemptChange {
  id: DeliveryId
  target: TargetId
  /** Generation of the target at the claim; null where it is not known. */
  generation: number | null
  user: UserId
  status: DeliveryStatus
  errorClass: ErrorClass | null
  trigger: DeliveryTrigger
  /** The id of the user at a SCIM service; undefined if the attempt did not learn it. */
  remoteId: string | null | undefined
}

/**
 * The streams are locked. After a failed attempt the target's state is unknown. An ended delivery makes the next one of
 * its user due at once; for a deleted target all waiting ones are cancelled. A replay of a waiting delivery ends with
 * its attempt: the delivery then follows its schedule again. The result of an attempt counts only for the generation of
 * the target that it was made for.
 */
const SETTLE = `
  with change as materialized (
    select * from unnest($ids::uuid[], $targets::uuid[], $users::uuid[], $statuses::text[],
      $nextAttempts::timestamptz[], $statusCodes::int[], $errorClasses::text[], $durations::int[],
      $ends::timestamptz[], $attempts::int[],
      $triggers::text[], $workers::text[], $starts::timestamptz[], $excerpts::text[], $headers::jsonb[],
      $timings::jsonb[], $areRemoteKnown::boolean[], $remoteIds::text[], $generations::int[]) as x (id, target, user_id,
      status, next_attempt_at, status_code, error_class, duration_ms, ended_at, attempt, trigger, worker, started_at,
      response_excerpt, response_headers, timings, is_remote_known, remote_id, generation)
  ),
  delivery as (
    update provisioning_delivery d
    set status = c.status, last_attempt_at = c.started_at, last_status_code = c.status_code, last_error = c.error_class,
      last_duration_ms = c.duration_ms, updated_at = c.ended_at,
      ended_at = case when c.status <> 'retrying' then c.ended_at end,
      delivered_at = coalesce(d.delivered_at, case when c.status = 'delivered' then c.ended_at end),
      attempt_trigger = case when d.keeps_schedule and c.status = 'retrying' then 'schedule' else d.attempt_trigger end,
      keeps_schedule = false
    from change c where d.document_id = any(array(select id from change)) and d.document_id = c.id
    returning d.target, d.user_id, d.status, d.email, d.name, d.user_status
  ),
  behind as materialized (
    select d.document_id from change c
    cross join lateral (
      select d.document_id from provisioning_delivery d
      where d.target = c.target and d.user_id = c.user_id and d.ended_at is null and d.document_id <> c.id
      offset 0
    ) d
    where c.status = 'cancelled'
  ),
  cancelled as (
    update provisioning_delivery
    set status = 'cancelled', ended_at = (select max(ended_at) from change),
      updated_at = (select max(ended_at) from change)
    where document_id = any(array(select document_id from behind))
    returning 1
  ),
  stream as (
    update provisioning_stream s
    set lease_owner = null, claimed = null, claimed_at = null,
      waiting = case c.status when 'retrying' then s.waiting when 'cancelled' then 0 else s.waiting - 1 end,
      due_at = case
        when c.status = 'retrying' then c.next_attempt_at
        when c.status <> 'cancelled' and s.waiting > 1 then c.ended_at
      end,
      delivered_digest = case when c.status = 'delivered'
        then provisioning_digest(d.email, d.name, d.user_status) else 'unknown' end,
      remote_id = case when c.is_remote_known then c.remote_id
        when coalesce(c.generation, s.generation) = s.generation then s.remote_id end,
      generation = coalesce(c.generation, s.generation)
    from change c cross join lateral (select * from delivery d where d.target = c.target and d.user_id = c.user_id) d
    where s.target = c.target and s.user_id = c.user_id
    returning 1
  ),
  logged as (
    insert into provisioning_attempt (delivery, attempt, attempt_trigger, worker, started_at, duration_ms, status_code,
      error_class, response_excerpt, response_headers, timings)
    select id, attempt, trigger, worker, started_at, duration_ms, status_code, error_class, response_excerpt,
      response_headers, timings from change
  )
  insert into provisioning_total (status, came)
  select e.status, sum(e.came) from (
    select status, 1 as came from change where status <> 'retrying'
    union all select 'cancelled', 1 from cancelled
  ) e group by e.status order by e.status
  on conflict (status) do update set came = provisioning_total.came + excluded.came`

/** The changes, column by column. */
interface SettleParams extends AttemptParams {
  targets: readonly TargetId[]
  users: readonly UserId[]
  areRemoteKnown: readonly boolean[]
  remoteIds: readonly (string | null)[]
  generations: readonly (number | null)[]
}

const settle = statement<never, SettleParams>(SETTLE)

/** Writes the results of attempts whose streams are locked, and ends their claims. At most one for each stream. */
export async function settleDeliveries(db: Database, changes: readonly DeliveryChange[]): Promise<void> {
  if (changes.length === 0) return
  await settle(db, {
    ...listAttemptColumns(changes),
    targets: changes.map((change) => change.target),
    users: changes.map((change) => change.user),
    areRemoteKnown: changes.map((change) => change.remoteId !== undefined),
    remoteIds: changes.map((change) => change.remoteId ?? null),
    generations: changes.map((change) => change.generation),
  })
}
