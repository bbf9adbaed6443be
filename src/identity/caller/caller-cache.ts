import type { UserId } from '../../base/id.ts'
import type { Caller } from '../../http/shape/caller.ts'
import {
  buildInvalidatedCache,
  type InvalidatedCache,
  type Invalidation,
} from '../../postgres/connection/invalidated-cache.ts'

/** Maximum number of cached callers of one process. */
const CALLERS_LIMIT = 20_000

/** A caller as its token found it. */
export interface CachedCaller {
  caller: Caller
  userId: UserId
  /** The invalidations of the token: of its session, its API key, and the portal session under it. */
  tokenChanges: readonly Invalidation[]
  /** The expiry of the session or key, or the time of the next write of its last use. */
  expiresAt: Date
}

/** Callers by token. A change of the session, the API key, the user, its roles or its accounts drops them. */
export type CallerCache = InvalidatedCache<CachedCaller>

/** Builds the cache. `isLive`: whether the connection that reports changes is live. */
export function buildCallerCache(isLive: () => boolean): CallerCache {
  return buildInvalidatedCache({
    limit: CALLERS_LIMIT,
    isLive,
    changesOf: (_token, { tokenChanges, userId }) => [...tokenChanges, `u:${userId}`],
    expiryOf: ({ expiresAt }) => expiresAt,
  })
}
