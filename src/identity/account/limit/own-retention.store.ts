import type { OwnRetention } from '../../../postgres/own-retention.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { statement } from '../../../postgres/statement/statement.ts'

const select = statement<OwnRetention, Record<never, never>>(`
  select l.account, l.ledger_retention_days as days, a.deleted_at is not null as "isDeleted"
  from account_limit l join account a on a.document_id = l.account
  where l.ledger_retention_days is not null order by l.account`)

/** The accounts with a retention of their own, by their ids. Costs as many index entries, whatever the number of accounts. */
export function listOwnRetentions(db: Database): Promise<OwnRetention[]> {
  return select(db, {})
}
