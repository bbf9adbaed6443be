import type { Database } from '../../../postgres/statement/database.ts'
import { startOfDay, sumRefusals } from './connection-activity.store.ts'

/** Counts of a sign-in by a connection (docs/contract/connections.md#activity). */
export { countAttempt } from './connection-activity.store.ts'

/** Rows that are summed at most, each of a connection and a reason. */
const ROW_LIMIT = 10_000

/** The refused sign-ins by all connections on this day (UTC), by reason. */
export async function readRefusals(db: Database, now: Date): Promise<Readonly<Record<string, number>>> {
  const rows = await sumRefusals(db, { since: startOfDay(now), limit: ROW_LIMIT })
  return Object.fromEntries(rows.map(({ reason, count }) => [reason, count]))
}
