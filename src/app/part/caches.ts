import type { AdapterPayload } from 'oidc-provider'
import { listSubscribedTypes } from '../../event/occurrence/event.store.ts'
import { buildReadSubscriptions, type ReadSubscriptions } from '../../event/occurrence/read-subscriptions.ts'
import type { AccountLimits } from '../../identity/account/limit/account-limit.store.ts'
import { buildCallerCache, type CallerCache } from '../../identity/caller/caller-cache.ts'
import {
  buildInvalidatedCache,
  type InvalidatedCache,
  type Invalidation,
} from '../../postgres/connection/invalidated-cache.ts'
import type { Database } from '../../postgres/statement/database.ts'

/** The caches of this process, which changes invalidate. */
export interface Caches {
  callers: CallerCache
  /** The clients that the provider reads with every request. */
  clients: InvalidatedCache<AdapterPayload>
  limits: InvalidatedCache<AccountLimits>
  reads: ReadSubscriptions
  invalidate: (change: Invalidation) => void
}

const ACCOUNTS_LIMIT = 20_000

const CLIENTS_LIMIT = 5_000

/** Builds the caches. `isLive`: whether the connection that reports changes is live. */
export function buildCaches(db: Database, isLive: () => boolean): Caches {
  const callers = buildCallerCache(isLive)
  const clients = buildInvalidatedCache<AdapterPayload>({
    limit: CLIENTS_LIMIT,
    isLive,
    changesOf: (id) => [`c:${id}`],
  })
  const limits = buildInvalidatedCache<AccountLimits>({
    limit: ACCOUNTS_LIMIT,
    isLive,
    changesOf: (account) => [`l:${account}`],
  })
  const reads = buildReadSubscriptions({ isLive, list: () => listSubscribedTypes(db) })
  const invalidate = (change: Invalidation) => {
    for (const cache of [callers, clients, limits, reads]) cache.invalidate(change)
  }
  return { callers, clients, limits, reads, invalidate }
}
