import type { AccountId, UserId } from '../id.ts'

/** A subscription that was granted. */
export interface GrantedSubscription {
  userId: UserId
  channel: string
  account: AccountId
  socketId: string
}

/** What a user was granted: the account of each channel. */
export type GrantedChannels = ReadonlyMap<string, AccountId>

/** Who was granted what, whichever process granted it. */
export interface GrantedAccess {
  /** Notes a grant. Resolves when it would be found without this process. */
  add(granted: GrantedSubscription): Promise<void>
  /** What these users were granted; users without anything may be left out. */
  list(users: readonly UserId[]): Promise<ReadonlyMap<UserId, GrantedChannels>>
  /** All users that were granted something, some at a time. */
  listUsers(): AsyncIterable<readonly UserId[]>
  /** Forgets what a user has lost. */
  forget(userId: UserId, channels: readonly string[]): Promise<void>
}
