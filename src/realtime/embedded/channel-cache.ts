/** The last event of a cache channel. */
export interface CachedEvent {
  event: string
  data: string
  expiresAtMs: number
}

/** The last events of an application's cache channels, in memory. */
export interface ChannelCache {
  put(channel: string, event: CachedEvent): void
  find(channel: string, nowMs: number): CachedEvent | undefined
  /** What has not expired, oldest first. */
  entries(nowMs: number): [channel: string, event: CachedEvent][]
}

/** Builds a cache of at most `limit` channels; the one whose event is oldest makes room. */
export function buildChannelCache(limit: number): ChannelCache {
  const kept = new Map<string, CachedEvent>()
  return {
    put: (channel, event) => {
      const known = kept.get(channel)
      // Another process may send what it keeps after a newer event arrived.
      if (known && known.expiresAtMs > event.expiresAtMs) return
      kept.delete(channel)
      kept.set(channel, event)
      for (const oldest of kept.keys()) {
        if (kept.size <= limit) break
        kept.delete(oldest)
      }
    },
    find: (channel, nowMs) => {
      const event = kept.get(channel)
      if (event && event.expiresAtMs > nowMs) return event
      kept.delete(channel)
      return undefined
    },
    entries: (nowMs) => [...kept].filter(([, event]) => event.expiresAtMs > nowMs),
  }
}
