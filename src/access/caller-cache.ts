import type { UserId } from '../id.ts'

/** Entries that one process holds at most; the one that was used longest ago makes room. */
const ENTRIES_LIMIT = 20_000

/** What is held for a token: the caller, and until when the session or key lasts. */
export interface HeldCaller<Caller> {
  caller: Caller
  userId: UserId
  /** `s:<session>` or `k:<API key>`, as the triggers note a change of it. */
  note: string
  expiresAt: Date | null
}

/**
 * Callers by token, as they were read from the database. Nothing is held beyond a change: triggers note every change of
 * what a caller is made of (session, API key, user, roles, memberships), and `apply` drops what the note names. Whether
 * notes arrive at all is the notifier's to prove (`Notifier.isProven`); without a proof nothing that is held counts.
 */
export interface CallerCache<Caller> {
  /** The caller under `key`, when notes are proven to arrive and the session or key has not expired. */
  find(key: string, now: Date): Caller | undefined
  /** A mark of now. What was read before a note arrived is not held after it: pass the mark from before the read. */
  mark(): number
  /** Holds what was read since `mark`, unless a note arrived meanwhile. */
  hold(key: string, held: HeldCaller<Caller>, mark: number): void
  /** Drops what `note` names: `s:<session>`, `k:<API key>`, `u:<user>`, `*` for all. Other notes are not about callers. */
  apply(note: string): void
}

/** Builds the cache. `isProven` is asked at each use. */
export function buildCallerCache<Caller>(isProven: () => boolean, limit = ENTRIES_LIMIT): CallerCache<Caller> {
  const entries = new Map<string, HeldCaller<Caller>>()
  /** The keys under which a noted thing is held. */
  const keysOf = new Map<string, Set<string>>()
  let notes = 0

  function index(note: string, key: string): void {
    const keys = keysOf.get(note)
    if (keys) keys.add(key)
    else keysOf.set(note, new Set([key]))
  }

  function drop(key: string): void {
    const held = entries.get(key)
    if (!held) return
    entries.delete(key)
    for (const note of [held.note, `u:${held.userId}`]) {
      const keys = keysOf.get(note)
      keys?.delete(key)
      if (keys?.size === 0) keysOf.delete(note)
    }
  }

  return {
    find: (key, now) => {
      const held = entries.get(key)
      if (!held || !isProven()) return undefined
      if (held.expiresAt !== null && held.expiresAt <= now) {
        drop(key)
        return undefined
      }
      // Last in the order of the map: the first one is the one that was used longest ago.
      entries.delete(key)
      entries.set(key, held)
      return held.caller
    },
    mark: () => notes,
    hold: (key, held, mark) => {
      if (mark !== notes) return
      drop(key)
      const oldest = entries.size >= limit ? entries.keys().next().value : undefined
      if (oldest !== undefined) drop(oldest)
      entries.set(key, held)
      index(held.note, key)
      index(`u:${held.userId}`, key)
    },
    apply: (note) => {
      notes += 1
      if (note === '*') {
        entries.clear()
        keysOf.clear()
        return
      }
      for (const key of [...(keysOf.get(note) ?? [])]) drop(key)
    },
  }
}
