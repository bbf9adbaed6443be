import type { PrimaryPosition } from './connection/replica.ts'
import { soleRowStatement } from './statement/statement.ts'

/**
 * The position behind every change that was committed before. Fails on a standby. With `synchronous_commit` off, a
 * change is visible before it is flushed.
 */
export const readPrimaryPosition = soleRowStatement<PrimaryPosition>(`
  select lsn::text as lsn, left(pg_walfile_name(lsn), 8) as timeline
  from (select case current_setting('synchronous_commit') when 'off' then pg_current_wal_insert_lsn()
    else pg_current_wal_flush_lsn() end as lsn) s`)
