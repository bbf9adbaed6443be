import type { AccountId, SessionId, UserId } from '../id.ts'

/** Who a bearer token stands for (architecture, words). Read afresh for every request, so a change of a role works at once (D11). */
export interface Caller {
  userId: UserId
  /** The session of the token; null for an API key. */
  sessionId: SessionId | null
  apiKeyId: string | null
  /** The current account of the session, or null. */
  accountId: AccountId | null
  /** Patterns that hold everywhere: `resource:action`, `resource:*` or `*:*`. */
  patterns: readonly string[]
  /** Patterns that hold for the caller's own accounts only (D11, `member`). */
  accountPatterns: readonly string[]
  /** The accounts that the caller belongs to. */
  accounts: readonly AccountId[]
  /** What an API key narrows its owner's permissions to (D14); null when nothing is narrowed. */
  keyPatterns: readonly string[] | null
}

/** How far a permission of a caller goes. */
export type Reach = 'everywhere' | 'own accounts' | 'nowhere'

/** Whether `pattern` covers `permission` (`webhook:create`): itself, `webhook:*` or `*:*` (D11). */
export function matchesPattern(pattern: string, permission: string): boolean {
  if (pattern === '*:*' || pattern === permission) return true
  const resource = permission.slice(0, permission.indexOf(':'))
  return pattern === `${resource}:*`
}

/** How far `caller` may use `permission`. An API key never reaches further than its owner. */
export function findReach(caller: Caller, permission: string): Reach {
  const covers = (pattern: string) => matchesPattern(pattern, permission)
  if (caller.keyPatterns && !caller.keyPatterns.some(covers)) return 'nowhere'
  if (caller.patterns.some(covers)) return 'everywhere'
  if (caller.accountPatterns.some(covers)) return 'own accounts'
  return 'nowhere'
}

/** Whose resources `caller` may list with `permission`: everybody's, or those of its own accounts (D11). */
export function listReachableAccounts(caller: Caller, permission: string): readonly AccountId[] | 'all' {
  return findReach(caller, permission) === 'everywhere' ? 'all' : caller.accounts
}

/** Whether `caller` may use `permission` on what `account` owns. What nobody owns needs a permission that holds everywhere. */
export function canReachAccount(caller: Caller, permission: string, account: AccountId | null): boolean {
  const reach = findReach(caller, permission)
  if (reach === 'everywhere') return true
  return reach === 'own accounts' && account !== null && caller.accounts.includes(account)
}
