import { LRUCache } from 'lru-cache'
import type { Clock } from './clock.ts'

/**
 * Bounded cache of one process, by key. Beyond the limit, the entry that was used
 * longest ago makes room. Every operation takes the same time, however many entries there are.
 */
export interface Cache<Key, Value> {
  /** The value under this key, which is used by that. */
  find(key: Key): Value | undefined
  /** Keeps a value, in the place of the one that was under its key. */
  put(key: Key, value: Value): void
  /** Forgets the value under this key. */
  drop(key: Key): void
  /** Forgets all. */
  clear(): void
  /** How many values are kept. */
  count(): number
  /** All that is kept, used longest ago first; none is used by that. */
  entries(): [Key, Value][]
}

/** Options of a cache. */
export interface CacheOptions<Key, Value> {
  /** Most entries. */
  limit: number
  /** Called for each entry that makes room, is dropped, cleared or replaced. */
  onGone?: (key: Key, value: Value) => void
}

/** The share of each entry in the limit. */
const ONE = { size: 1 }

/** Builds an empty cache. */
export function buildCache<Key extends {}, Value extends {}>({
  limit,
  onGone,
}: CacheOptions<Key, Value>): Cache<Key, Value> {
  // Of `max` entries the library would take the memory at once: 0.4 MB for 20,000. By size it takes what the entries need.
  const kept = new LRUCache<Key, Value>({
    maxSize: limit,
    ...(onGone && { dispose: (value: Value, key: Key) => onGone(key, value) }),
  })
  return {
    find: (key) => kept.get(key),
    put: (key, value) => void kept.set(key, value, ONE),
    drop: (key) => void kept.delete(key),
    clear: () => kept.clear(),
    count: () => kept.size,
    entries: () => [...kept.rentries()] as [Key, Value][],
  }
}

/** A cache whose values serve for a time of their own. */
export interface TimedCache<Key, Value> {
  /** The value under this key, which is used by that; undefined when its time is over. */
  find(key: Key): Value | undefined
  /** Keeps a value for `lifeMs` from now. A clock that goes back by more ends its time, too. */
  put(key: Key, value: Value, lifeMs: number): void
}

/** Builds an empty cache whose times are judged by `clock`. */
export function buildTimedCache<Key extends {}, Value>(options: {
  limit: number
  clock: Pick<Clock, 'now'>
}): TimedCache<Key, Value> {
  const { limit, clock } = options
  const kept = buildCache<Key, { value: Value; sinceMs: number; lifeMs: number }>({ limit })
  return {
    find: (key) => {
      const entry = kept.find(key)
      if (!entry) return undefined
      if (Math.abs(clock.now() - entry.sinceMs) < entry.lifeMs) return entry.value
      kept.drop(key)
      return undefined
    },
    put: (key, value, lifeMs) => kept.put(key, { value, sinceMs: clock.now(), lifeMs }),
  }
}
