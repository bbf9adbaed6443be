import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { sweepOld } from '../../postgres/sweep.ts'

/** A process whose machine has another time than the database. */
export interface ProcessSkew {
  process: string
  /** Lead of the machine over the database; negative: behind. */
  skewMs: number
}

const save = statement<never, { process: string; skewMs: number; now: Date }>(`
  insert into process_skew (process, skew_ms, seen_at) values ($process, $skewMs, $now)
  on conflict (process) do update set skew_ms = excluded.skew_ms, seen_at = excluded.seen_at`)

/** Stores a process's own measurement, for the health and alerts of all processes. */
export async function saveProcessSkew(db: Database, { process, skewMs }: ProcessSkew, now: Date): Promise<void> {
  await save(db, { process, skewMs: Math.round(skewMs), now })
}

/** Removes a process whose machine has the time of the database again, or that stops. */
export const removeProcessSkew = statement<never, { process: string }>(
  'delete from process_skew where process = $process',
)

/** The processes that reported themselves after `since` and before `until`, the latest first, up to `limit`. */
export const listProcessSkews = statement<ProcessSkew, { since: Date; until: Date; limit: number }>(`
  select process, skew_ms::float8 as "skewMs" from process_skew
  where seen_at > $since and seen_at < $until order by seen_at desc, process limit $limit`)

/** Deletes up to `limit` processes that last reported themselves before `before`. Returns their number. */
const deleteOldSkews = deletionOfOld('process_skew', { key: 'process', time: 'seen_at' })

/** Retention of the skew of a process after its last report. */
const SKEW_KEPT_MS = 3_600_000

/** Deletes the clock reports of ended processes. */
export const skewSweep = sweepOld('processSkews', SKEW_KEPT_MS, deleteOldSkews)
