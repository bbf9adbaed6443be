import { buildCache } from '../../base/cache.ts'

/** Limit of reuse for an unknown origin, in milliseconds. */
const UNKNOWN_REUSE_MS = 1_000
/** No connection is reused after this: common servers close at 5 s. */
const LONGEST_REUSE_MS = 4_000
/** Fraction of a known idle limit after which a connection is not reused: the receiver's timer started earlier. */
const REUSED_SHARE = 0.5
const RAISE = 1.5
const ORIGINS = 4_096

/** Learns the idle limit of each receiver, so that a POST does not meet a closing connection. */
export interface IdleLimits {
  /** Idle time up to which a connection to this origin may be reused, in milliseconds. */
  reuseMs(origin: string): number
  /** Reports that the receiver closed a connection after this many idle milliseconds, or reset a POST after them. */
  noteClosed(origin: string, idleMs: number): void
  /** Reports that a connection idle for this long was still open. */
  noteOpen(origin: string, idleMs: number): void
  /** Reports the idle limit that the receiver announced (`Keep-Alive: timeout`). */
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
      // A lower limit counts at once; several servers behind one origin differ, and the lowest decides.
      const limitMs = learned.find(origin) ?? Number.POSITIVE_INFINITY
      learned.put(origin, Math.min(idleMs, limitMs * RAISE))
    },
    noteOpen: (origin, idleMs) => {
      const limitMs = learned.find(origin)
      // For an unknown origin it is informative only beyond the default.
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
