import type { PrimaryPosition } from './connection/replica.ts'
import type { Database } from './statement/database.ts'
import { statement } from './statement/statement.ts'

const select = statement<PrimaryPosition>(`
  select lsn::text as lsn, left(pg_walfile_name(lsn), 8) as timeline from (select pg_current_wal_flush_lsn() as lsn) s`)

/** What the primary has flushed now. Fails on a standby. */
export async function readPrimaryPosition(db: Database): Promise<PrimaryPosition> {
  const [row] = await select(db)
  if (!row) throw new Error('a select without a table has one row')
  return row
}
