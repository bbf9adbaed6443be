import type pg from 'pg'
import {
  type DatabasePool,
  INDEX_PLANS,
  openDatabase,
  REQUEST_LOCK_LIMIT_MS,
} from '../../../src/postgres/statement/database.ts'

/** A pool that several tests use in turn. */
export interface KeptPool {
  database: DatabasePool
  /**
   * Ends the use by a test: takes its session settings, locks, channels and temporary tables from every connection, and
   * returns their server processes. Undefined when the test ended or watches the pool, left a statement in flight, or
   * opened more than `CONNECTIONS_LIMIT`: the pool is then of no further use.
   */
  rest(): Promise<number[] | undefined>
  /** Ends all connections. */
  close(): Promise<void>
}

/** Makes the session of a connection as it was when it was opened, except that its statements stay prepared. */
const FORGET_SESSION = 'reset all; unlisten *; discard temp; select pg_advisory_unlock_all()'

/** A machine that many share may take seconds to start a process of the server. */
export const TEST_CONNECT_LIMIT_MS = 60_000

/** The events of a pool by which a test can watch it. */
const POOL_EVENTS = ['connect', 'acquire', 'release', 'remove', 'error'] as const

/** Connections of a pool that is kept: those of all processes of tests must leave room on the server. */
const CONNECTIONS_LIMIT = 5

/**
 * `pool.query`, which keeps the connection of a statement that the server refuses: that of pg ends it, and the next one has
 * every plan to make again.
 */
function buildQuery(pool: pg.Pool) {
  return async (...input: Parameters<pg.PoolClient['query']>): Promise<unknown> => {
    const client = await pool.connect()
    let broken: Error | undefined
    try {
      return await client.query(...input)
    } catch (error) {
      // The text may have begun a transaction.
      await client.query('rollback').catch((fault: Error) => {
        broken = fault
      })
      throw error
    } finally {
      client.release(broken)
    }
  }
}

/** Opens a pool on a database of a test, with the settings of the requests. */
export function openKeptPool(connectionString: string, size: number): KeptPool {
  const database = openDatabase({
    connectionString,
    size,
    settings: INDEX_PLANS,
    applicationName: 'signalbox test',
    lockTimeoutMs: REQUEST_LOCK_LIMIT_MS,
    connectLimitMs: TEST_CONNECT_LIMIT_MS,
    onError: () => {},
  })
  const { pool } = database
  Object.assign(pool, { query: buildQuery(pool) })
  const clients = new Set<pg.PoolClient>()
  pool.on('connect', (client) => clients.add(client))
  pool.on('remove', (client) => clients.delete(client))
  const countListeners = () => POOL_EVENTS.map((event) => pool.listenerCount(event)).join()
  const listeners = countListeners()
  const isIdle = () =>
    !pool.ending && pool.waitingCount === 0 && pool.idleCount === pool.totalCount && clients.size === pool.totalCount
  const forget = async () => {
    if (!isIdle() || clients.size > CONNECTIONS_LIMIT || countListeners() !== listeners) return undefined
    await Promise.all([...clients].map((client) => client.query(FORGET_SESSION)))
    if (!isIdle()) return undefined
    // A process of tests does not wait for these connections to end. The pool refers to one again when it gives it out.
    const opened = [...clients] as unknown as { unref(): void; processID: number }[]
    for (const client of opened) client.unref()
    return opened.map((client) => client.processID)
  }
  return {
    database,
    rest: () => forget().catch(() => undefined),
    close: async () => {
      if (!pool.ended) await database.close()
      // Kysely does not end a pool that it never used.
      if (!pool.ended) await pool.end()
    },
  }
}
