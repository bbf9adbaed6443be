import { sql } from 'kysely'
import type { EventId, UserId } from '../../base/id.ts'
import type { LoggedAttempt } from '../../delivery/post/attempt.schema.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { closingStatement, statement } from '../../postgres/statement/statement.ts'
import type { DeliveryId } from '../claim/claimed-delivery.ts'
import type { DeliveryStatus } from '../claim/outcome.ts'
import type { ProvisionedStatus, ProvisioningEvent } from '../claim/payload.ts'
import type { TargetId } from '../target/target.store.ts'

/** A row of the ledger of provisioning. */
export interface DeliveryRecord {
  id: DeliveryId
  target: TargetId
  user: UserId
  eventId: EventId
  type: ProvisioningEvent
  status: DeliveryStatus
  attempts: number
  /** When a row that was attempted is tried again; null for all others. */
  nextAttemptAt: Date | null
  lastAttemptAt: Date | null
  lastStatusCode: number | null
  lastError: string | null
  lastDurationMs: number | null
  deliveredAt: Date | null
  job: string | null
  createdAt: Date
  updatedAt: Date
}

const COLUMNS = [
  'document_id',
  'target',
  'user_id',
  'event_id',
  'type',
  'status',
  'attempts',
  'last_attempt_at',
  'last_status_code',
  'last_error',
  'last_duration_ms',
  'delivered_at',
  'job',
  'created_at',
  'updated_at',
] as const

interface DeliveryColumns {
  document_id: string
  target: string
  user_id: string
  event_id: string
  type: string
  status: string
  attempts: number
  next_attempt_at: Date | null
  last_attempt_at: Date | null
  last_status_code: number | null
  last_error: string | null
  last_duration_ms: number | null
  delivered_at: Date | null
  job: string | null
  created_at: Date
  updated_at: Date
}

/** Only the first open delivery of a stream is ever attempted, so the due time of the stream is its own. */
const NEXT_ATTEMPT_AT = `case when d.status = 'retrying' then (
  select s.due_at from provisioning_stream s where s.target = d.target and s.user_id = d.user_id) end`

const OF_DELIVERY = `${COLUMNS.map((column) => `d.${column}`).join(', ')}, ${NEXT_ATTEMPT_AT} as next_attempt_at`

/** Maps a row of the ledger. */
export function toDeliveryRecord(row: DeliveryColumns): DeliveryRecord {
  return {
    id: row.document_id as DeliveryId,
    target: row.target as TargetId,
    user: row.user_id as UserId,
    eventId: row.event_id as EventId,
    type: row.type as ProvisioningEvent,
    status: row.status as DeliveryStatus,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    lastAttemptAt: row.last_attempt_at,
    lastStatusCode: row.last_status_code,
    lastError: row.last_error,
    lastDurationMs: row.last_duration_ms,
    deliveredAt: row.delivered_at,
    job: row.job,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** The ledger, as the base of a list. */
export function selectDeliveries(db: Database) {
  return db
    .selectFrom('provisioning_delivery as d')
    .select([
      ...COLUMNS.map((column) => `d.${column}` as const),
      sql.raw<Date | null>(NEXT_ATTEMPT_AT).as('next_attempt_at'),
    ])
}

/** What a delivery says of its user. */
export interface ToldUser {
  email: string
  name: string | null
  status: ProvisionedStatus
}

interface AttemptJson extends Omit<LoggedAttempt, 'startedAt'> {
  startedAt: string
}

const selectOne = statement<
  DeliveryColumns & { email: string; name: string | null; user_status: string; attempts_log: AttemptJson[] },
  { id: string }
>(`
  select ${OF_DELIVERY}, d.email, d.name, d.user_status,
    array(select json_build_object('attempt', a.attempt, 'trigger', a.attempt_trigger, 'worker', a.worker,
        'startedAt', a.started_at, 'durationMs', a.duration_ms, 'statusCode', a.status_code, 'errorClass', a.error_class,
        'responseExcerpt', a.response_excerpt, 'responseHeaders', a.response_headers, 'timings', a.timings)
      from provisioning_attempt a where a.delivery = d.document_id order by a.attempt) as attempts_log
  from provisioning_delivery d where d.document_id = $id`)

/** A delivery with what it says and its attempts, first attempt first. */
export interface DeliveryDetail {
  delivery: DeliveryRecord
  told: ToldUser
  attempts: LoggedAttempt[]
}

/** The delivery with this id. */
export async function findDelivery(db: Database, id: string): Promise<DeliveryDetail | undefined> {
  const [row] = await selectOne(db, { id })
  if (!row) return undefined
  return {
    delivery: toDeliveryRecord(row),
    told: { email: row.email, name: row.name, status: row.user_status as ProvisionedStatus },
    attempts: row.attempts_log.map((one) => ({ ...one, startedAt: new Date(one.startedAt) })),
  }
}

/** What decides over the replay of a delivery. */
export interface DeliveryReplayFacts {
  status: DeliveryStatus
  isTargetActive: boolean
  isInFlight: boolean
  /** A later change of the user was queued for the target. */
  isSuperseded: boolean
  /** A replay of it waits for its attempt. */
  isReplayWaiting: boolean
}

interface FactColumns {
  is_target_active: boolean
  is_in_flight: boolean
  is_superseded: boolean
  is_replay_waiting: boolean
}

/** Both rows are locked, so both are read as they are behind the lock. */
const lock = statement<DeliveryColumns & FactColumns, { id: string }>(`
  with found as materialized (select target, user_id from provisioning_delivery where document_id = $id),
  s as materialized (
    select s.* from found f join provisioning_stream s on s.target = f.target and s.user_id = f.user_id for update of s
  ),
  d as materialized (
    select d.* from (select count(*) from s) locked, provisioning_delivery d where d.document_id = $id for update of d
  )
  select ${OF_DELIVERY},
    coalesce((select t.is_actived and t.deleted_at is null from provisioning_target t where t.document_id = d.target), false)
      as is_target_active,
    s.claimed is not null as is_in_flight, s.position > d.position as is_superseded,
    d.status = 'retrying' and d.attempt_trigger = 'replay' as is_replay_waiting
  from d join s on s.target = d.target and s.user_id = d.user_id`)

/** A delivery, locked with its stream until the transaction ends, and what decides over its replay. */
export async function lockForReplay(
  db: Database,
  id: string,
): Promise<{ delivery: DeliveryRecord; facts: DeliveryReplayFacts } | undefined> {
  const [row] = await lock(db, { id })
  if (!row) return undefined
  return {
    delivery: toDeliveryRecord(row),
    facts: {
      status: row.status as DeliveryStatus,
      isTargetActive: row.is_target_active,
      isInFlight: row.is_in_flight,
      isSuperseded: row.is_superseded,
      isReplayWaiting: row.is_replay_waiting,
    },
  }
}

const schedule = closingStatement<{ id: DeliveryId; target: TargetId; user: UserId; added: 0 | 1; now: Date }>(`
  replayed as (
    update provisioning_delivery
    set status = 'retrying', attempt_trigger = 'replay', keeps_schedule = $added = 0, ended_at = null, updated_at = $now
    where document_id = $id
  ), due_stream as (
    update provisioning_stream set waiting = waiting + $added, due_at = $now where target = $target and user_id = $user
  )`)

/**
 * Makes a locked delivery due now for one attempt, with the last statement of the transaction. One that is open keeps its
 * schedule.
 */
export async function scheduleDeliveryReplay(db: Database, delivery: DeliveryRecord, now: Date): Promise<void> {
  const isOpen = delivery.status === 'pending' || delivery.status === 'retrying'
  await schedule(db, { id: delivery.id, target: delivery.target, user: delivery.user, added: isOpen ? 0 : 1, now })
}
