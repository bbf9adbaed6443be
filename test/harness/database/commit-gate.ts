import { type Database, openDatabase } from '../../../src/postgres/statement/database.ts'
import { countWaiting, untilWaiting } from '../plan/lock-waits.ts'
import { waitFor } from '../run/wait.ts'
import type { TestDatabase } from './database.ts'

/** Any number that no lock of the service has. */
const GATE_LOCK = 7_001_001

/** Holds transactions back at their commit, with all they wrote and locked. */
export interface CommitGate extends AsyncDisposable {
  /** Transactions over this wait at their commit, when they wrote to one of the tables. */
  gated: Database
  /**
   * Runs `first` up to its commit, then `second` over `free` until it ends or waits for a lock, then lets both end.
   * Returns what they returned.
   */
  interleave<First, Second>(
    first: (gated: Database) => Promise<First>,
    second: (free: Database) => Promise<Second>,
  ): Promise<[First, Second]>
}

/** Builds a gate for transactions that write to `tables`. */
export async function buildCommitGate(database: TestDatabase, tables: readonly string[]): Promise<CommitGate> {
  await database.pool.query(`create function wait_at_gate() returns trigger language plpgsql as $$
    begin
      if current_setting('application_name') = 'gated' then perform pg_advisory_xact_lock_shared(${GATE_LOCK}); end if;
      return null;
    end $$`)
  for (const table of tables)
    await database.pool.query(`create constraint trigger gate after insert or update or delete on ${table}
      deferrable initially deferred for each row execute function wait_at_gate()`)
  const { connectionString } = database
  const gated = openDatabase({ connectionString, size: 1, applicationName: 'gated', onError: () => {} })
  return {
    gated: gated.db,
    interleave: async (first, second) => {
      const keeper = await database.pool.connect()
      try {
        await keeper.query('select pg_advisory_lock($1)', [GATE_LOCK])
        const begun = first(gated.db)
        await untilWaiting(database.db, 1)
        let hasEnded = false
        const other = second(database.db).finally(() => {
          hasEnded = true
        })
        await waitFor('the second one', async () => hasEnded || (await countWaiting(database.db)) === 2)
        await keeper.query('select pg_advisory_unlock($1)', [GATE_LOCK])
        return await Promise.all([begun, other])
      } finally {
        await keeper.query('select pg_advisory_unlock_all()')
        keeper.release()
      }
    },
    [Symbol.asyncDispose]: () => gated.close(),
  }
}
