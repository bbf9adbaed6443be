import type { AccountId, UserId } from '../../base/id.ts'
import type { TokenName } from '../../identity/caller/token-life.ts'

export interface GrantedToken {
  name: TokenName
  userId: UserId
  /** Time of the next check: the expiry of its JWT or key. Null for a key without one. */
  endsAt: Date | null
}

/** A granted subscription; with `channel` and `account` null a sign-in of a connection. */
export interface GrantedSubscription {
  userId: UserId
  channel: string | null
  account: AccountId | null
  socketId: string
  token: Omit<GrantedToken, 'userId'> | undefined
}

export type GrantedChannels = ReadonlyMap<string, AccountId>

export type AskedTokens = readonly TokenName[] | { endBy: Date }

export interface GrantedAccess {
  /** Records a grant. Resolves when other processes can find it. */
  add(granted: GrantedSubscription): Promise<void>
  /** Grants of these users; users without any may be omitted. */
  list(users: readonly UserId[]): Promise<ReadonlyMap<UserId, GrantedChannels>>
  /** All users with grants, a page at a time. */
  listUsers(): AsyncIterable<readonly UserId[]>
  forget(userId: UserId, channels: readonly string[]): Promise<void>
  /** Those of these tokens with grants, or some of those to check by a time. */
  findTokens(asked: AskedTokens): Promise<readonly GrantedToken[]>
  /** All tokens with grants, a page at a time. */
  listTokens(): AsyncIterable<readonly GrantedToken[]>
  extendToken(token: GrantedToken): Promise<void>
  /** Ends the grants of tokens, and deletes them. The connections of the users in `ended` are already closed. */
  endTokens(tokens: readonly GrantedToken[], ended: ReadonlySet<UserId>): Promise<void>
}
