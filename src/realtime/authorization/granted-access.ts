import type { AccountId, UserId } from '../../base/id.ts'
import type { TokenName } from '../../identity/caller/token-life.ts'

/** A session or API key with which something was granted. */
export interface GrantedToken {
  name: TokenName
  userId: UserId
  /** Time of the next check: the expiry of its JWT or key. Null for a key without one. */
  endsAt: Date | null
}

/** A subscription that was granted, or with `channel` and `account` null a sign-in of a connection. */
export interface GrantedSubscription {
  userId: UserId
  channel: string | null
  account: AccountId | null
  socketId: string
  token: Omit<GrantedToken, 'userId'> | undefined
}

/** Channels that a user was granted, each with its account. */
export type GrantedChannels = ReadonlyMap<string, AccountId>

/** Selection of tokens. */
export type AskedTokens = readonly TokenName[] | { endBy: Date }

/** The authorizations of users, of all processes. */
export interface GrantedAccess {
  /** Notes a grant. Resolves when it would be found without this process. */
  add(granted: GrantedSubscription): Promise<void>
  /** Grants of these users; users without any may be omitted. */
  list(users: readonly UserId[]): Promise<ReadonlyMap<UserId, GrantedChannels>>
  /** All users that were granted something, some at a time. */
  listUsers(): AsyncIterable<readonly UserId[]>
  /** Forgets what a user has lost. */
  forget(userId: UserId, channels: readonly string[]): Promise<void>
  /** Those of these tokens with grants, or some of those to check by a time. */
  findTokens(asked: AskedTokens): Promise<readonly GrantedToken[]>
  /** All tokens with which something was granted, some at a time. */
  listTokens(): AsyncIterable<readonly GrantedToken[]>
  /** Notes until when a token serves. */
  extendToken(token: GrantedToken): Promise<void>
  /** Ends the grants of tokens, and deletes them. The connections of the users in `ended` are already closed. */
  endTokens(tokens: readonly GrantedToken[], ended: ReadonlySet<UserId>): Promise<void>
}
