import { createHash } from 'node:crypto'
import type { Database } from '../../postgres/database.ts'

/** On how many rows each status is counted: processes that hash apart never wait for each other. */
const SHARDS = 64

/** The row of the totals that a worker counts on. */
export function findShard(workerId: string): number {
  return (createHash('sha256').update(workerId).digest()[0] ?? 0) % SHARDS
}

/** The part of a statement that adds the rows of its part `source` to the count of a status, on a shard. */
export const countInto = (source: string, status: string, shard: string) => `
  insert into webhook_delivery_total (status, shard, deliveries)
  select ${status}, ${shard}::int, count(*) from ${source} having count(*) > 0
  on conflict (status, shard) do update set deliveries = webhook_delivery_total.deliveries + excluded.deliveries`

/** How often a delivery came into each status, over all time and all processes. */
export async function readTotals(db: Database): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('webhook_delivery_total')
    .select((eb) => ['status', eb.fn.sum<string>('deliveries').as('deliveries')])
    .groupBy('status')
    .execute()
  return new Map(rows.map((row) => [row.status, Number(row.deliveries)]))
}
