import type { Database } from '../postgres/statement/database.ts'
import { changeStatement, statement } from '../postgres/statement/statement.ts'
import { sweepOnce } from '../postgres/sweep.ts'

export interface OtherWorker {
  workerId: string
  /** Its lease has expired. */
  isExpired: boolean
  /** Its connection has ended, and so its lock. */
  isLockLost: boolean
}

/** The lock that a worker holds for as long as its listening connection lives. */
const WORKER_LOCK = (workerId: string) => `hashtextextended(${workerId}, 0)`

const IS_LOCKED = (workerId: string) => `exists (
      select from pg_locks l
      where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
        and l.database = (select oid from pg_database where datname = current_database())
        and (l.classid::bigint << 32) | l.objid::bigint = ${WORKER_LOCK(workerId)})`

interface RenewedRow {
  worker_id: string | null
  is_expired: boolean
  is_lock_lost: boolean
  database_ms: number
}

/** `$hasLock`: a worker may not know that the server has closed its connection, so the server's state counts too. */
const renew = statement<RenewedRow, { workerId: string; until: Date; hasLock: boolean; now: Date }>(`
  with own as (
    insert into delivery_worker (worker_id, lease_until, has_lock)
    values ($workerId, $until, $hasLock and ${IS_LOCKED('$workerId')})
    on conflict (worker_id) do update set lease_until = excluded.lease_until, has_lock = excluded.has_lock
  )
  select w.worker_id, w.lease_until <= $now as is_expired,
    w.has_lock and not ${IS_LOCKED('w.worker_id')} as is_lock_lost,
    (extract(epoch from clock_timestamp()) * 1000)::float8 as database_ms
  from (select) one left join delivery_worker w on w.worker_id <> $workerId`)

export interface Renewed {
  others: OtherWorker[]
  /** The time of the database, in milliseconds since the Unix epoch. */
  databaseMs: number
}

/** Renews the lease of a worker, and reads the other workers and the database's clock. */
export async function renewLease(
  db: Database,
  lease: { workerId: string; until: Date; hasLock: boolean; now: Date },
): Promise<Renewed> {
  const rows = await renew(db, lease)
  const others = rows.flatMap(({ worker_id: workerId, is_expired: isExpired, is_lock_lost: isLockLost }) =>
    workerId === null ? [] : [{ workerId, isExpired, isLockLost }],
  )
  // The row of a single worker has only the time.
  return { others, databaseMs: rows[0]?.database_ms ?? Number.NaN }
}

/** Removes a worker that has released all of its claims. */
export const removeWorker = changeStatement<{ workerId: string }>(
  'delete from delivery_worker where worker_id = $workerId',
)

const deleteIdle = changeStatement<{ before: Date }>(`
  delete from delivery_worker w
  where w.lease_until < $before and not exists (select from webhook_dispatch_open d where d.lease_owner = w.worker_id)
    and not exists (select from realtime_message_open m where m.lease_owner = w.worker_id)
    and not exists (select from provisioning_stream s where s.lease_owner = w.worker_id)`)

const WORKER_KEPT_MS = 3_600_000

/** Deletes workers whose lease expired an hour ago and whose claims were all taken back. */
export const workerSweep = sweepOnce('workers', ({ db, now }) =>
  deleteIdle(db, { before: new Date(now.getTime() - WORKER_KEPT_MS) }),
)
