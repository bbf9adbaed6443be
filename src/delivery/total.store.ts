import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import type { DispatchStatus } from './outcome.ts'

/** On how many rows each status is counted: processes that hash apart never wait for each other. */
const SHARDS = 64

function findShard(workerId: string): number {
  return (createHash('sha256').update(workerId).digest()[0] ?? 0) % SHARDS
}

/** Adds to the all-time counts, in the transaction of what is counted (docs/contract/delivery.md#metrics). */
export async function addToTotals(
  db: Database,
  workerId: string,
  added: Partial<Record<DispatchStatus, number>>,
): Promise<void> {
  const counts = Object.entries(added)
    .filter(([, deliveries]) => deliveries > 0)
    // One order in every process, so that two of them never wait for each other's rows.
    .sort(([a], [b]) => (a < b ? -1 : 1))
  if (counts.length === 0) return
  const shard = findShard(workerId)
  await sql`
    insert into webhook_delivery_total (status, shard, deliveries)
    select x.status, ${shard}, x.deliveries
    from unnest(${counts.map(([status]) => status)}::text[], ${counts.map(([, deliveries]) => deliveries)}::bigint[])
      as x (status, deliveries)
    on conflict (status, shard) do update set deliveries = webhook_delivery_total.deliveries + excluded.deliveries`.execute(
    db,
  )
}

/** How often a delivery came into each status, over all time and all processes. */
export async function readTotals(db: Database): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('webhook_delivery_total')
    .select((eb) => ['status', eb.fn.sum<string>('deliveries').as('deliveries')])
    .groupBy('status')
    .execute()
  return new Map(rows.map((row) => [row.status, Number(row.deliveries)]))
}
