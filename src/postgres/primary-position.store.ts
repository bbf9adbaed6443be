import type { PrimaryPosition } from './connection/replica.ts'
import type { Database } from './statement/database.ts'
import { statement } from './statement/statement.ts'

/** With `synchronous_commit` off, a change is visible before it is flushed. */
const select = statement<PrimaryPosition>(`
  select lsn::text as lsn, left(pg_walfile_name(lsn), 8) as timeline
  from (select case current_setting('synchronous_commit') when 'off' then pg_current_wal_insert_lsn()
    else pg_current_wal_flush_lsn() end as lsn) s`)

/** The position behind every change that was committed before. Fails on a standby. */
export async function readPrimaryPosition(db: Database): Promise<PrimaryPosition> {
  const [row] = await select(db)
  if (!row) throw new Error('a select without a table has one row')
  return row
}
