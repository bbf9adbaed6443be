import { Socket } from 'node:net'
import { Kysely, sql, type Transaction } from 'kysely'
import pg from 'pg'
import { systemClock } from '../clock.ts'
import { writeRest } from './closing.ts'
import { buildDialect, isStalePlan } from './dialect.ts'
import type { DB } from './tables.generated.ts'
import { parseUtcTimestamp } from './timestamp.ts'

/** The database or a transaction: stores accept either. */
export type Database = Kysely<DB>

/** A connection pool and its disposer. */
export interface DatabasePool {
  db: Database
  /** The pool, for statements that need a connection of their own (locks, LISTEN). */
  pool: pg.Pool
  close(): Promise<void>
}

// The driver returns int8 as text. Counts and totals here stay far below 2^53, so numbers are safe.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

const parseAnyTimestamp = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ)

pg.types.setTypeParser(
  pg.types.builtins.TIMESTAMPTZ,
  (text: string) => parseUtcTimestamp(text) ?? parseAnyTimestamp(text),
)

/** Timeout for connecting and for the readiness check. */
const READY_LIMIT_MS = 2_000

/** Timeout of a new connection of a pool. */
const CONNECT_LIMIT_MS = 5_000

/** Lock timeout of a request's statement; the client gets a 503 to try again. */
export const REQUEST_LOCK_LIMIT_MS = 5_000

/** Timeout of a statement. */
const STATEMENT_LIMIT_MS = 30_000

/**
 * Idle limit of a connection with a statement in flight, longer than the statement timeout. It closes connections to a
 * server that disappeared, and their callers get an error; TCP alone needs about 15 minutes.
 */
const SILENCE_LIMIT_MS = STATEMENT_LIMIT_MS + 5_000

/**
 * How long a connection that nothing uses stays open. A new one costs PostgreSQL a process, and each statement the 10 to
 * 20 ms of its first plan, which the requests of the next burst would wait for.
 */
const UNUSED_LIMIT_MS = 600_000

/** After how much silence TCP asks whether the other side is there, and keeps the connection known on the way. */
const KEEP_ALIVE_MS = 60_000

/**
 * What reading an entry of an index counts, in the unit of the planner's costs (a page). By the default of 0.005 a read of a
 * small index as a whole costs the same as a look-up in it, and the planner takes either.
 */
const INDEX_ENTRY_COST = 1

/** The start of a process that takes part in a statement costs as many entries as by default, and each row that it sends. */
const PARALLEL_COSTS = [
  `parallel_setup_cost=${200_000 * INDEX_ENTRY_COST}`,
  `parallel_tuple_cost=${20 * INDEX_ENTRY_COST}`,
]

const listSettings = (settings: readonly string[]) => settings.map((setting) => `-c ${setting}`).join(' ')

/**
 * Settings for requests: rows are found by index, also in a plan that was made while a table was empty or small. Such a plan
 * is kept until the table is analysed, and would read all that was written meanwhile. A list that no index serves is read
 * through all the same; what that would cost by the planner must not start its compiler. Each connection plans a statement
 * once, for any values: to plan most of them takes longer than to run them, and PostgreSQL would plan the first five anew.
 */
export const INDEX_PLANS = listSettings([
  'enable_seqscan=off',
  'enable_mergejoin=off',
  'plan_cache_mode=force_generic_plan',
  `cpu_index_tuple_cost=${INDEX_ENTRY_COST}`,
  ...PARALLEL_COSTS,
  'jit=off',
])

/**
 * Settings for the workers, beside those for requests: their statements read and write a few rows by index, whatever statistics say. A plan that was
 * made while a table was empty would otherwise read all of it for as long as the plan is kept.
 */
export const INDEX_ONLY_PLANS = `${INDEX_PLANS} ${listSettings([
  'enable_hashjoin=off',
  // Tables are joined in the order that is written.
  'join_collapse_limit=1',
  'from_collapse_limit=1',
])}`

/** The setting of sessions in which triggers queue nothing (docs/contract/events.md#event-queue-switch). */
export const EVENT_QUEUE_OFF = '-c signalbox.event_queue=off'

/**
 * Opens a pool on `connectionString` with at most `size` connections, opened on demand.
 * A lost idle connection is reported to `onError` and replaced at the next use; it does not end the process.
 */
export function openDatabase(options: {
  connectionString: string
  size: number
  applicationName: string
  /** Lock timeout of a statement. Default: unlimited. */
  lockTimeoutMs?: number
  /** More settings of the sessions, in the syntax of the server's command line: `-c name=value`. */
  settings?: string
  /** Default: `SILENCE_LIMIT_MS`. */
  silenceLimitMs?: number
  /** Default: `CONNECT_LIMIT_MS`. */
  connectLimitMs?: number
  onError: (error: Error) => void
}): DatabasePool {
  /** Connections that nothing uses: their silence means nothing. */
  const resting = new WeakSet<pg.ClientBase>()
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.size,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectLimitMs ?? CONNECT_LIMIT_MS,
    idleTimeoutMillis: UNUSED_LIMIT_MS,
    // Firewalls and balancers between forget a connection after some minutes of silence.
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    // Client-side timeout: returns the connection with an error if the server does not cancel.
    statement_timeout: STATEMENT_LIMIT_MS,
    Client: buildClient(options.silenceLimitMs ?? SILENCE_LIMIT_MS, resting),
    idle_in_transaction_session_timeout: 60_000,
    ...(options.lockTimeoutMs !== undefined && { lock_timeout: options.lockTimeoutMs }),
    // Statements can share a round trip (dialect.ts).
    pipeline: true,
    options: `-c timezone=UTC ${options.settings ?? ''}`.trim(),
  })
  // pg reports a connection that breaks in use through the failing query. Between two statements of a transaction the
  // client has no other listener, and an unhandled error event ends the process.
  pool.on('connect', (client) => {
    client.on('error', () => {})
  })
  pool.on('acquire', (client) => resting.delete(client))
  pool.on('release', (_error, client) => resting.add(client))
  pool.on('error', (error) => {
    // The driver attaches the connection to the error, which a log line must not contain.
    delete (error as { client?: unknown }).client
    options.onError(error)
  })
  const db = new Kysely<DB>({ dialect: buildDialect(pool) })
  return { db, pool, close: () => db.destroy() }
}

/** The driver's client, on a socket that ends when a server says nothing for so long while a statement waits for it. */
function buildClient(silenceLimitMs: number, resting: WeakSet<pg.ClientBase>): typeof pg.Client {
  return class extends pg.Client {
    constructor(config?: string | pg.ClientConfig) {
      const socket = new Socket()
      super({ ...(config as pg.ClientConfig), stream: () => socket })
      socket.setTimeout(silenceLimitMs, () => {
        if (!resting.has(this))
          socket.destroy(Object.assign(new Error('the database did not answer'), { code: 'ETIMEDOUT' }))
      })
    }
  }
}

/**
 * Runs `work` in one transaction: commits when it returns, rolls back when it throws. Within a transaction, `work` joins
 * it.
 */
export function inTransaction<Result>(db: Database, work: (tx: Transaction<DB>) => Promise<Result>): Promise<Result> {
  if (db.isTransaction) return work(db as Transaction<DB>)
  return db.transaction().execute(async (tx) => {
    const result = await work(tx)
    await writeRest(tx)
    return result
  })
}

/** Whether the database answers within the timeout. Never throws. */
export async function isDatabaseReady(db: Database): Promise<boolean> {
  const answered = sql`select 1`.execute(db).then(
    () => true,
    () => false,
  )
  const limit = new AbortController()
  const isReady = await Promise.race([answered, systemClock.sleep(READY_LIMIT_MS, limit.signal).then(() => false)])
  limit.abort()
  return isReady
}

const SOCKET_ERRORS: ReadonlySet<string> = new Set(
  'ECONNREFUSED ECONNRESET EPIPE ENOENT ETIMEDOUT ENOTFOUND EAI_AGAIN EMFILE ENFILE ENOBUFS ENOMEM EADDRNOTAVAIL'.split(
    ' ',
  ),
)

/** Whether `error` reports that the database is unreachable or shutting down, so that the caller may try again. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  if (typeof code !== 'string') {
    return (
      error instanceof Error &&
      /timeout exceeded when trying to connect|Connection terminated|is not queryable/.test(error.message)
    )
  }
  // Classes 08 (connection), 53 (resources), 57P0x (shutdown, crash, starting up), and the socket errors of Node; those
  // of a process without descriptors, ports or memory among them.
  return /^(08|53|57P0)/.test(code) || SOCKET_ERRORS.has(code)
}

/**
 * Whether the database rolled a transaction back and a retry may succeed: deadlock, serialization failure, lock timeout,
 * or a prepared statement that a migration invalidated.
 */
export function isGivenUp(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown }
  return code === '40P01' || code === '40001' || isLockTimeout(error) || isStalePlan(error)
}

/** Whether a statement failed by its lock timeout (`lockTimeoutMs`). */
export function isLockTimeout(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === '55P03'
}

/** Whether `error` reports a violation of the unique constraint or index `name`. */
export function isUniqueViolation(error: unknown, name: string): boolean {
  const { code, constraint } = (error ?? {}) as { code?: unknown; constraint?: unknown }
  return code === '23505' && constraint === name
}

/** Whether the database refused data (class 22) or a rule of the schema was broken (class 23): the same again fails again. */
export function isDataRefused(error: unknown): boolean {
  return /^2[23]/.test(String((error as { code?: unknown } | null)?.code))
}
