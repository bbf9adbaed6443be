import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { runDetached } from '../../postgres/statement/dialect.ts'
import { compileFragment, fragment } from '../../postgres/statement/fragment.ts'
import { statement } from '../../postgres/statement/statement.ts'

/** Maximum number of rows in one statement. */
const CHUNK = 5_000

/**
 * The setting applies to this statement's own transaction. Requests of one address wait for each other's rows, and
 * would also wait for the disk; a crash of the server loses the counts of its last second.
 */
const addOne = fragment<{ bucket: string; windowStartedAt: Date }>(
  'added hit',
  `
  insert into rate_limit (bucket, window_started_at, hits)
  select $bucket, $windowStartedAt, 1 from (select set_config('synchronous_commit', 'off', true)) as relaxed
  on conflict (bucket, window_started_at) do update set hits = rate_limit.hits + 1
  returning hits`,
)

/** Counts one hit and returns the sum of all processes, in the first round trip of a given transaction. */
export async function addHit(db: Database, bucket: string, windowStartedAt: Date): Promise<number> {
  const [row] = await runDetached(db, compileFragment<{ hits: number }>(addOne({ bucket, windowStartedAt })))
  if (!row) throw new Error('an upsert returns its row')
  return row.hits
}

const addSeveral = statement<
  { bucket: string; hits: number },
  { windowStartedAt: Date; names: readonly string[]; hits: readonly number[] }
>(`
  insert into rate_limit (bucket, window_started_at, hits)
  select x.bucket, $windowStartedAt, x.hits from unnest($names::text[], $hits::int[]) as x (bucket, hits)
  order by x.bucket collate "C"
  on conflict (bucket, window_started_at) do update set hits = rate_limit.hits + excluded.hits
  returning bucket, hits`)

/** Adds hits of many buckets and returns the sums. Rows are locked in one order, so processes do not deadlock. */
export async function addHits(
  db: Database,
  windowStartedAt: Date,
  counted: readonly { name: string; hits: number }[],
): Promise<Map<string, number>> {
  const sums = new Map<string, number>()
  for (let start = 0; start < counted.length; start += CHUNK) {
    const chunk = counted.slice(start, start + CHUNK)
    const [names, hits] = [chunk.map((item) => item.name), chunk.map((item) => item.hits)]
    for (const row of await addSeveral(db, { windowStartedAt, names, hits })) sums.set(row.bucket, row.hits)
  }
  return sums
}

/** Deletes up to `limit` counts of windows that began before `before`. Returns their number. For maintenance. */
export const deleteOldRateWindows = deletionOfOld('rate_limit', { key: 'ctid', time: 'window_started_at' })
