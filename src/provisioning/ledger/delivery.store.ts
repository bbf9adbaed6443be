import { sql } from 'kysely'
import type { EventId, UserId } from '../../base/id.ts'
import type { LoggedAttempt } from '../../delivery/post/attempt.schema.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import { columnsOf, wireOf } from '../../http/shape/wire-row.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { closingStatement, rowStatement } from '../../postgres/statement/statement.ts'
import type { DeliveryId } from '../claim/claimed-delivery.ts'
import type { DeliveryStatus } from '../claim/outcome.ts'
import type { ProvisionedStatus } from '../claim/payload.ts'
import type { TargetId } from '../target/target.store.ts'
import { DeliveryRow } from './delivery.schema.ts'

/** The columns of a delivery to a target. */
const delivery = defineRecord(
  'provisioning_delivery',
  ['user_id', ...columnsOf(DeliveryRow).filter((column) => column !== 'user' && column !== 'next_attempt_at')],
  { user_id: 'user' },
).typed<{ user: UserId; eventId: EventId }>()

/** A row of the ledger of provisioning. */
export interface DeliveryRecord extends RecordOf<typeof delivery> {
  /** Due time of a retry; null for all other rows. */
  nextAttemptAt: Date | null
}

const toStoredRow = wireOf(delivery, DeliveryRow)

/** Maps a row for the wire. */
export function toDeliveryRow(record: DeliveryRecord): Static<typeof DeliveryRow> {
  const next_attempt_at = record.nextAttemptAt?.toISOString() ?? null
  return { ...toStoredRow(record), user: record.user, next_attempt_at }
}

/** Only the first open delivery of a stream is ever attempted, so the due time of the stream is its own. */
const NEXT_ATTEMPT_AT = `case when d.status = 'retrying' then (
  select s.due_at from provisioning_stream s where s.target = d.target and s.user_id = d.user_id) end`

const OF_DELIVERY = `${delivery.members('d')}, ${NEXT_ATTEMPT_AT} as "nextAttemptAt"`

/** The ledger, as the base of a list. */
export function selectDeliveries(db: Database) {
  const nextAttemptAt = sql.raw<Date | null>(NEXT_ATTEMPT_AT).as('nextAttemptAt')
  return selectRecord(db.selectFrom('provisioning_delivery as d'), delivery, 'd').select(nextAttemptAt)
}

/** User in a delivery. */
export interface ToldUser {
  email: string
  name: string | null
  status: ProvisionedStatus
}

/** Maps the user's state of a delivery, as in the body of its POST. */
export function toDeliveryData(user: string, { email, name, status }: ToldUser) {
  return { user: { document_id: user, email, name, status } }
}

interface AttemptJson extends Omit<LoggedAttempt, 'startedAt'> {
  startedAt: string
}

/** The delivery with this id. */
export const findDelivery = rowStatement<
  DeliveryRecord & { email: string; name: string | null; userStatus: ProvisionedStatus; attemptsLog: AttemptJson[] },
  { id: string },
  DeliveryDetail
>(
  `select ${OF_DELIVERY}, d.email, d.name, d.user_status as "userStatus",
    array(select json_build_object('attempt', a.attempt, 'trigger', a.attempt_trigger, 'worker', a.worker,
        'startedAt', a.started_at, 'durationMs', a.duration_ms, 'statusCode', a.status_code, 'errorClass', a.error_class,
        'responseExcerpt', a.response_excerpt, 'responseHeaders', a.response_headers, 'timings', a.timings)
      from provisioning_attempt a where a.delivery = d.document_id order by a.attempt) as "attemptsLog"
  from provisioning_delivery d where d.document_id = $id`,
  ({ email, name, userStatus: status, attemptsLog, ...delivery }) => ({
    delivery,
    told: { email, name, status },
    attempts: attemptsLog.map((item) => ({ ...item, startedAt: new Date(item.startedAt) })),
  }),
)

/** A delivery with the user's state and its attempts, first attempt first. */
export interface DeliveryDetail {
  delivery: DeliveryRecord
  told: ToldUser
  attempts: LoggedAttempt[]
}

/** Facts that decide on the replay of a delivery. */
export interface DeliveryReplayFacts {
  status: DeliveryStatus
  isTargetActive: boolean
  isInFlight: boolean
  /** A later change of the user was queued for the target. */
  isSuperseded: boolean
  /** A replay of it waits for its attempt. */
  isReplayWaiting: boolean
}

/** A delivery, locked with its stream until the transaction ends, and the facts for its replay behind the lock. */
export const lockForReplay = rowStatement<
  DeliveryRecord & DeliveryReplayFacts,
  { id: string },
  { delivery: DeliveryRecord; facts: DeliveryReplayFacts }
>(
  `with found as materialized (select target, user_id from provisioning_delivery where document_id = $id),
  s as materialized (
    select s.* from found f join provisioning_stream s on s.target = f.target and s.user_id = f.user_id for update of s
  ),
  d as materialized (
    select d.* from (select count(*) from s) locked, provisioning_delivery d where d.document_id = $id for update of d
  )
  select ${OF_DELIVERY},
    coalesce((select t.is_actived and t.deleted_at is null from provisioning_target t where t.document_id = d.target), false)
      as "isTargetActive",
    s.claimed is not null as "isInFlight", s.position > d.position as "isSuperseded",
    d.status = 'retrying' and d.attempt_trigger = 'replay' as "isReplayWaiting"
  from d join s on s.target = d.target and s.user_id = d.user_id`,
  ({ isTargetActive, isInFlight, isSuperseded, isReplayWaiting, ...delivery }) => ({
    delivery,
    facts: { status: delivery.status, isTargetActive, isInFlight, isSuperseded, isReplayWaiting },
  }),
)

const schedule = closingStatement<{ id: DeliveryId; target: TargetId; user: UserId; added: 0 | 1; now: Date }>(`
  replayed as (
    update provisioning_delivery
    set status = 'retrying', attempt_trigger = 'replay', keeps_schedule = $added = 0, ended_at = null, updated_at = $now
    where document_id = $id
  ), due_stream as (
    update provisioning_stream set waiting = waiting + $added, due_at = $now where target = $target and user_id = $user
  )`)

/** Makes a locked delivery due now for one attempt. An open one keeps its schedule. */
export async function scheduleDeliveryReplay(db: Database, locked: DeliveryRecord, now: Date): Promise<void> {
  const isOpen = locked.status === 'pending' || locked.status === 'retrying'
  await schedule(db, { id: locked.id, target: locked.target, user: locked.user, added: isOpen ? 0 : 1, now })
}
