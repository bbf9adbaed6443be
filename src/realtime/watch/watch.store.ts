import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord } from '../../postgres/statement/record.ts'
import { changeStatement, soleRowStatement } from '../../postgres/statement/statement.ts'
import type { Verdict } from '../authorization/verdict.ts'

const save = changeStatement<Verdict & { workerId: string; now: Date }>(`
  insert into realtime_watch (worker_id, status, last_success_at, last_error, last_error_at, last_warning_code,
    last_warning_at, checked_at)
  values ($workerId, $status, $lastSuccessAt, $lastError, $lastErrorAt, $lastWarningCode, $lastWarningAt, $now)
  on conflict (worker_id) do update set status = excluded.status, last_success_at = excluded.last_success_at,
    last_error = excluded.last_error, last_error_at = excluded.last_error_at,
    last_warning_code = excluded.last_warning_code, last_warning_at = excluded.last_warning_at,
    checked_at = excluded.checked_at`)

/** Stores the verdict of a process on the provider. */
export async function saveWatch(
  db: Database,
  { workerId, verdict, now }: { workerId: string; verdict: Verdict; now: Date },
): Promise<void> {
  await save(db, { ...verdict, workerId, now })
}

/** Removes the verdict of a process that stops. */
export const removeWatch = changeStatement<{ workerId: string }>(
  'delete from realtime_watch where worker_id = $workerId',
)

/** Deletes the reports of processes that are silent since `before`. Returns their number. */
export const deleteOldWatches = changeStatement<{ before: Date }>(
  'delete from realtime_watch where checked_at < $before',
)

/** Status that one process has stored, and the waiting messages. */
export interface WatchFacts extends Omit<Verdict, 'status'> {
  status: Verdict['status'] | null
  /** Messages that wait, at most `limit`. */
  backlog: number
  /** Longest wait of these accounts, in seconds. */
  oldestPendingS: number
}

type FactsRow = Omit<WatchFacts, 'status'> & { statuses: Verdict['status'][] }

const lastError = defineRecord('realtime_watch', ['last_error', 'last_error_at'])
const lastWarning = defineRecord('realtime_watch', ['last_warning_code', 'last_warning_at'])

const selectFacts = soleRowStatement<FactsRow, { since: Date; now: Date; limit: number }>(`
  with live as materialized (select * from realtime_watch where checked_at >= $since),
  waiting as (
    select w.created_at from realtime_queue q
    cross join lateral (
      select m.created_at from realtime_message_open m where m.account = q.account and m.lease_owner is null
      order by m.created_at limit $limit
    ) w limit $limit
  )
  select array(select status from live) as statuses, (select max(last_success_at) from live) as "lastSuccessAt",
    ${lastError.members('e')}, ${lastWarning.members('r')},
    (select count(*)::int from waiting) as backlog,
    coalesce((select greatest(0, floor(extract(epoch from $now::timestamptz - min(created_at))))::int from waiting), 0)
      as "oldestPendingS"
  from (select) one
  left join lateral (select last_error, last_error_at from live order by last_error_at desc nulls last limit 1) e on true
  left join lateral (
    select last_warning_code, last_warning_at from live order by last_warning_at desc nulls last limit 1
  ) r on true`)

/** Best status stored since `since`, `degraded` when the processes differ; null when none has stored one. */
export async function readWatchFacts(
  db: Database,
  { since, now, limit }: { since: Date; now: Date; limit: number },
): Promise<WatchFacts> {
  const { statuses, ...facts } = await selectFacts(db, { since, now, limit })
  const [first = null] = statuses
  return { status: new Set(statuses).size > 1 ? 'degraded' : first, ...facts }
}
