import { type Connection, type ConnectionOptions, type ConnectionTarget, openConnection } from './connection.ts'
import { buildIdleLimits } from './idle-limit.ts'

/** Limits of idle connections, for one target and in total. The caller limits the connections in use. */
const MAX_IDLE_PER_TARGET = 256
const MAX_IDLE_TOTAL = 1_024

/** A connection with its key in the pool. */
export interface PooledConnection extends Connection {
  key: string
  origin: string
  /** Since when it has been idle; while it is in use, for how long it had been. Null before its first use ended. */
  idle: { sinceMs: number | null; beforeMs: number | null }
}

/** Reuses connections between POSTs. */
export interface ConnectionPool {
  /** An idle connection to exactly this target, the most recently used first; else a new one. */
  take(target: ConnectionTarget): PooledConnection
  /** Returns a connection whose response was read to its end; closes it over the limits. */
  giveBack(connection: PooledConnection): void
  /** Ends a connection that is in use. */
  drop(connection: PooledConnection): void
  /** The receiver closed a reused connection before an answer: it was idle for too long. */
  noteReset(connection: PooledConnection): void
  /** What the receiver said of its idle limit, in milliseconds. */
  noteAnnounced(connection: PooledConnection, limitMs: number): void
  /** The number of idle connections. */
  idleCount(): number
  /** Ends every idle connection. */
  clear(): void
}

/**
 * Builds the pool. The key consists of the origin and the checked addresses: a connection is reused only for a POST whose
 * own look-up returned the addresses it was opened with. Receivers of one origin share connections also when their owners
 * differ: the server behind the origin sees all of their POSTs, and a connection carries one POST at a time. An idle
 * connection that closes, by its time limit or by the receiver, leaves the pool. For how long it was open says for how
 * long others of its origin may be reused; one that is too old for that stays open to tell.
 */
export function buildConnectionPool(options: ConnectionOptions): ConnectionPool {
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
    take(target) {
      const addresses = target.addresses.map(({ address }) => address).sort()
      const key = `${target.origin} ${addresses.join(' ')}`
      // The one that was used last, so the others are older still.
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
      if (siblings.length >= MAX_IDLE_PER_TARGET) return connection.destroy()
      idleByKey.set(connection.key, siblings)
      siblings.push(connection)
      idle.add(connection)
      if (idle.size > MAX_IDLE_TOTAL) drop(idle.values().next().value!)
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
