import type { Database } from './statement/database.ts'
import { changeStatement } from './statement/statement.ts'

/** A statement for retention: `text` deletes up to `$limit` rows from before `$before`. Returns their number. */
export function sweepStatement(text: string): (db: Database, before: Date, limit: number) => Promise<number> {
  const run = changeStatement<{ before: Date; limit: number }>(text)
  return (db, before, limit) => run(db, { before, limit })
}

/**
 * A statement for retention: deletes up to `limit` rows of `table` whose column `time` is before `before`, the oldest
 * first, except locked ones. Returns their number. `time` may be an expression; `and`: a further condition of the row `r`.
 * All are constants of the code.
 */
export function deletionOfOld(
  table: string,
  { key, time, and = 'true' }: { key: string; time: string; and?: string },
): (db: Database, before: Date, limit: number) => Promise<number> {
  return sweepStatement(`
    delete from ${table} where ${key} = any(array(
      select ${key} from ${table} r where ${time} < $before and ${and}
      order by ${time} limit $limit for update skip locked))`)
}
