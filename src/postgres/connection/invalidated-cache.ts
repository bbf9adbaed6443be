import { buildCache } from '../../base/cache.ts'

/**
 * Change that makes cached values stale, as the trigger of the changed row reports it (`invalidate` in the migrations): a session
 * (`s`), an API key (`k`), a portal session (`v`), a user (`u`), an OAuth client (`c`), the limits of an account (`l`), the subscriptions to reads
 * (`r`), the provisioning targets (`t`), what is queued for them (`p`), a row that a webhook may pull (`w`), the cell of an account (`a`), or everything.
 */
export type Invalidation = '*' | 'r' | 't' | 'p' | `${'s' | 'k' | 'v' | 'u' | 'c' | 'l' | 'w' | 'a'}:${string}`

/** Parses the report of triggers: names of changes, comma-separated; the empty text for none. */
export function readInvalidations(text: string): Invalidation[] {
  return text === '' ? [] : (text.split(',') as Invalidation[])
}

/** Rows that a process keeps while its listening connection is live: no change before the last second is missed. */
export interface InvalidatedCache<Value> {
  /** The cached value; undefined when there is none, when it has expired at `now`, and while the connection is not live. */
  find(key: string, now?: Date): Value | undefined
  /** The cached value, or else what `read` returns, which is cached unless a change was reported during the read. */
  read<Read extends Value | undefined>(key: string, read: () => Promise<Read>, now?: Date): Promise<Value | Read>
  /** The cached values, and what `read` returns for all keys without one: a single read, cached as by `read`. */
  readAll(
    keys: readonly string[],
    read: (missing: readonly string[]) => Promise<ReadonlyMap<string, Value>>,
  ): Promise<ReadonlyMap<string, Value>>
  /** Drops the entries that the change made stale. Ignores changes of uncached rows. */
  invalidate(change: Invalidation): void
}

export interface InvalidatedCacheOptions<Value> {
  limit: number
  /** Called at each use. */
  isLive: () => boolean
  /** The changes that make an entry stale. */
  changesOf: (key: string, value: Value) => readonly Invalidation[]
  expiryOf?: (value: Value) => Date | null
}

/** Builds an empty cache. */
export function buildInvalidatedCache<Value extends {}>(
  options: InvalidatedCacheOptions<Value>,
): InvalidatedCache<Value> {
  const { limit, isLive, changesOf, expiryOf = () => null } = options
  const entries = buildCache<string, Value>({ limit, onGone: forget })
  const keysOf = new Map<Invalidation, Set<string>>()
  let changes = 0

  function forget(key: string, value: Value): void {
    for (const change of changesOf(key, value)) {
      const keys = keysOf.get(change)
      keys?.delete(key)
      if (keys?.size === 0) keysOf.delete(change)
    }
  }

  function put(key: string, value: Value): void {
    entries.put(key, value)
    for (const change of changesOf(key, value)) {
      const keys = keysOf.get(change)
      if (keys) keys.add(key)
      else keysOf.set(change, new Set([key]))
    }
  }

  function find(key: string, now?: Date): Value | undefined {
    const value = entries.find(key)
    if (value === undefined || !isLive()) return undefined
    const expiresAt = expiryOf(value)
    if (expiresAt === null || now === undefined || expiresAt > now) return value
    entries.drop(key)
    return undefined
  }

  return {
    find,
    read: async (key, read, now) => {
      const cached = find(key, now)
      if (cached !== undefined) return cached
      const before = changes
      const value = await read()
      // The read may have missed a change that was reported during it.
      if (value !== undefined && before === changes) put(key, value)
      return value
    },
    readAll: async (keys, read) => {
      const values = new Map<string, Value>()
      const missing = new Set<string>()
      for (const key of keys) {
        const cached = find(key)
        if (cached === undefined) missing.add(key)
        else values.set(key, cached)
      }
      if (missing.size === 0) return values
      const before = changes
      for (const [key, value] of await read([...missing])) {
        values.set(key, value)
        if (before === changes) put(key, value)
      }
      return values
    },
    invalidate: (change) => {
      changes += 1
      if (change === '*') {
        // Checked first, to avoid a look-up for each entry.
        keysOf.clear()
        entries.clear()
        return
      }
      for (const key of [...(keysOf.get(change) ?? [])]) entries.drop(key)
    },
  }
}
