import type { AccountId } from '../../base/id.ts'
import type { AccountPatterns } from '../../http/shape/caller.ts'
import type { Holdings } from './delegation.ts'

/**
 * Joins the holdings of the user `u` to a statement, as `h`: the patterns of its global roles, those of its account-scoped
 * roles, those of the roles of each membership, and its accounts that are not deleted. They are read when the row of `u` is
 * there: where the statement locks that row, behind the lock (`user_holdings` in the migrations).
 */
export const HOLDINGS_OF_USER = 'cross join lateral user_holdings(u.document_id) h'

/** The columns of `HOLDINGS_OF_USER`. */
export const HOLDINGS_COLUMNS = 'h.patterns, h.account_patterns, h.membership_patterns, h.accounts'

/** The same as one member, for a row that has members of these names. */
export const HELD = 'to_json(h) as held'

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
