import type pg from 'pg'
import type { ClientInternals } from './pool-client.ts'

/** Number of consecutive failed connections that opens the breaker. */
const FAILURES_LIMIT = 3

/** Maximum number of callers that wait for a connection of a pool; further ones are refused at once. */
const WAITING_LIMIT = 1_000

/** Report of the guard of a pool, for metrics. */
export interface PoolState {
  /** Whether callers are refused at once because the last connections failed. */
  isOpen: boolean
  /** Number of callers refused at once. */
  refused: number
  /** Number of connections whose server did not answer within the silence limit. */
  silent: number
  connections: number
  waiting: number
}

/** Pools on the same network path: a fault of one applies to all. */
export type Siblings = Set<(sinceMs: number) => void>

/** Provides the connections of a pool. */
export interface PoolGuard {
  /** A connection of the pool. Rejects at once, with a `RefusedError`, while the breaker is open or too many wait. */
  connect(): Promise<pg.PoolClient>
  isResting(client: pg.ClientBase): boolean
  /** Reports a dead connection, with the length of its silence. */
  noteSilent(silenceMs: number): void
  read(): PoolState
}

/** A refusal without a connection attempt: the database does not answer, or too many callers wait for it. */
class RefusedError extends Error {
  readonly code = 'DATABASE_REFUSED'
}

/**
 * Builds the guard of a pool.
 *
 * Breaker: after `FAILURES_LIMIT` connections that failed in a row, callers are refused at once, and one of them at a time
 * tries. A connection that opens, or that comes back alive, closes it.
 *
 * Distrust: connections on a broken path stay silent, and each would hold its first caller for the silence
 * limit. When one is found dead, those that received nothing since before its last sign of life are closed, in all sibling
 * pools: idle ones, and those in use, whose own limit may be longer.
 */
export function guardPool(
  pool: pg.Pool,
  { siblings = new Set(), isUnavailable }: { siblings?: Siblings; isUnavailable: (error: unknown) => boolean },
): PoolGuard {
  /** Start of the idle time of each connection. */
  const resting = new Map<pg.ClientBase, number>()
  /** Start of the use of each other connection, and the bytes it had received before. */
  const used = new Map<pg.ClientBase, { sinceMs: number; bytesRead: number }>()
  const dead = new WeakSet<pg.ClientBase>()
  let failures = 0
  let refused = 0
  let silent = 0
  /** The connection of the trial caller, or `connecting`. */
  let probe: pg.ClientBase | 'connecting' | undefined

  const isOpen = () => failures >= FAILURES_LIMIT
  const noteAlive = () => {
    failures = 0
    probe = undefined
  }

  siblings.add((sinceMs) => {
    for (const [client, restingSinceMs] of resting) if (restingSinceMs <= sinceMs) endConnection(client)
    for (const [client, use] of used)
      if (use.sinceMs <= sinceMs && use.bytesRead === streamOf(client).bytesRead) endConnection(client)
  })

  // pg reports a connection that breaks in use through the failing query. Between two statements of a transaction the
  // client has no other listener, and an unhandled error event ends the process.
  pool.on('connect', (client) => {
    client.on('error', () => dead.add(client))
    noteAlive()
  })
  pool.on('acquire', (client) => {
    resting.delete(client)
    used.set(client, { sinceMs: performance.now(), bytesRead: streamOf(client).bytesRead })
  })
  pool.on('release', (error, client) => {
    used.delete(client)
    if (probe === client) probe = undefined
    if (error || dead.has(client)) return
    resting.set(client, performance.now())
    noteAlive()
  })
  pool.on('remove', (client) => resting.delete(client))
  pool.on('error', (_error, client) => resting.delete(client))

  async function connect(): Promise<pg.PoolClient> {
    const isProbe = isOpen() && probe === undefined
    if ((isOpen() && !isProbe) || pool.waitingCount >= WAITING_LIMIT) {
      refused += 1
      throw new RefusedError(
        isOpen() ? 'the database did not answer the last callers' : 'too many wait for the database',
      )
    }
    if (isProbe) probe = 'connecting'
    try {
      const client = await pool.connect()
      if (isProbe && isOpen()) probe = client
      return client
    } catch (error) {
      if (isProbe) probe = undefined
      // A server without a free connection is reachable.
      if (isUnavailable(error) && !String((error as { code?: unknown }).code).startsWith('53')) failures += 1
      throw error
    }
  }

  return {
    connect,
    isResting: (client) => resting.has(client),
    noteSilent: (silenceMs) => {
      silent += 1
      failures += 1
      const sinceMs = performance.now() - silenceMs
      for (const distrust of siblings) distrust(sinceMs)
    },
    read: () => ({ isOpen: isOpen(), refused, silent, connections: pool.totalCount, waiting: pool.waitingCount }),
  }
}

const streamOf = (client: pg.ClientBase) => (client as unknown as ClientInternals).connection.stream

function endConnection(client: pg.ClientBase): void {
  streamOf(client).destroy(Object.assign(new Error('closed with a connection that was dead'), { code: 'ETIMEDOUT' }))
}
