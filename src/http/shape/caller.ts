import type { AccountId, ConnectionId, PortalSessionId, SessionId, UserId } from '../../base/id.ts'

/** Patterns that hold in one account only: those of the roles of a membership (docs/contract/identity.md#account-roles). */
export interface AccountPatterns {
  account: AccountId
  patterns: readonly string[]
}

/** The portal session by which a user acts under an API key (docs/contract/portal.md#sessions). */
export interface PortalVisit {
  id: PortalSessionId
  /** The name that the platform gave the user; null for none. */
  externalUser: string | null
}

/**
 * The account of a user of several accounts that only proven sessions reach
 * (docs/contract/connections.md#members-of-several-accounts).
 */
export interface Narrowing {
  account: AccountId
  /** The connection of the account that proves a session. */
  connection: ConnectionId
  /** The end of the proof of this session; null for a token that lacks the account. */
  provenUntil: Date | null
  /** The patterns that the token lacks in the account. */
  lacking: readonly string[]
  /** The path at which a session is proven; null for an API key, which is not. */
  enterPath: string | null
}

/** Proofs of a session (docs/contract/second-factor.md#step-up). */
export interface SessionProof {
  /** Whether the user has a second factor now. */
  hasFactor: boolean
  /** Whether the session has a proven second factor. */
  isMultiFactor: boolean
  /** Time of the last authentication of the user. */
  provenAt: Date
}

/**
 * The caller of a request: the user of a session, the owner of an API key (docs/contract/identity.md#roles), or the
 * user for whom an app acts (docs/contract/oauth-exchange.md#scope-ceiling).
 */
export interface Caller {
  userId: UserId
  /** The session of the token; null for an API key. */
  sessionId: SessionId | null
  apiKeyId: string | null
  /** The app that acts for the user; null for the user itself and for an API key. */
  clientId: string | null
  /** The current account of the session, or null. */
  accountId: AccountId | null
  /** Patterns that hold everywhere: `resource:action`, `resource:*` or `*:*`. */
  patterns: readonly string[]
  /** Patterns that hold for the caller's own accounts only. */
  accountPatterns: readonly string[]
  /** Patterns that hold in one account each. */
  membershipPatterns: readonly AccountPatterns[]
  accounts: readonly AccountId[]
  /** The patterns of an API key or of an app's scopes, within the user's permissions; else null. */
  ceiling: readonly string[] | null
  /** The account to which an API key is bound; null for any other token. Its patterns hold there only. */
  keyAccount: AccountId | null
  /** The portal session under the API key; absent for other tokens. */
  portal?: PortalVisit
  /** Null for an API key. */
  proof: SessionProof | null
  /** Absent for a user whose tokens reach all of its accounts. */
  narrowing?: Narrowing
  /** Expiry of the token; null for an API key that does not expire. Absent without a token. */
  expiresAt?: Date | null
}

/** The rows that a caller reaches with one permission: all, or those that these accounts own (an empty list: none). */
export type PermissionScope = 'all' | readonly AccountId[]

/** The subject by which a caller's limits are counted; all sessions of a user share one. */
export function nameHolder({ portal, apiKeyId, userId }: Pick<Caller, 'portal' | 'apiKeyId' | 'userId'>): string {
  return portal?.id ?? apiKeyId ?? userId
}

/** The subject of expensive reads: a user, over all of its tokens, or a portal session. */
export function nameReader({ portal, userId }: Pick<Caller, 'portal' | 'userId'>): string {
  return portal?.id ?? userId
}

/** Whether `pattern` covers `permission` (`webhook:create`): itself, `webhook:*` or `*:*`. */
export function matchesPattern(pattern: string, permission: string): boolean {
  if (pattern === '*:*' || pattern === permission) return true
  if (!pattern.endsWith(':*')) return false
  return permission.startsWith(pattern.slice(0, -1))
}

/** Whether the ceiling of `caller` covers `permission`; true without one. Does not consider the user's permissions. */
export function isUnderCeiling(caller: Pick<Caller, 'ceiling'>, permission: string): boolean {
  return caller.ceiling === null || caller.ceiling.some((pattern) => matchesPattern(pattern, permission))
}

/** The scope of `permission` for `caller`, that of a key or an app within its user's; undefined without it. */
export function findPermissionScope(caller: Caller, permission: string): PermissionScope | undefined {
  const covers = (pattern: string) => matchesPattern(pattern, permission)
  if (!isUnderCeiling(caller, permission)) return undefined
  if (caller.patterns.some(covers)) return 'all'
  if (caller.accountPatterns.some(covers)) return caller.accounts
  const accounts = caller.membershipPatterns.flatMap(({ account, patterns }) =>
    patterns.some(covers) ? [account] : [],
  )
  return accounts.length > 0 ? accounts : undefined
}

/** Whether `scope` covers rows of `account`. Rows without an owner (null) are covered by `all` only. */
export function includesAccount(scope: PermissionScope, account: AccountId | null): boolean {
  return scope === 'all' || (account !== null && scope.includes(account))
}

/** Whether `scope` covers all that `other` does. */
export function includesScope(scope: PermissionScope, other: PermissionScope): boolean {
  return scope === 'all' || (other !== 'all' && other.every((account) => scope.includes(account)))
}
