import { type Connection, type ConnectionOptions, type ConnectionTarget, openConnection } from './connection.ts'

/** Limits of idle connections, for one target and in total. The caller limits the connections in use. */
const MAX_IDLE_PER_TARGET = 256
const MAX_IDLE_TOTAL = 1_024

/** A connection with its key in the pool. */
export interface PooledConnection extends Connection {
  key: string
}

/** Reuses connections between POSTs. */
export interface ConnectionPool {
  /** An idle connection to exactly this target, the most recently used first; else a new one. */
  take(target: ConnectionTarget): PooledConnection
  /** Returns a connection whose response was read to its end; closes it over the limits. */
  giveBack(connection: PooledConnection): void
  /** Ends a connection that is in use. */
  drop(connection: PooledConnection): void
  /** The number of idle connections. */
  idleCount(): number
  /** Ends every idle connection. */
  clear(): void
}

/**
 * Builds the pool. The key consists of the origin and the checked addresses: a connection is reused only for a POST whose
 * own look-up returned the addresses it was opened with. Receivers of one origin share connections also when their owners
 * differ: the server behind the origin sees all of their POSTs, and a connection carries one POST at a time. An idle
 * connection that closes, by its time limit or by the receiver, leaves the pool.
 */
export function buildConnectionPool(options: ConnectionOptions): ConnectionPool {
  const idleByKey = new Map<string, PooledConnection[]>()
  /** In the order in which they became idle. */
  const idle = new Set<PooledConnection>()

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

  function open(target: ConnectionTarget, key: string): PooledConnection {
    const connection = { ...openConnection(target, options), key }
    connection.client.on('disconnect', () => {
      if (idle.has(connection)) drop(connection)
    })
    return connection
  }

  return {
    take(target) {
      const addresses = target.addresses.map(({ address }) => address).sort()
      const key = `${target.origin} ${addresses.join(' ')}`
      const kept = idleByKey.get(key)?.at(-1)
      if (kept === undefined) return open(target, key)
      remove(kept)
      return kept
    },
    giveBack(connection) {
      const siblings = idleByKey.get(connection.key) ?? []
      if (siblings.length >= MAX_IDLE_PER_TARGET) return connection.destroy()
      idleByKey.set(connection.key, siblings)
      siblings.push(connection)
      idle.add(connection)
      if (idle.size > MAX_IDLE_TOTAL) drop(idle.values().next().value!)
    },
    drop,
    idleCount: () => idle.size,
    clear: () => {
      for (const connection of [...idle]) drop(connection)
    },
  }
}
