import { type Connection, type ConnectionOptions, type ConnectionTarget, openConnection } from './connection.ts'

/** Most idle connections kept to one target, and in all. Those in use are as many as POSTs run: their bound is the caller's. */
const MAX_IDLE_PER_TARGET = 256
const MAX_IDLE_TOTAL = 1_024

/** A connection with its place in the pool. */
export interface PooledConnection extends Connection {
  key: string
}

/** Keeps connections between POSTs. */
export interface ConnectionPool {
  /** An idle connection to this very target, the last used first; else a new one. */
  take(target: ConnectionTarget, poolKey: string): PooledConnection
  /** Keeps a connection whose response was read to its end, unless there are enough. */
  giveBack(connection: PooledConnection): void
  /** Ends a connection that is in use. */
  drop(connection: PooledConnection): void
  /** How many connections are idle. */
  idleCount(): number
  /** Ends every idle connection. */
  clear(): void
}

/**
 * Builds the pool. The key holds the origin, the checked addresses and what the caller adds (the webhook): a kept connection only ever serves
 * a POST whose own look-up gave the addresses it was made with. One connection carries one POST, so none waits behind another.
 * An idle connection that closes, by its own time limit or by the receiver, leaves the pool by itself.
 */
export function buildConnectionPool(options: ConnectionOptions): ConnectionPool {
  const idleByKey = new Map<string, PooledConnection[]>()
  /** In the order they became idle. */
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
    take(target, poolKey) {
      const addresses = target.addresses.map(({ address }) => address).sort()
      const key = `${poolKey} ${target.origin} ${addresses.join(' ')}`
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
