import { valueStatement } from '../../postgres/statement/statement.ts'

/** Adds up to `limit` changes of the counts into one row. Returns their number; 0 for the sum alone. */
export const foldWebhookCounts = valueStatement<number, { limit: number }>(`
  with taken as (
    delete from webhook_count where number = any(array(
      select number from webhook_count where 1 < (select count(*) from (select from webhook_count limit 2) c)
      order by number limit $limit for update skip locked))
    returning active, inactive, auto_disabled
  ), kept as (
    insert into webhook_count (active, inactive, auto_disabled)
    select sum(active), sum(inactive), sum(auto_disabled) from taken having count(*) > 0
  )
  select count(*)::int as folded from taken`)
