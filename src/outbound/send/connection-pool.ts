import { type Connection, type ConnectionOptions, type ConnectionTarget, openConnection } from './connection.ts'
import { buildIdleLimits } from './idle-limit.ts'

/** Limits of idle connections, for one target and in total. Over them the longest idle one is closed. */
export interface IdleCaps {
  perTarget: number
  total: number
}

const DELIVERY_CAPS: IdleCaps = { perTarget: 256, total: 1_024 }

/** A connection that was idle for less than this was last read in this turn of the event loop or shortly before. */
const UNREAD_MS = 100

/** Key of a reusable connection: the origin and the checked addresses, in no order. */
function buildKey({ origin, addresses }: ConnectionTarget): string {
  if (addresses.length === 1) return `${origin} ${addresses[0]!.address}`
  const sorted = addresses.map(({ address }) => address).sort()
  return `${origin} ${sorted.join(' ')}`
}

export interface PooledConnection extends Connection {
  key: string
  origin: string
  /** Start of its idle time (null before its first use has ended), and the length of the previous one. */
  idle: { sinceMs: number | null; beforeMs: number | null }
}

export interface ConnectionPool {
  /** An idle connection to exactly this target, the most recently used first; else a new one. */
  take(target: ConnectionTarget): PooledConnection
  /**
   * Resolves once pending data of the connection that `take` would reuse is read, if that was idle for a while: an
   * unread close would break the POST. Undefined if there is nothing to wait for.
   */
  settle(target: ConnectionTarget): Promise<void> | undefined
  /** Returns a connection whose response was read to its end; over the limits, closes the longest idle one. */
  giveBack(connection: PooledConnection): void
  drop(connection: PooledConnection): void
  /** Reports that the receiver closed a reused connection before an answer: it was idle for too long. */
  noteReset(connection: PooledConnection): void
  /** Idle limit that the receiver announced, in milliseconds. */
  noteAnnounced(connection: PooledConnection, limitMs: number): void
  idleCount(): number
  clear(): void
}

/**
 * Builds the pool. The key consists of the origin and the checked addresses: a connection is reused only for a request
 * whose own look-up returned the addresses it was opened with. Receivers of one origin share connections also when
 * their owners differ: the server behind the origin sees all of their POSTs, and a connection carries one POST at a
 * time. An idle connection that closes, by its time limit or by the receiver, leaves the pool. Its idle time teaches
 * for how long others of its origin may be reused; one that is too old for reuse stays open for this measurement.
 */
export function buildConnectionPool(options: ConnectionOptions, caps: IdleCaps = DELIVERY_CAPS): ConnectionPool {
  const idleByKey = new Map<string, PooledConnection[]>()
  /** In the order in which they became idle. */
  const idle = new Set<PooledConnection>()
  const limits = buildIdleLimits()

  function remove(connection: PooledConnection) {
    if (!idle.delete(connection)) return
    const siblings = idleByKey.get(connection.key)!
    siblings.splice(siblings.indexOf(connection), 1)
    if (siblings.length === 0) idleByKey.delete(connection.key)
  }

  function drop(connection: PooledConnection) {
    remove(connection)
    connection.destroy()
  }

  const measureIdle = ({ idle: { sinceMs } }: PooledConnection) => (sinceMs === null ? 0 : options.now() - sinceMs)

  function open(target: ConnectionTarget, key: string): PooledConnection {
    const { origin } = target
    const connection: PooledConnection = {
      ...openConnection(target, options),
      ...{ key, origin, idle: { sinceMs: null, beforeMs: null } },
    }
    connection.client.on('disconnect', (_origin, _targets, error) => {
      if (!idle.has(connection)) return
      const idleMs = measureIdle(connection)
      // Our own limit closes with this code.
      if ((error as { code?: unknown }).code === 'UND_ERR_INFO') limits.noteOpen(origin, idleMs)
      else limits.noteClosed(origin, idleMs)
      drop(connection)
    })
    return connection
  }

  return {
    settle(target) {
      const kept = idleByKey.get(buildKey(target))?.at(-1)
      if (kept === undefined || measureIdle(kept) < UNREAD_MS) return undefined
      // Timers run before sockets are read, and immediates after them.
      return new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    },
    take(target) {
      const key = buildKey(target)
      // The most recently used one, so the others are older still.
      const kept = idleByKey.get(key)?.at(-1)
      if (kept === undefined || measureIdle(kept) > limits.reuseMs(target.origin)) return open(target, key)
      kept.idle.beforeMs = measureIdle(kept)
      remove(kept)
      return kept
    },
    giveBack(connection) {
      const { beforeMs } = connection.idle
      if (beforeMs !== null) limits.noteOpen(connection.origin, beforeMs)
      connection.idle = { sinceMs: options.now(), beforeMs: null }
      const siblings = idleByKey.get(connection.key) ?? []
      idleByKey.set(connection.key, siblings)
      siblings.push(connection)
      idle.add(connection)
      // The most recently used one is reused first: without this, connections too old for reuse would keep their
      // places.
      if (siblings.length > caps.perTarget) drop(siblings[0]!)
      if (idle.size > caps.total) drop(idle.values().next().value!)
    },
    drop,
    noteReset: ({ origin, idle: { beforeMs } }) => {
      if (beforeMs !== null) limits.noteClosed(origin, beforeMs)
    },
    noteAnnounced: ({ origin }, limitMs) => limits.noteAnnounced(origin, limitMs),
    idleCount: () => idle.size,
    clear: () => {
      for (const connection of [...idle]) drop(connection)
    },
  }
}
