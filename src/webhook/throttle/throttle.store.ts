import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'

const remove = statement<{ removed: number }, { before: Date; limit: number }>(`
  with removed as (
    delete from webhook_throttle where webhook = any(array(
      select t.webhook from webhook_throttle t where t.claimed_at[cardinality(t.claimed_at)] < $before limit $limit
      for update skip locked))
    returning webhook
  )
  select count(*)::int as removed from removed`)

/** Deletes up to `limit` counts of webhooks last claimed before `before`. Returns their number. */
export async function deleteOldThrottles(db: Database, before: Date, limit: number): Promise<number> {
  const [row] = await remove(db, { before, limit })
  return row?.removed ?? 0
}
