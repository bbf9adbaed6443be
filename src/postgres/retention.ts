import type { Database } from './statement/database.ts'
import { statement } from './statement/statement.ts'

/**
 * A statement for retention: deletes up to `limit` rows of `table` whose column `time` is before `before`, the oldest
 * first, except locked ones. Returns their number. The names are constants of the code.
 */
export function deletionOfOld(
  table: string,
  { key, time }: { key: string; time: string },
): (db: Database, before: Date, limit: number) => Promise<number> {
  const run = statement<{ deleted: number }, { before: Date; limit: number }>(`
    with gone as (
      delete from ${table} where ${key} = any(array(
        select ${key} from ${table} where ${time} < $before order by ${time} limit $limit for update skip locked))
      returning 1
    )
    select count(*)::int as deleted from gone`)
  return async (db, before, limit) => {
    const [row] = await run(db, { before, limit })
    return row?.deleted ?? 0
  }
}
