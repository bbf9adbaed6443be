import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'

/** A process whose machine has another time than the database. */
export interface ProcessSkew {
  process: string
  /** How far the machine is ahead of the database; negative: behind. */
  skewMs: number
}

const save = statement<never>(`
  insert into process_skew (process, skew_ms, seen_at) values ($1, $2, $3)
  on conflict (process) do update set skew_ms = excluded.skew_ms, seen_at = excluded.seen_at`)

/** Keeps what a process measured of itself, for the health and the alerts of all. */
export async function saveProcessSkew(db: Database, { process, skewMs }: ProcessSkew, now: Date): Promise<void> {
  await save(db, [process, Math.round(skewMs), now])
}

const remove = statement<never>('delete from process_skew where process = $1')

/** Removes a process whose machine has the time of the database again, or that stops. */
export async function removeProcessSkew(db: Database, process: string): Promise<void> {
  await remove(db, [process])
}

const list = statement<ProcessSkew>(`
  select process, skew_ms::float8 as "skewMs" from process_skew
  where seen_at > $1 and seen_at < $2 order by seen_at desc, process limit $3`)

/** The processes that reported themselves after `since` and before `until`, the latest first, up to `limit`. */
export function listProcessSkews(
  db: Database,
  { since, until, limit }: { since: Date; until: Date; limit: number },
): Promise<ProcessSkew[]> {
  return list(db, [since, until, limit])
}

/** Deletes up to `limit` processes that last reported themselves before `before`. Returns how many went. */
export const deleteOldSkews = deletionOfOld('process_skew', { key: 'process', time: 'seen_at' })
