import { buildInvalidatedCache, type InvalidatedCache } from '../../postgres/connection/invalidated-cache.ts'

/** The event types of reads with a subscriber, cached (docs/contract/events.md#events-of-reads). */
export interface ReadSubscriptions extends Pick<InvalidatedCache<unknown>, 'invalidate'> {
  /** Whether some active webhook subscribes to `eventType`. */
  has(eventType: string): boolean | Promise<boolean>
}

/** The key of the only entry. */
const ALL = ''

/** Builds it. `list` reads the event types from the database. */
export function buildReadSubscriptions(options: {
  isLive: () => boolean
  list: () => Promise<string[]>
}): ReadSubscriptions {
  const { isLive, list } = options
  const cache = buildInvalidatedCache<ReadonlySet<string>>({ limit: 1, isLive, changesOf: () => ['r'] })
  const read = async (eventType: string) => (await cache.read(ALL, async () => new Set(await list()))).has(eventType)
  return {
    has: (eventType) => cache.find(ALL)?.has(eventType) ?? read(eventType),
    invalidate: cache.invalidate,
  }
}
