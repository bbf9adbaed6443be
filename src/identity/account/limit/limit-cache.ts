import { buildCache } from '../../../base/cache.ts'
import type { AccountId } from '../../../base/id.ts'
import type { AccountLimits } from './account-limit.store.ts'

/** Most accounts of one process. */
const ACCOUNTS_LIMIT = 20_000

/**
 * Keeps the limits of accounts, which each publication of a tenant is judged by. A trigger sends a note `l:<account>` for
 * every change of them, which drops it. They are used only while notes are proven to arrive (`Notifier.isProven`).
 */
export interface LimitCache {
  /** The limits of this account, kept or else from `read`. */
  find(account: AccountId, read: () => Promise<AccountLimits>): Promise<AccountLimits>
  /** Drops what a note names: `l:<account>`, `*` for all. Ignores other notes. */
  apply(note: string): void
}

/** Builds the cache. Calls `isProven` at each use. */
export function buildLimitCache(isProven: () => boolean, limit = ACCOUNTS_LIMIT): LimitCache {
  const limits = buildCache<string, AccountLimits>({ limit })
  let notes = 0
  return {
    find: async (account, read) => {
      const known = isProven() ? limits.find(account) : undefined
      if (known) return known
      const mark = notes
      const found = await read()
      // A note that arrived during the read may be of a change that the read did not see.
      if (mark !== notes) return found
      limits.put(account, found)
      return found
    },
    apply: (note) => {
      if (note !== '*' && !note.startsWith('l:')) return
      notes += 1
      if (note === '*') limits.clear()
      else limits.drop(note.slice(2))
    },
  }
}
