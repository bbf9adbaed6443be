/**
 * Joins the holdings of the user `u` to a statement, as `h`: the patterns of its global roles, those of its
 * account-scoped roles, those of the roles of each membership, and its accounts that are not deleted. They are read
 * with the row of `u`: if the statement locks that row, behind the lock (`user_holdings` in the migrations).
 */
export const HOLDINGS_OF_USER = 'cross join lateral user_holdings(u.document_id) h'

/** The `Holdings` of a user, in a statement with its holdings as `h`. */
export const HOLDINGS = `json_build_object('patterns', h.patterns, 'accountPatterns', h.account_patterns,
    'membershipPatterns', h.membership_patterns, 'accounts', h.accounts) as holdings`
