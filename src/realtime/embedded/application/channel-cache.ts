import { buildCache } from '../../../base/cache.ts'

export interface CachedEvent {
  event: string
  data: string
  expiresAtMs: number
}

/** The last events of an application's cache channels, in memory. */
export interface ChannelCache {
  put(channel: string, event: CachedEvent): void
  find(channel: string, nowMs: number): CachedEvent | undefined
  /** Entries that have not expired, least recently used first. */
  entries(nowMs: number): [channel: string, event: CachedEvent][]
}

/** Builds a cache of at most `limit` channels; the one least recently published in or joined is evicted. */
export function buildChannelCache(limit: number): ChannelCache {
  const kept = buildCache<string, CachedEvent>({ limit })
  return {
    put: (channel, event) => {
      const known = kept.find(channel)
      // Another process may send what it keeps after a newer event arrived.
      if (known && known.expiresAtMs > event.expiresAtMs) return
      kept.put(channel, event)
    },
    find: (channel, nowMs) => {
      const event = kept.find(channel)
      if (event && event.expiresAtMs > nowMs) return event
      kept.drop(channel)
      return undefined
    },
    entries: (nowMs) => kept.entries().filter(([, event]) => event.expiresAtMs > nowMs),
  }
}
