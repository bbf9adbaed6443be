import { sql } from 'kysely'
import { expect, vi } from 'vitest'
import { type Database, inTransaction } from '../../../src/postgres/statement/database.ts'

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

/**
 * Runs `work` while another transaction holds what `hold` locked or wrote, and commits that transaction when `work` waits
 * for it. Fails when `work` does not wait. Returns what `work` returned.
 */
export async function whileHeld<Result>(
  db: Database,
  hold: (tx: Database) => Promise<unknown>,
  work: () => Promise<Result>,
): Promise<Result> {
  const { result } = await inTransaction(db, async (tx) => {
    await hold(tx)
    const result = work()
    await untilWaiting(db, 1)
    return { result }
  })
  return result
}

/**
 * Runs `work`, which locks two rows, while another transaction holds the first one and then locks the last. It deadlocks
 * unless `work` locks them in the same order. Returns the result of `work`.
 */
export async function whileLockedInOrder<Result>(
  db: Database,
  locks: { first: (tx: Database) => Promise<unknown>; last: (tx: Database) => Promise<unknown> },
  work: () => Promise<Result>,
): Promise<Result> {
  const { result } = await inTransaction(db, async (tx) => {
    await locks.first(tx)
    const result = work()
    // Both fail in a deadlock, and the transaction tells it first.
    result.catch(() => {})
    await untilWaiting(db, 1)
    await locks.last(tx)
    return { result }
  })
  return result
}
