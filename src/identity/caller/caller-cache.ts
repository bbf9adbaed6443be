import { buildCache } from '../../base/cache.ts'
import type { UserId } from '../../base/id.ts'

/** Most entries of one process. */
const ENTRIES_LIMIT = 20_000

/** An entry for a token: the caller, and the expiry of its session or key. */
export interface HeldCaller<Caller> {
  caller: Caller
  userId: UserId
  /** `s:<session>` or `k:<API key>`, as in the notes of the triggers. */
  note: string
  expiresAt: Date | null
}

/**
 * Caches callers by token. Triggers send a note for every change of the rows that make up a caller (session, API key,
 * user, roles, memberships), and `apply` drops the entries that the note names. Entries are used only while the notifier
 * proves that notes arrive (`Notifier.isProven`).
 */
export interface CallerCache<Caller> {
  /** The caller under `key`, while notes are proven to arrive and the session or key has not expired. */
  find(key: string, now: Date): Caller | undefined
  /** A mark to take before a read: `hold` drops the result when a note arrived after the mark. */
  mark(): number
  /** Caches a result that was read after `mark`, unless a note arrived since. */
  hold(key: string, held: HeldCaller<Caller>, mark: number): void
  /** Drops the entries of `note`: `s:<session>`, `k:<API key>`, `u:<user>`, `*` for all. Ignores other notes. */
  apply(note: string): void
}

/** Builds the cache. Calls `isProven` at each use. */
export function buildCallerCache<Caller>(isProven: () => boolean, limit = ENTRIES_LIMIT): CallerCache<Caller> {
  /** The cache keys by the name in a note. */
  const keysOf = new Map<string, Set<string>>()
  const entries = buildCache<string, HeldCaller<Caller>>({ limit, onGone: forget })
  let notes = 0

  function index(note: string, key: string): void {
    const keys = keysOf.get(note)
    if (keys) keys.add(key)
    else keysOf.set(note, new Set([key]))
  }

  function forget(key: string, held: HeldCaller<Caller>): void {
    for (const note of [held.note, `u:${held.userId}`]) {
      const keys = keysOf.get(note)
      keys?.delete(key)
      if (keys?.size === 0) keysOf.delete(note)
    }
  }

  return {
    find: (key, now) => {
      const held = entries.find(key)
      if (!held || !isProven()) return undefined
      if (held.expiresAt !== null && held.expiresAt <= now) {
        entries.drop(key)
        return undefined
      }
      return held.caller
    },
    mark: () => notes,
    hold: (key, held, mark) => {
      if (mark !== notes) return
      entries.put(key, held)
      index(held.note, key)
      index(`u:${held.userId}`, key)
    },
    apply: (note) => {
      notes += 1
      if (note === '*') {
        // First, so that nothing is looked up for each entry.
        keysOf.clear()
        entries.clear()
        return
      }
      for (const key of [...(keysOf.get(note) ?? [])]) entries.drop(key)
    },
  }
}
