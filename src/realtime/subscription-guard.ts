import type { Clock } from '../clock.ts'
import type { UserId } from '../id.ts'
import { type AccessCheckDeps, checkAccess } from './access-check.ts'
import type { GrantedSubscription } from './granted-access.ts'

/** How long notes are collected: a change of a role may concern many users, and several changes come together. */
export const COLLECT_MS = 50

/** How long after a note a grant of the same user is looked at again: it may have been decided before. */
const LATE_MS = 5_000

/** Wait before users are tried again whose subscriptions could not be ended. */
export const RETRY_MS = 2_000

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
export interface SubscriptionGuardDeps extends AccessCheckDeps {
  clock: Clock
}

/**
 * Builds the guard. It looks again at what users were granted when a trigger notes a change of them: the notes are those
 * that the memory of callers lives by (docs/contract/realtime.md#lost-access). Users who are named come at once, however
 * many a note for all concerns: the look at all of them runs beside it, a page at a time, and never twice at once.
 */
export function buildSubscriptionGuard(deps: SubscriptionGuardDeps): SubscriptionGuard {
  const { grants, clock } = deps
  const stopping = new AbortController()
  const { signal } = stopping
  const noted = new Set<UserId>()
  const seen = buildSeenNotes(clock)

  /** Users keep what they lost until a retry succeeds: the provider may be away. */
  function retry(users: readonly UserId[] | 'all', error: unknown): void {
    const concerned = users === 'all' ? users : users.length
    deps.logger.error(
      { err: error, users: concerned },
      'realtime subscriptions not ended: see docs/operations.md, realtime',
    )
    void clock.sleep(RETRY_MS, signal).then(() => (users === 'all' ? all.start() : note(users)))
  }

  async function check(users: readonly UserId[]): Promise<void> {
    const failed = await checkAccess(deps, users, signal)
    if (failed) retry(failed.users, failed.error)
  }

  const named = buildRounds(clock, signal, async () => {
    const users = [...noted]
    noted.clear()
    await check(users).catch((error: unknown) => retry(users, error))
  })

  const all = buildRounds(clock, signal, async () => {
    try {
      for await (const page of grants.listUsers()) {
        if (signal.aborted) return
        await check(page)
      }
    } catch (error) {
      retry('all', error)
    }
  })

  function note(users: readonly UserId[]): void {
    for (const userId of users) noted.add(userId)
    named.start()
  }

  function noteGrant(userId: UserId): void {
    if (seen.isRecent(userId)) note([userId])
  }

  return {
    remember: async (granted) => {
      await grants.add(granted)
      noteGrant(granted.userId)
    },
    noteGrant,
    apply: (text) => {
      if (text !== '*' && !text.startsWith('u:')) return
      seen.add(text)
      if (text === '*') all.start()
      else note([text.slice('u:'.length) as UserId])
    },
    settled: async () => {
      while (named.working() || all.working()) await Promise.all([named.working(), all.working()])
    },
    stop: () => stopping.abort(),
  }
}

/** Runs `work` some time after `start`; once more where `start` was called while it ran. */
function buildRounds(clock: Clock, signal: AbortSignal, work: () => Promise<void>) {
  let working: Promise<void> | undefined
  let isWanted = false

  async function run(): Promise<void> {
    await clock.sleep(COLLECT_MS, signal)
    while (isWanted && !signal.aborted) {
      isWanted = false
      await work()
    }
    working = undefined
  }

  return {
    working: () => working,
    start: () => {
      isWanted = true
      if (!signal.aborted) working ??= run()
    },
  }
}

/** Remembers for a while whom notes named: a grant that was decided before the change may be made after it. */
function buildSeenNotes(clock: Pick<Clock, 'now'>) {
  const atMs = new Map<string, number>()

  function forgetOld(nowMs: number): void {
    for (const [text, notedAtMs] of atMs) {
      if (nowMs - notedAtMs < LATE_MS) return
      atMs.delete(text)
    }
  }

  const isNew = (text: string) => clock.now() - (atMs.get(text) ?? Number.NEGATIVE_INFINITY) < LATE_MS
  return {
    add: (text: string) => {
      const nowMs = clock.now()
      forgetOld(nowMs)
      // The oldest one stands first.
      atMs.delete(text)
      atMs.set(text, nowMs)
    },
    isRecent: (userId: UserId) => isNew('*') || isNew(`u:${userId}`),
  }
}
