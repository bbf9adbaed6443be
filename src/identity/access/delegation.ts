import type { AccountId, UserId } from '../../base/id.ts'
import { type Missing, Problem } from '../../http/problem/problem.ts'
import type { AccountPatterns, Caller } from '../../http/shape/caller.ts'
import { coversPattern } from './pattern.ts'

/**
 * The rule of delegation: a caller grants or removes only permissions that its token holds in the same scope. Roles,
 * memberships, API keys and changes of other users apply it.
 */

/** Scope of a pattern: everywhere, or the rows of one account. */
export type Place = 'everywhere' | AccountId

/** A pattern at a place. */
export interface Grant {
  pattern: string
  place: Place
}

/** The permissions of a user by its roles and memberships. */
export interface Holdings {
  /** Patterns of global roles. They hold everywhere. */
  patterns: readonly string[]
  /** Patterns of account-scoped roles of the user. They hold in `accounts`. */
  accountPatterns: readonly string[]
  /** Patterns of the roles of each membership. They hold in its account. */
  membershipPatterns: readonly AccountPatterns[]
  /** The accounts of the user that are not deleted. */
  accounts: readonly AccountId[]
}

/** The permissions of a token: the holdings of its user, narrowed by `ceiling` for an API key and for an app. */
export type CallerHoldings = Pick<
  Caller,
  'patterns' | 'accountPatterns' | 'membershipPatterns' | 'accounts' | 'ceiling'
>

/** The permissions of a role. */
export interface RoleScope {
  patterns: readonly string[]
  isAccountScoped: boolean
}

const isCovered = (held: readonly string[], pattern: string) => held.some((item) => coversPattern(item, pattern))
const at = (place: Place, patterns: readonly string[]): Grant[] => patterns.map((pattern) => ({ pattern, place }))

/** Whether `caller` holds `grant`. */
export function holdsGrant(caller: CallerHoldings, grant: Grant): boolean {
  const { pattern, place } = grant
  if (caller.ceiling !== null && !isCovered(caller.ceiling, pattern)) return false
  if (isCovered(caller.patterns, pattern)) return true
  if (place === 'everywhere') return false
  if (caller.accounts.includes(place) && isCovered(caller.accountPatterns, pattern)) return true
  return caller.membershipPatterns.some((item) => item.account === place && isCovered(item.patterns, pattern))
}

/** Lists of patterns: the caller holds one in `account` if some pattern of every list covers it (`holdsGrant`). */
export function listHoldingsAt(caller: CallerHoldings, account: AccountId): string[][] {
  const { patterns, accountPatterns, membershipPatterns, accounts, ceiling } = caller
  const held = [
    ...patterns,
    ...(accounts.includes(account) ? accountPatterns : []),
    ...membershipPatterns.flatMap((item) => (item.account === account ? item.patterns : [])),
  ]
  return ceiling === null ? [held] : [held, [...ceiling]]
}

/** The first of `grants` that `caller` does not hold. */
export function findMissingGrant(caller: CallerHoldings, grants: readonly Grant[]): Grant | undefined {
  return grants.find((grant) => !holdsGrant(caller, grant))
}

/** All permissions of a user: global ones everywhere, account-scoped ones in its accounts, those of memberships. */
export function listGrants(holdings: Holdings): Grant[] {
  const { patterns, accountPatterns, membershipPatterns, accounts } = holdings
  return [
    ...at('everywhere', patterns),
    ...accounts.flatMap((account) => at(account, accountPatterns)),
    ...membershipPatterns.flatMap((pattern) => at(pattern.account, pattern.patterns)),
  ]
}

/** The grants of a role by itself. Any user may get it, so its patterns count everywhere, also account-scoped ones. */
export function listRoleGrants(role: RoleScope): Grant[] {
  return at('everywhere', role.patterns)
}

/**
 * The grants of a role for a user with `accounts`. An account-scoped role of a user without an account counts
 * everywhere, because the account where it takes effect is not known yet.
 */
export function listGivenGrants(role: RoleScope, accounts: readonly AccountId[]): Grant[] {
  if (!role.isAccountScoped || accounts.length === 0) return listRoleGrants(role)
  return accounts.flatMap((account) => at(account, role.patterns))
}

/** The grants of a role of a membership in `account`. */
export function listMemberRoleGrants(role: Pick<RoleScope, 'patterns'>, account: AccountId): Grant[] {
  return at(account, role.patterns)
}

/** The grants of a user's membership: of its account-scoped roles, and of the roles of the membership. */
export function listMembershipGrants(
  holdings: Pick<Holdings, 'accountPatterns' | 'membershipPatterns'>,
  account: AccountId,
): Grant[] {
  const own = holdings.membershipPatterns.filter((pattern) => pattern.account === account)
  return [...at(account, holdings.accountPatterns), ...own.flatMap(({ patterns }) => at(account, patterns))]
}

/** The patterns that two lists have in common: of each pair that overlap, the narrower one. */
export function intersectPatterns(some: readonly string[], others: readonly string[]): string[] {
  return [
    ...new Set([
      ...some.filter((pattern) => isCovered(others, pattern)),
      ...others.filter((pattern) => isCovered(some, pattern)),
    ]),
  ]
}

/** The holdings of an API key with `keyPatterns`. */
export function narrowHoldings(holdings: Holdings, keyPatterns: readonly string[]): Holdings {
  const narrow = (patterns: readonly string[]) => intersectPatterns(keyPatterns, patterns)
  return {
    patterns: narrow(holdings.patterns),
    accountPatterns: narrow(holdings.accountPatterns),
    membershipPatterns: holdings.membershipPatterns.map(({ account, patterns }) => ({
      account,
      patterns: narrow(patterns),
    })),
    accounts: holdings.accounts,
  }
}

/** The holdings of a key bound to `account`: its user's permissions there, and none elsewhere. */
export function bindHoldings(holdings: Holdings, account: AccountId): Holdings {
  const isMember = holdings.accounts.includes(account)
  const ofMembership = holdings.membershipPatterns.filter((pattern) => pattern.account === account)
  const patterns = [
    ...holdings.patterns,
    ...(isMember ? holdings.accountPatterns : []),
    ...ofMembership.flatMap((item) => item.patterns),
  ]
  return {
    patterns: [],
    accountPatterns: [],
    membershipPatterns: patterns.length > 0 ? [{ account, patterns }] : [],
    accounts: isMember ? [account] : [],
  }
}

/** The patterns that a token holds in `account`. */
export function listHeldPatterns(caller: CallerHoldings, account: AccountId): string[] {
  const bound = bindHoldings(caller, account)
  const held = caller.ceiling === null ? bound : narrowHoldings(bound, caller.ceiling)
  return [...new Set(held.membershipPatterns.flatMap(({ patterns }) => patterns))]
}

/** The first of `patterns` that a key of `caller` cannot hold. It may hold one of accounts only, limited to them. */
export function findUnheldKeyPattern(caller: CallerHoldings, patterns: readonly string[]): string | undefined {
  const { ceiling } = caller
  const ofMemberships = caller.membershipPatterns.flatMap(({ patterns }) => patterns)
  const held = [...caller.patterns, ...caller.accountPatterns, ...ofMemberships]
  return patterns.find((pattern) => !isCovered(held, pattern) || (ceiling !== null && !isCovered(ceiling, pattern)))
}

function describePlace(place: Place): string {
  return place === 'everywhere' ? 'everywhere' : `in the account ${place}`
}

/** Checks that `caller` holds all of `grants`. `action` completes "You cannot ...". Throws 403 `permission_denied`. */
export function checkHoldsGrants(caller: CallerHoldings, grants: readonly Grant[], action: string): void {
  const missing = findMissingGrant(caller, grants)
  if (missing === undefined) return
  const text = `You cannot ${action}: this needs ${missing.pattern} ${describePlace(missing.place)}, which your token does not hold.`
  throw new Problem('permission_denied', text, { missing: describeMissing(caller, missing) })
}

/** Missing part of an assignment: the permission itself, or the account where it is needed. Pure. */
function describeMissing(caller: CallerHoldings, { pattern, place }: Grant): Missing {
  const isHeldSomewhere = findUnheldKeyPattern(caller, [pattern]) === undefined
  const account = place === 'everywhere' ? {} : { account: place }
  if (!isHeldSomewhere) return { what: 'permission', permission: pattern, ...account }
  return { what: place === 'everywhere' ? 'scope' : 'account', permission: pattern, ...account }
}

/** Checks that a key of `caller` may hold `patterns`, in `account` or wherever `caller` holds them. Throws 403. */
export function checkMayMakeKey(caller: CallerHoldings, patterns: readonly string[], account: AccountId | null): void {
  const held = account === null ? caller : { ...bindHoldings(caller, account), ceiling: caller.ceiling }
  const missing = findUnheldKeyPattern(held, patterns)
  if (missing === undefined) return
  const where = account === null ? '' : ` in the account ${account}`
  const text = `A key cannot hold ${missing}${where}, which your token does not hold.`
  const grant = { pattern: missing, place: account ?? ('everywhere' as const) }
  throw new Problem('permission_denied', text, { missing: describeMissing(caller, grant) })
}

/** Checks that `caller` holds, in `account`, what a role of these patterns opens in its portal. Throws 403. */
export function checkMayOpenPortal(caller: CallerHoldings, account: AccountId, patterns: readonly string[]): void {
  checkHoldsGrants(caller, at(account, patterns), 'open the portal with this role')
}

/** Checks that `caller` holds, in the same scopes, what a user to change holds. Throws 403 `permission_denied`. */
export function checkMayManageUser(caller: CallerHoldings, holdings: Holdings): void {
  checkHoldsGrants(caller, listGrants(holdings), 'change this user')
}

/** Checks that `caller` may revoke a key, of a user with these holdings. Throws 403 `permission_denied`. */
export function checkMayEndKey(
  caller: CallerHoldings & Pick<Caller, 'userId'>,
  key: { userId: UserId; patterns: readonly string[]; account: AccountId | null; holdings: Holdings },
): void {
  if (key.userId === caller.userId && caller.ceiling === null) return
  const holdings = key.account === null ? key.holdings : bindHoldings(key.holdings, key.account)
  checkHoldsGrants(caller, listGrants(narrowHoldings(holdings, key.patterns)), 'revoke this key')
}

/** Checks that `caller` may add a user with these holdings to the account, or remove it there. Throws 403. */
export function checkMayChangeMember(
  caller: CallerHoldings,
  holdings: Holdings,
  member: { account: AccountId; action: 'add this member' | 'remove this member' },
): void {
  checkHoldsGrants(caller, listMembershipGrants(holdings, member.account), member.action)
}
