import { sql } from 'kysely'
import { expect, vi } from 'vitest'
import type { Database } from '../../src/postgres/database.ts'

/** Waits until `count` connections of this test's database wait for a lock. */
export async function untilWaiting(db: Database, count: number): Promise<void> {
  await vi.waitFor(async () => expect(await countWaiting(db)).toBe(count), { timeout: 30_000 })
}

/** How many connections of this test's database wait for a lock. */
export async function countWaiting(db: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
  return rows[0]?.count ?? 0
}
