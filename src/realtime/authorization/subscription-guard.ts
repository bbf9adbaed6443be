import type { Clock } from '../../base/clock.ts'
import type { UserId } from '../../base/id.ts'
import { isTokenName, listTokenNames, type TokenName } from '../../identity/caller/token-life.ts'
import type { Invalidation } from '../../postgres/connection/invalidated-cache.ts'
import { type AccessCheckDeps, checkAccess } from './access-check.ts'
import type { GrantedSubscription, GrantedToken } from './granted-access.ts'
import { checkTokens, type TokenCheckDeps } from './token-check.ts'

/** Time for which invalidations are collected: several changes come together, and one may affect many users. */
export const COLLECT_MS = 50

/** Time after an invalidation in which a grant of the same user is checked again: it may have been decided before. */
const LATE_MS = 5_000

/** Interval between checks for expired tokens. Less than the second in which their subscriptions must end. */
const DUE_EVERY_MS = 800

/** Wait before a retry for users whose subscriptions could not be ended. */
export const RETRY_MS = 2_000

const NOBODY: ReadonlySet<UserId> = new Set()

/** Ends the subscriptions of users who lose a membership, permission, session or API key, or are disabled. */
export interface SubscriptionGuard {
  remember(granted: GrantedSubscription): Promise<void>
  /** Receives an invalidation: a user, a session or an API key, or `*` for all. Others are ignored. */
  invalidate(change: Invalidation): void
  noteGrant(userId: UserId, token?: string): void
  /** Checks each second for expired tokens, until stopped. */
  run(): Promise<void>
  /** Resolves when all received invalidations are handled. */
  settled(): Promise<void>
  stop(): void
}

export interface SubscriptionGuardDeps extends AccessCheckDeps, TokenCheckDeps {
  clock: Clock
}

/**
 * Builds the guard. It checks the grants of users again when a trigger reports a change: the invalidations are those of
 * the cache of callers (docs/contract/realtime.md#lost-access). Named users are checked at once; the check of all users
 * runs concurrently, a page at a time, and never twice at once.
 */
export function buildSubscriptionGuard(deps: SubscriptionGuardDeps): SubscriptionGuard {
  const { grants, clock } = deps
  const stopping = new AbortController()
  const { signal } = stopping
  const noted = new Set<UserId>()
  const notedTokens = new Set<TokenName>()
  const seen = buildSeenNotes(clock)

  function report(error: unknown): void {
    if (signal.aborted) return
    deps.logger.error({ err: error }, 'realtime subscriptions not ended: see docs/operations.md, realtime')
  }

  /** Users keep what they lost until a retry succeeds: the provider may be away. */
  function retry(users: readonly UserId[] | 'all', error: unknown): void {
    const concerned = users === 'all' ? users : users.length
    deps.logger.error(
      { err: error, users: concerned },
      'realtime subscriptions not ended: see docs/operations.md, realtime',
    )
    void clock.sleep(RETRY_MS, signal).then(() => (users === 'all' ? all.start() : note(users)))
  }

  /** Returns the users whose connections were ended. */
  async function check(users: readonly UserId[]): Promise<ReadonlySet<UserId>> {
    const ended = new Set<UserId>()
    const endConnections = async (userId: UserId) => {
      await deps.ends.endConnections(userId)
      ended.add(userId)
    }
    const failed = await checkAccess({ ...deps, ends: { ...deps.ends, endConnections } }, users, signal)
    if (failed) retry(failed.users, failed.error)
    return ended
  }

  async function lookAtTokens(find: () => Promise<readonly GrantedToken[]>, ended: ReadonlySet<UserId>): Promise<void> {
    await checkTokens(deps, await find(), { ended, now: new Date(clock.now()) })
  }

  const named = buildRounds(clock, signal, async () => {
    const [users, names] = [[...noted], [...notedTokens]]
    noted.clear()
    notedTokens.clear()
    const ended = await check(users).catch((error: unknown) => {
      retry(users, error)
      return NOBODY
    })
    await lookAtTokens(async () => (names.length > 0 ? grants.findTokens(names) : []), ended).catch(
      (error: unknown) => {
        report(error)
        void clock.sleep(RETRY_MS, signal).then(() => noteTokens(names))
      },
    )
  })

  const all = buildRounds(clock, signal, async () => {
    try {
      for await (const page of grants.listUsers()) {
        if (signal.aborted) return
        await check(page)
      }
      for await (const page of grants.listTokens()) {
        if (signal.aborted) return
        await lookAtTokens(async () => page, NOBODY)
      }
    } catch (error) {
      retry('all', error)
    }
  })

  function noteTokens(names: readonly TokenName[]): void {
    for (const name of names.flatMap(listTokenNames)) notedTokens.add(name)
    if (names.length > 0) named.start()
  }

  function note(users: readonly UserId[]): void {
    for (const userId of users) noted.add(userId)
    named.start()
  }

  function noteGrant(userId: UserId, token?: string): void {
    if (seen.isRecent(`u:${userId}`)) note([userId])
    if (token !== undefined && isTokenName(token) && listTokenNames(token).some(seen.isRecent)) noteTokens([token])
  }

  return {
    remember: async (granted) => {
      await grants.add(granted)
      noteGrant(granted.userId, granted.token?.name)
    },
    noteGrant,
    invalidate: (text) => {
      const isToken = isTokenName(text)
      if (text !== '*' && !isToken && !text.startsWith('u:')) return
      seen.add(text)
      if (isToken) return noteTokens([text])
      if (text === '*') all.start()
      else note([text.slice('u:'.length) as UserId])
    },
    run: async () => {
      while (!signal.aborted) {
        await clock.sleep(DUE_EVERY_MS, signal)
        if (signal.aborted) return
        const endBy = new Date(clock.now())
        // The next check finds them again.
        await lookAtTokens(() => grants.findTokens({ endBy }), NOBODY).catch(report)
      }
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

/** Stores recently invalidated users: a grant decided before the change may be made after it. */
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
      // The oldest one is first.
      atMs.delete(text)
      atMs.set(text, nowMs)
    },
    isRecent: (text: string) => isNew('*') || isNew(text),
  }
}
