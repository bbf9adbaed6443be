import { sql } from 'kysely'
import type { AccountId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { Holdings } from './delegation.ts'

interface HoldingsColumns {
  patterns: string[]
  account_patterns: string[]
  accounts: AccountId[]
}

/** What the roles and memberships of a user give, in one statement. Deleted accounts give nothing. */
export async function findHoldings(db: Database, userId: UserId): Promise<Holdings> {
  const { rows } = await sql<HoldingsColumns>`
    select
      array(select distinct p.pattern from user_role ur join role r on r.document_id = ur.role
        join role_permission p on p.role = r.document_id
        where ur."user" = ${userId} and not r.is_account_scoped order by p.pattern) as patterns,
      array(select distinct p.pattern from user_role ur join role r on r.document_id = ur.role
        join role_permission p on p.role = r.document_id
        where ur."user" = ${userId} and r.is_account_scoped order by p.pattern) as account_patterns,
      array(select m.account from account_member m join account a on a.document_id = m.account
        where m."user" = ${userId} and a.deleted_at is null order by m.account) as accounts`.execute(db)
  const [row] = rows
  return {
    patterns: row?.patterns ?? [],
    accountPatterns: row?.account_patterns ?? [],
    accounts: row?.accounts ?? [],
  }
}
