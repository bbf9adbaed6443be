import type { AccountPatterns } from '../http/caller.ts'
import type { AccountId } from '../id.ts'
import type { Holdings } from './delegation.ts'

/**
 * The holdings of the user `u` as columns of a statement: the patterns of its global roles, those of its account-scoped
 * roles, those of the roles of each membership, and its accounts that are not deleted.
 */
export const HOLDINGS_COLUMNS = `
  array(select distinct p.pattern from user_role ur
    join role r on r.document_id = ur.role join role_permission p on p.role = r.document_id
    where ur."user" = u.document_id and not r.is_account_scoped order by p.pattern) as patterns,
  array(select distinct p.pattern from user_role ur
    join role r on r.document_id = ur.role join role_permission p on p.role = r.document_id
    where ur."user" = u.document_id and r.is_account_scoped order by p.pattern) as account_patterns,
  array(select json_build_object('account', m.account, 'patterns', array_agg(distinct p.pattern order by p.pattern))
    from account_member m join account a on a.document_id = m.account
    join account_member_role mr on mr.member = m.document_id
    join role r on r.document_id = mr.role join role_permission p on p.role = r.document_id
    where m."user" = u.document_id and a.deleted_at is null and r.is_account_scoped
    group by m.account order by m.account) as membership_patterns,
  array(select m.account from account_member m join account a on a.document_id = m.account
    where m."user" = u.document_id and a.deleted_at is null order by m.account) as accounts`

/** A row with `HOLDINGS_COLUMNS`. */
export interface HoldingsRow {
  patterns: string[]
  account_patterns: string[]
  membership_patterns: AccountPatterns[]
  accounts: string[]
}

/** Maps `HOLDINGS_COLUMNS`. */
export function toHoldings(row: HoldingsRow): Holdings & {
  patterns: string[]
  accountPatterns: string[]
  membershipPatterns: AccountPatterns[]
  accounts: AccountId[]
} {
  return {
    patterns: row.patterns,
    accountPatterns: row.account_patterns,
    membershipPatterns: row.membership_patterns,
    accounts: row.accounts as AccountId[],
  }
}
