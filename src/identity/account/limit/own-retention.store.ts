import type { OwnRetention } from '../../../postgres/own-retention.ts'
import { statement } from '../../../postgres/statement/statement.ts'

/** The accounts with a retention of their own, by their ids. Costs as many index entries, whatever the number of accounts. */
export const listOwnRetentions = statement<OwnRetention>(`
  select l.account, l.ledger_retention_days as days, a.deleted_at is not null as "isDeleted"
  from account_limit l join account a on a.document_id = l.account
  where l.ledger_retention_days is not null order by l.account`)
