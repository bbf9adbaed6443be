import type { UserId } from '../../base/id.ts'
import { buildJobTable } from '../../delivery/job/job-table.ts'
import { columnsOf, wireOf } from '../../http/shape/wire-row.ts'
import { sweepStatement } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { rowStatement, soleRowStatement, statement } from '../../postgres/statement/statement.ts'
import type { DeliveryId } from '../claim/claimed-delivery.ts'
import type { TargetId } from '../target/target.store.ts'
import { JobRow } from './job.schema.ts'
import type { JobId, JobKind, UserAtTarget } from './job-record.ts'

/** A tracked run through all users for one target. */
const job = defineRecord('provisioning_job', [...columnsOf(JobRow), 'failures']).typed<{ createdBy: UserId | null }>()
export type JobRecord = RecordOf<typeof job>
export const toJobRow = wireOf(job, JobRow)

/** All jobs, as the base of a list. */
export function selectJobs(db: Database) {
  return selectRecord(db.selectFrom('provisioning_job'), job)
}

/**
 * Inserts a running job. Undefined when its target is not active, or has a job that has not ended. The target is locked, so
 * that jobs of one target are serialized and none starts during its deletion.
 */
export const insertJob = rowStatement<
  JobRecord,
  { id: JobId; target: string; kind: JobKind; by: UserId | null; now: Date }
>(`
  with t as materialized (
    select document_id from provisioning_target where document_id = $target and is_actived and deleted_at is null
    for no key update
  )
  insert into provisioning_job (document_id, target, kind, status, total, created_by, created_at, updated_at)
  select $id, t.document_id, $kind, 'running', case when $kind = 'redrive'
    then (select count(*) from provisioning_stream s where s.target = t.document_id) else (select count(*) from "user") end,
    $by, $now, $now from t
  on conflict (target) where status in ('running', 'paused', 'failed') do nothing
  returning ${job.members()}`)

/** Changes of the counts of a job by a step. */
export type SyncProgress = Partial<Pick<JobRecord, 'total' | 'processed' | 'queued'>> & { lastUser?: UserId }

/** The statements by which a runner and an operator move jobs. */
export const provisioningJobs = buildJobTable<JobId, JobRecord, SyncProgress>({
  table: 'provisioning_job',
  members: job.members(),
  progress: {
    total: 'total = $total',
    processed: 'processed = $processed',
    queued: 'queued = $queued',
    lastUser: 'last_user = $lastUser',
  },
})

/** The job with this id, and the numbers of its stored deliveries by status; `waiting` are the open ones. */
export const findJobWithOutcomes = rowStatement<
  JobRecord & { outcomes: Record<string, number> | null },
  { id: string },
  { job: JobRecord; outcomes: Record<string, number> }
>(
  `select ${job.members()}, (
    select json_object_agg(o.status, o.deliveries) from (
      select case when d.status in ('pending', 'retrying') then 'waiting' else d.status end as status,
        count(*) as deliveries
      from provisioning_delivery d where d.job = j.document_id group by 1
    ) o
  ) as outcomes
  from provisioning_job j where document_id = $id`,
  ({ outcomes, ...job }) => ({ job, outcomes: outcomes ?? {} }),
)

/** A running job, locked, with the facts that limit its next step. */
export interface ClaimedJob {
  job: JobRecord
  lastUser: UserId | null
  /** Its target is active, and every change of a user that did not see the target yet has ended. */
  mayRun: boolean
  /** Deliveries of the job that have not ended. */
  open: number
}

/**
 * Whether a transaction from before the job `j` has changed users and is still open: it may not have seen the target. A
 * later change of users reads the targets then. The snapshot alone covers transactions of all databases of the server,
 * whatever they change, so it is checked first and the locks decide.
 */
const IS_HELD = `
  pg_snapshot_xmin(pg_current_snapshot()) <= j.begun_by and exists (
    select from pg_locks changed join pg_locks own on own.virtualtransaction = changed.virtualtransaction
    where changed.locktype = 'relation' and changed.relation = '"user"'::regclass and changed.mode = 'RowExclusiveLock'
      and changed.database = (select oid from pg_database where datname = current_database())
      and own.locktype = 'transactionid' and own.mode = 'ExclusiveLock' and own.granted
      and age(own.transactionid) > age(j.begun_by::xid))`

/** Locks a running job until the transaction ends; undefined when it is no longer running, or another worker has it. */
export const claimJob = rowStatement<JobRecord & Omit<ClaimedJob, 'job'>, { id: JobId }, ClaimedJob>(
  `with j as materialized (
    select * from provisioning_job where document_id = $id and status = 'running' for update skip locked
  )
  select ${job.members('j')}, j.last_user as "lastUser",
    t.is_actived and t.deleted_at is null and not (${IS_HELD}) as "mayRun",
    (select count(*)::int from provisioning_delivery d where d.job = j.document_id and d.status in ('pending', 'retrying'))
      as open
  from j cross join lateral (select * from provisioning_target t where t.document_id = j.target) t`,
  ({ lastUser, mayRun, open, ...job }) => ({ job, lastUser, mayRun, open }),
)

/** The next users of a job by their ids, locked, so that the queued state of each is current when it is written. */
export const lockNextUsers = statement<
  UserAtTarget & { id: UserId },
  { target: TargetId; after: UserId | null; limit: number }
>(`
  select u.document_id as id, u.deleted_at is not null as "isDeleted", coalesce(s.waiting, 0) as waiting,
    case when s.is_current or s.delivered_digest = 'deleted' then s.delivered_digest
      when s.delivered_digest is not null then 'unknown' end as "deliveredDigest",
    provisioning_digest(u.email, u.name,
      case when u.deleted_at is not null then 'deleted' when u.is_actived then 'active' else 'disabled' end) as digest
  from "user" u
  left join lateral (
    select s.waiting, s.delivered_digest,
      s.generation = (select t.generation from provisioning_target t where t.document_id = $target) as is_current
    from provisioning_stream s where s.target = $target and s.user_id = u.document_id
  ) s on true
  where $after::uuid is null or u.document_id > $after::uuid
  order by u.document_id limit $limit for share of u`)

/** Queues the present state of locked users for a target. Returns the number of deliveries. */
export const queueUsers = soleRowStatement<
  { queued: number },
  { target: TargetId; users: readonly UserId[]; types: readonly string[]; now: Date; job: JobId },
  number
>(
  'select queue_provisioning(array[$target]::uuid[], $users::uuid[], $types::text[], $now, $job) as queued',
  ({ queued }) => queued,
)

/** A stream, and its last delivery if it failed. */
export interface StreamAtTarget {
  user: UserId
  failedDelivery: DeliveryId | null
}

/**
 * The next streams of a redrive, in the order of their users, locked, so that nothing of them is queued or attempted.
 * A stream without waiting deliveries has no attempt under way, and its last delivery has ended. The deliveries are
 * read as they were before the locks: the replay looks at their states once more.
 */
export const lockNextStreams = statement<StreamAtTarget, { target: TargetId; after: UserId | null; limit: number }>(`
  with s as materialized (
    select s.target, s.user_id, s.position, s.waiting from provisioning_stream s
    where s.target = $target and ($after::uuid is null or s.user_id > $after::uuid)
    order by s.user_id limit $limit for update
  )
  select s.user_id as "user", (
    select d.document_id from provisioning_delivery d
    where d.target = s.target and d.user_id = s.user_id and d.position = s.position and s.waiting = 0
      and d.status in ('failed', 'dead_letter')
  ) as "failedDelivery"
  from s order by s.user_id`)

/** Makes failed deliveries of locked streams due now, for one attempt each. Returns their number. */
export const replayFailed = soleRowStatement<
  { replayed: number },
  { target: TargetId; deliveries: readonly DeliveryId[]; now: Date; job: JobId },
  number
>(
  `with replayed as (
    update provisioning_delivery
    set status = 'retrying', attempt_trigger = 'replay', keeps_schedule = false, ended_at = null, updated_at = $now, job = $job
    where document_id = any($deliveries) and status in ('failed', 'dead_letter') returning user_id
  ), due as (
    update provisioning_stream set waiting = waiting + 1, due_at = $now
    where target = $target and user_id = any(array(select user_id from replayed))
  )
  select count(*)::int as replayed from replayed`,
  ({ replayed }) => replayed,
)

/** Deletes up to `limit` ended jobs older than `before`. Returns their number. */
export const deleteOldJobs = sweepStatement(`
  delete from provisioning_job where document_id = any(array(
    select document_id from provisioning_job where ended_at < $before order by ended_at limit $limit
    for update skip locked))`)
