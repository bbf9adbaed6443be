import type { DatabaseClock } from '../base/database-clock.ts'
import type { Database } from './statement/database.ts'
import { valueStatement } from './statement/statement.ts'

/** Number of readings of which the quickest counts, since the first may have waited for a connection. */
const LOOKS = 3

const ask = valueStatement<number>('select (extract(epoch from clock_timestamp()) * 1000)::float8 as database_ms')

/** Reads the database's clock once. */
export async function askDatabaseTime(db: Database, clock: DatabaseClock): Promise<void> {
  const sentAtMs = clock.monotonicMs()
  const databaseMs = await ask(db)
  clock.observe({ sentAtMs, receivedAtMs: clock.monotonicMs(), databaseMs })
}

/** Sets the clock by the database, at a start. */
export async function alignClock(db: Database, clock: DatabaseClock): Promise<void> {
  for (let look = 0; look < LOOKS; look += 1) await askDatabaseTime(db, clock)
}
