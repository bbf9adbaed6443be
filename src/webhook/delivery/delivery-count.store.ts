import { createHash } from 'node:crypto'
import type { Database } from '../../postgres/statement/database.ts'
import { valueStatement } from '../../postgres/statement/statement.ts'

/** Number of shards on which workers count: processes on different shards never wait for each other. */
const SHARDS = 64

/** The shard of deletions. */
export const REMOVAL_SHARD = 2 * SHARDS

/** The shard on which a worker counts its writes. */
export function findShard(workerId: string): number {
  return (createHash('sha256').update(workerId).digest()[0] ?? 0) % SHARDS
}

/** The shard on which a worker counts results: a settling statement never waits for a routing one. */
export function findSettlingShard(workerId: string): number {
  return SHARDS + findShard(workerId)
}

/** Rows of `source` (with `created_at`) that entered a status, for `countChanges`. */
export const cameInto = (source: string, status: string) =>
  `select created_at, ${status} as status, 1 as came, 1 as deliveries from ${source}`

/** Rows of `source` that left a status. */
export const leftFrom = (source: string, status = 'status') =>
  `select created_at, ${status} as status, 0 as came, -1 as deliveries from ${source}`

/** The part of a statement that counts changes of rows (`cameInto`, `leftFrom`), by the minute of their creation. */
export const countChanges = (changes: readonly string[], shard: string) => `
  insert into webhook_delivery_minute (minute, status, shard, came, deliveries)
  select date_trunc('minute', created_at), status, ${shard}::int, sum(came), sum(deliveries)
  from (${changes.join(' union all ')}) c
  group by 1, 2 having sum(came) <> 0 or sum(deliveries) <> 0 order by 1, 2
  on conflict (minute, status, shard) do update
    set came = webhook_delivery_minute.came + excluded.came,
      deliveries = webhook_delivery_minute.deliveries + excluded.deliveries`

/** Number of times a delivery entered each status, over all time and all processes. */
export async function readTotals(db: Database): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('webhook_delivery_minute')
    .select((eb) => ['status', eb.fn.sum<string>('came').as('came')])
    .groupBy('status')
    .having((eb) => eb.fn.sum('came'), '>', 0)
    .execute()
  return new Map(rows.map((row) => [row.status, Number(row.came)]))
}

/** Adds the counts of minutes before `before` up, each status and shard in one row. Returns their number. */
export const foldOldMinutes = valueStatement<number, { before: Date }>(`
  with old as (
    delete from webhook_delivery_minute where minute < $before and minute > 'epoch' returning status, shard, came
  ), kept as (
    insert into webhook_delivery_minute (minute, status, shard, came, deliveries)
    select 'epoch', status, shard, sum(came), 0 from old group by status, shard order by status, shard
    on conflict (minute, status, shard) do update set came = webhook_delivery_minute.came + excluded.came
  )
  select count(*)::int as folded from old`)
