import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { type Caller, includesAccount } from '../http/caller.ts'
import type { UserId } from '../id.ts'
import { listJoinable } from './channel-access.ts'
import type { GrantedAccess, GrantedChannels, GrantedSubscription } from './granted-access.ts'

/** How long notes are collected: a change of a role may concern many users, and several changes come together. */
export const COLLECT_MS = 50

/** How long after a note a grant of the same user is looked at again: it may have been decided before. */
const LATE_MS = 5_000

/** Wait before a user is tried again whose subscriptions could not be ended. */
export const RETRY_MS = 2_000

/** Ends what a user may not have any more. */
export interface SubscriptionEnds {
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
  /** Takes a grant that another process made. */
  noteGrant(userId: UserId): void
  /** Resolves when all that was noted is done. */
  settled(): Promise<void>
  stop(): void
}

/** What a guard is built from. */
export interface SubscriptionGuardDeps {
  /** What the user may do now; undefined when it is disabled or gone. */
  readCaller: (userId: UserId) => Promise<Caller | undefined>
  grants: GrantedAccess
  ends: SubscriptionEnds
  clock: Clock
  logger: Logger
}

/**
 * Builds the guard. It looks again at what users were granted when a trigger notes a change of them: the notes are those
 * that the memory of callers lives by (docs/contract/realtime.md#lost-access).
 */
export function buildSubscriptionGuard(deps: SubscriptionGuardDeps): SubscriptionGuard {
  const { grants, ends, clock, logger } = deps
  const stopping = new AbortController()
  const noted = new Set<UserId>()
  const notedAtMs = new Map<UserId, number>()
  let allNotedAtMs = Number.NEGATIVE_INFINITY
  let isAllNoted = false
  let working: Promise<void> | undefined

  async function check(userId: UserId, channels: GrantedChannels): Promise<void> {
    const caller = await deps.readCaller(userId)
    const scope = caller ? listJoinable(caller) : []
    const lost = [...channels].filter(([, account]) => !includesAccount(scope, account)).map(([channel]) => channel)
    if (caller && lost.length === 0) return
    if (!caller || !ends.endSubscription) await ends.endConnections(userId)
    else for (const channel of lost) await ends.endSubscription({ userId, channel })
    await grants.forget(userId, lost)
    logger.info({ user: userId, channels: lost.length }, 'realtime subscriptions ended: the user lost its access')
  }

  async function checkAll(users: readonly UserId[]): Promise<void> {
    for (const [userId, channels] of await grants.list(users)) {
      if (stopping.signal.aborted) return
      await check(userId, channels).catch((error: unknown) => retry([userId], error))
    }
  }

  /** The user keeps what it lost until a retry succeeds: the provider may be away. */
  function retry(users: readonly UserId[] | 'all', error: unknown): void {
    logger.error({ err: error, users }, 'realtime subscriptions not ended: see docs/operations.md, realtime')
    void clock.sleep(RETRY_MS, stopping.signal).then(() => {
      if (users === 'all') isAllNoted = true
      else for (const userId of users) noted.add(userId)
      start()
    })
  }

  async function work(): Promise<void> {
    await clock.sleep(COLLECT_MS, stopping.signal)
    while ((isAllNoted || noted.size > 0) && !stopping.signal.aborted) {
      const [wasAllNoted, users] = [isAllNoted, [...noted]]
      isAllNoted = false
      noted.clear()
      try {
        if (users.length > 0) await checkAll(users)
        if (wasAllNoted) for await (const page of grants.listUsers()) await checkAll(page)
      } catch (error) {
        retry(wasAllNoted ? 'all' : users, error)
      }
    }
    working = undefined
  }

  function start(): void {
    if (!stopping.signal.aborted) working ??= work()
  }

  function forgetNotes(nowMs: number): void {
    for (const [userId, atMs] of notedAtMs) {
      if (nowMs - atMs < LATE_MS) return
      notedAtMs.delete(userId)
    }
  }

  function noteGrant(userId: UserId): void {
    const atMs = Math.max(allNotedAtMs, notedAtMs.get(userId) ?? Number.NEGATIVE_INFINITY)
    if (clock.now() - atMs >= LATE_MS) return
    noted.add(userId)
    start()
  }

  return {
    remember: async (granted) => {
      await grants.add(granted)
      noteGrant(granted.userId)
    },
    noteGrant,
    apply: (note) => {
      const nowMs = clock.now()
      forgetNotes(nowMs)
      if (note === '*') {
        allNotedAtMs = nowMs
        isAllNoted = true
      } else if (note.startsWith('u:')) {
        const userId = note.slice(2) as UserId
        notedAtMs.delete(userId)
        notedAtMs.set(userId, nowMs)
        noted.add(userId)
      } else return
      start()
    },
    settled: async () => {
      while (working) await working
    },
    stop: () => stopping.abort(),
  }
}
