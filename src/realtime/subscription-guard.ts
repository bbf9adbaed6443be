import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { type Caller, includesAccount } from '../http/caller.ts'
import type { AccountId, UserId } from '../id.ts'
import { listJoinable } from './channel-access.ts'

/** Users whose subscriptions one process remembers; beyond, those that were granted longest ago are forgotten. */
const USERS_LIMIT = 50_000

/** How long notes are collected: a change of a role may concern many users, and several changes come together. */
export const COLLECT_MS = 50

/** A subscription that was granted. */
export interface GrantedSubscription {
  userId: UserId
  channel: string
  account: AccountId
  socketId: string
}

/** Ends what a user may not have any more. */
export interface SubscriptionEnds {
  /** Notes for whom a subscription was granted; undefined where the provider learns it from the sign-in alone. */
  permit?: (granted: GrantedSubscription) => Promise<void>
  /** Ends one subscription; undefined where the provider can only end whole connections. */
  endSubscription?: (subscription: { userId: UserId; channel: string }) => Promise<void>
  /** Ends all connections of a user. */
  endConnections: (userId: UserId) => Promise<void>
}

/** Ends the subscriptions of who loses a membership, the permission, or is disabled. */
export interface SubscriptionGuard {
  remember(granted: GrantedSubscription): Promise<void>
  /** Takes the note of a change: `u:<user>`, or `*` for a change that may concern all. Others are ignored. */
  apply(note: string): void
  /** Resolves when all that was noted is done. */
  settled(): Promise<void>
}

/** What a guard is built from. */
export interface SubscriptionGuardDeps {
  /** What the user may do now; undefined when it is disabled or gone. */
  readCaller: (userId: UserId) => Promise<Caller | undefined>
  ends: SubscriptionEnds
  clock: Clock
  logger: Logger
}

/**
 * Builds the guard. It remembers what this process granted, and looks again at what a user may join when a trigger notes a
 * change of it: the notes are those that the memory of callers lives by (docs/contract/realtime.md#lost-access).
 */
export function buildSubscriptionGuard(deps: SubscriptionGuardDeps): SubscriptionGuard {
  const { ends, logger } = deps
  const granted = new Map<UserId, Map<string, AccountId>>()
  const noted = new Set<UserId>()
  let working: Promise<void> | undefined

  async function check(userId: UserId): Promise<void> {
    const channels = granted.get(userId)
    if (!channels) return
    const caller = await deps.readCaller(userId)
    const scope = caller ? listJoinable(caller) : []
    const lost = [...channels].filter(([, account]) => !includesAccount(scope, account)).map(([channel]) => channel)
    if (lost.length === 0) return
    if (!caller || !ends.endSubscription) await ends.endConnections(userId)
    else for (const channel of lost) await ends.endSubscription({ userId, channel })
    for (const channel of lost) channels.delete(channel)
    if (channels.size === 0) granted.delete(userId)
    logger.info({ user: userId, channels: lost.length }, 'realtime subscriptions ended: the user lost its access')
  }

  async function work(): Promise<void> {
    await deps.clock.sleep(COLLECT_MS)
    for (const userId of noted) {
      noted.delete(userId)
      await check(userId).catch((error: unknown) => {
        logger.error({ err: error, user: userId }, 'realtime subscriptions not ended: see docs/operations.md, realtime')
      })
    }
    working = undefined
  }

  return {
    remember: async (one) => {
      const { userId, channel, account } = one
      const channels = granted.get(userId) ?? new Map<string, AccountId>()
      granted.delete(userId)
      granted.set(userId, channels.set(channel, account))
      const [oldest] = granted.keys()
      if (granted.size > USERS_LIMIT && oldest !== undefined) granted.delete(oldest)
      await ends.permit?.(one)
    },
    apply: (note) => {
      if (note === '*') for (const userId of granted.keys()) noted.add(userId)
      else if (note.startsWith('u:') && granted.has(note.slice(2) as UserId)) noted.add(note.slice(2) as UserId)
      if (noted.size > 0) working ??= work()
    },
    settled: async () => {
      while (working) await working
    },
  }
}
