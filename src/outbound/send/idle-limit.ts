import { buildCache } from '../../base/cache.ts'

/** Reuse of a connection to an origin of which nothing is known ends after this, in milliseconds. */
const UNKNOWN_REUSE_MS = 1_000
/** No connection is reused after this: common servers close at 5 s. */
const LONGEST_REUSE_MS = 4_000
/** The share of a known idle limit after which a connection is not reused: the receiver's clock started before ours. */
const REUSED_SHARE = 0.5
/** How fast a limit that a receiver has raised, or that was taken too low, is raised. */
const RAISE = 1.5
/** Most origins that are remembered. */
const ORIGINS = 4_096

/** Learns for how long each receiver keeps a connection that nobody uses, so that a POST does not meet a closing one. */
export interface IdleLimits {
  /** For how long an idle connection to this origin may be reused, in milliseconds. */
  reuseMs(origin: string): number
  /** The receiver closed a connection after this many idle milliseconds, or reset a POST that came after them. */
  noteClosed(origin: string, idleMs: number): void
  /** A connection that was idle for this long was open. */
  noteOpen(origin: string, idleMs: number): void
  /** The receiver said how long it keeps connections (`Keep-Alive: timeout`). */
  noteAnnounced(origin: string, limitMs: number): void
}

/** Builds the memory of one pool. */
export function buildIdleLimits(): IdleLimits {
  /** In milliseconds. */
  const learned = buildCache<string, number>({ limit: ORIGINS })
  return {
    reuseMs: (origin) => {
      const limitMs = learned.find(origin)
      return limitMs === undefined ? UNKNOWN_REUSE_MS : Math.min(LONGEST_REUSE_MS, REUSED_SHARE * limitMs)
    },
    noteClosed: (origin, idleMs) => {
      // A low one counts at once; several servers behind one origin differ, and the lowest decides.
      const limitMs = learned.find(origin) ?? Number.POSITIVE_INFINITY
      learned.put(origin, Math.min(idleMs, limitMs * RAISE))
    },
    noteOpen: (origin, idleMs) => {
      const limitMs = learned.find(origin)
      // Of an origin that nothing is known of it says something only beyond what is taken for granted.
      const known = limitMs ?? UNKNOWN_REUSE_MS / REUSED_SHARE
      if (idleMs > known) learned.put(origin, limitMs === undefined ? idleMs : Math.min(idleMs, known * RAISE))
    },
    noteAnnounced: (origin, limitMs) => {
      const known = learned.find(origin)
      if (known === undefined || limitMs < known) learned.put(origin, limitMs)
    },
  }
}

/** The limit that a `Keep-Alive` header announces (RFC 9112 leaves it to RFC 2068, 19.7.1), in milliseconds. */
export function readKeepAlive(value: string | string[] | undefined): number | undefined {
  const text = Array.isArray(value) ? value[0] : value
  const seconds = /(?:^|[,; ])timeout=(\d{1,6})(?:$|[,; ])/i.exec(text?.slice(0, 256) ?? '')?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}
