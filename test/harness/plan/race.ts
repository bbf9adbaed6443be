import type { TestDatabase } from '../database/database.ts'
import { waitFor } from '../run/wait.ts'
import { countWaiting } from './lock-waits.ts'

/** A statement that locks what all requests of a race need first. */
export interface Barrier {
  text: string
  values: readonly unknown[]
}

/** Holds a user's row, which whoever opens or ends something of it locks. */
export const holdUser = (userId: string): Barrier => ({
  text: 'select from "user" where document_id = $1 for update',
  values: [userId],
})

/**
 * Makes requests meet: each is begun when the one before waits for a lock or has ended, and all of them go on when the last
 * one does. Waiters of a lock get it in the order in which they came. Returns what the requests returned.
 */
export async function race<Result>(
  database: TestDatabase,
  barrier: Barrier,
  requests: readonly (() => Promise<Result>)[],
): Promise<Result[]> {
  const keeper = await database.pool.connect()
  let ended = 0
  try {
    await keeper.query('begin')
    await keeper.query(barrier.text, [...barrier.values])
    const running: Promise<Result>[] = []
    for (const request of requests) {
      running.push(
        request().finally(() => {
          ended += 1
        }),
      )
      await waitFor('a request that waits', async () => (await countWaiting(database.db)) + ended >= running.length)
    }
    await keeper.query('rollback')
    return await Promise.all(running)
  } finally {
    await keeper.query('rollback')
    keeper.release()
  }
}
