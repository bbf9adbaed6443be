import { deletionOfOld, sweepStatement } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { closingStatement, statement } from '../../postgres/statement/statement.ts'
import type { TargetId } from './target.store.ts'

/**
 * Cancels the waiting deliveries of a deleted target, and its job, with the last statement of the transaction. `idle`:
 * the streams of the target that no worker has claimed. The result of a claimed delivery finds its target deleted and
 * cancels the following ones. The job is cancelled first, so that it queues nothing after the locks of the streams.
 */
export const cancelWaitingOf = closingStatement<{ target: TargetId; now: Date }>(`
  ended_job as materialized (
    update provisioning_job set status = 'cancelled', ended_at = $now, updated_at = $now
    where target = $target and status in ('running', 'paused', 'failed') returning document_id
  ), idle as materialized (
    select s.target, s.user_id from (select count(*) from ended_job) ended, provisioning_stream s
    where s.target = $target and s.waiting > 0 and s.claimed is null order by s.user_id for update of s
  ), emptied as (
    update provisioning_stream set waiting = 0, due_at = null
    where target = $target and user_id = any(array(select user_id from idle))
  ), cancelled as (
    update provisioning_delivery set status = 'cancelled', ended_at = $now, updated_at = $now
    where target = $target and user_id = any(array(select user_id from idle)) and status in ('pending', 'retrying')
    returning document_id
  ), counted as (
    insert into provisioning_total (status, came) select 'cancelled', count(*) from cancelled having count(*) > 0
    on conflict (status) do update set came = provisioning_total.came + excluded.came
  )`)

const cancelLate = statement<{ cancelled: number }, { now: Date; limit: number }>(`
  with left_over as materialized (
    select distinct d.target, d.user_id from provisioning_target t
    join provisioning_delivery d on d.target = t.document_id and d.ended_at is null
    where t.deleted_at is not null limit $limit
  ), orphaned as materialized (
    select s.target, s.user_id from left_over l
    join provisioning_stream s on s.target = l.target and s.user_id = l.user_id and s.claimed is null
    for update of s skip locked
  ), emptied as (
    update provisioning_stream s set waiting = 0, due_at = null from orphaned o
    where s.target = o.target and s.user_id = o.user_id
  ), cancelled as (
    update provisioning_delivery d set status = 'cancelled', ended_at = $now, updated_at = $now from orphaned o
    where d.target = o.target and d.user_id = o.user_id and d.ended_at is null returning d.document_id
  ), counted as (
    insert into provisioning_total (status, came) select 'cancelled', count(*) from cancelled having count(*) > 0
    on conflict (status) do update set came = provisioning_total.came + excluded.came
  )
  select count(*)::int as cancelled from orphaned`)

/** Cancels deliveries queued by a change of a user during the deletion of their target. Returns the number of users. */
export async function cancelOrphans(db: Database, now: Date, limit: number): Promise<number> {
  const [row] = await cancelLate(db, { now, limit })
  return row?.cancelled ?? 0
}

/** Deletes up to `limit` states of users at targets that were deleted before `before`. Returns their number. */
export const deleteDeadStreams = sweepStatement(`
  delete from provisioning_stream where ctid = any(array(
    select s.ctid from provisioning_target t join provisioning_stream s on s.target = t.document_id
    where t.deleted_at < $before and s.waiting = 0 limit $limit for update of s skip locked))`)

/** Deletes up to `limit` deliveries that ended before `before`, with their attempts. Returns their number. */
export const deleteOldDeliveries = deletionOfOld('provisioning_delivery', { key: 'document_id', time: 'ended_at' })
