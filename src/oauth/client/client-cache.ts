import type { AdapterPayload } from 'oidc-provider'
import { buildCache } from '../../base/cache.ts'

/** Most clients of one process. */
const CLIENTS_LIMIT = 5_000

/**
 * Keeps the clients that the provider reads with every request. Triggers send a note `c:<client>` for every change of a
 * client or its secrets, which drops it. Clients are used only while notes are proven to arrive (`Notifier.isProven`).
 */
export interface ClientCache {
  /** The client with this id, kept or else from `read`. */
  find(id: string, read: () => Promise<AdapterPayload | undefined>): Promise<AdapterPayload | undefined>
  /** The client with this id if it is kept and may be used now: the same object until a note drops it. */
  findKept(id: string): AdapterPayload | undefined
  /** Drops what a note names: `c:<client>`, `*` for all. Ignores other notes. */
  apply(note: string): void
}

/** Builds the cache. Calls `isProven` at each use. */
export function buildClientCache(isProven: () => boolean, limit = CLIENTS_LIMIT): ClientCache {
  const clients = buildCache<string, AdapterPayload>({ limit })
  let notes = 0
  const findKept = (id: string) => (isProven() ? clients.find(id) : undefined)
  return {
    findKept,
    find: async (id, read) => {
      const known = findKept(id)
      if (known) return known
      const mark = notes
      const found = await read()
      // A note that arrived during the read may be of a change that the read did not see.
      if (!found || mark !== notes) return found
      clients.put(id, found)
      return found
    },
    apply: (note) => {
      if (note !== '*' && !note.startsWith('c:')) return
      notes += 1
      if (note === '*') clients.clear()
      else clients.drop(note.slice(2))
    },
  }
}
