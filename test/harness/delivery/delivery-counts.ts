import { sql } from 'kysely'
import type { Database } from '../../../src/postgres/statement/database.ts'

/** Counts rows that a test wrote into the ledger itself, as the statements of the service count theirs. */
export const COUNT_ADDED = `
  insert into webhook_delivery_minute (minute, status, shard, came, deliveries)
  values (date_trunc('minute', $1::timestamptz), $2, 0, 0, $3::int)
  on conflict (minute, status, shard) do update set deliveries = webhook_delivery_minute.deliveries + excluded.deliveries`

/** The minutes and statuses whose count is not that of the ledger, as text; empty when all agree. */
export async function listMiscounts(db: Database): Promise<string[]> {
  const { rows } = await sql<{ fault: string }>`
    select format('%s %s: %s counted, %s in the ledger', coalesce(c.minute, l.minute), coalesce(c.status, l.status),
      coalesce(c.deliveries, 0), coalesce(l.deliveries, 0)) as fault
    from (
      select minute, status, sum(deliveries)::int as deliveries from webhook_delivery_minute group by 1, 2
    ) c
    full join (
      select date_trunc('minute', created_at) as minute, status, count(*)::int as deliveries from webhook_dispatch
      group by 1, 2
    ) l on l.minute = c.minute and l.status = c.status
    where coalesce(c.deliveries, 0) <> coalesce(l.deliveries, 0)`.execute(db)
  return rows.map((row) => row.fault)
}
