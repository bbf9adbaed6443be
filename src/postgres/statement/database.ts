import { Kysely, sql, type Transaction } from 'kysely'
import pg from 'pg'
import { systemClock } from '../../base/clock.ts'
import { isStalePlan } from '../connection/connection-error.ts'
import { buildClient, KEEP_ALIVE_MS, SERVER_KEEP_ALIVE } from '../connection/pool-client.ts'
import { guardPool, type PoolGuard, type PoolState, type Siblings } from '../connection/pool-guard.ts'
import { writeRest } from './closing.ts'
import { buildDialect } from './dialect.ts'
import type { DB } from './tables.generated.ts'
import { parseUtcTimestamp } from './timestamp.ts'

/** The database or a transaction: stores accept either. */
export type Database = Kysely<DB>

/** A connection pool and its disposer. */
export interface DatabasePool {
  db: Database
  /** The pool, for statements that need a connection of their own (locks, LISTEN). */
  pool: pg.Pool
  /** A connection of the pool, through its guard; the caller releases it. */
  connect(): Promise<pg.PoolClient>
  /** Report of its guard: breaker, waiting callers, dead connections. */
  state(): PoolState
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

/** Timeout of a statement of the pool of reads that may be long (docs/contract/api.md#expensive-reads). */
export const READ_LIMIT_MS = 2_000

/** Lock timeout of a worker's statement: its wait would delay all other work, and it retries. */
export const WORKER_LOCK_LIMIT_MS = 3_000

/** The time limits of the statements of a pool, in milliseconds. */
export interface StatementLimits {
  /** Timeout of a statement, kept by the server. */
  statementMs: number
  /** Idle limit of a statement, above the statement timeout, for servers that vanished. Milliseconds. */
  silenceMs: number
  /** Server timeout of a transaction, with its locks, whose client is silent. */
  idleInTransactionMs: number
}

/** For requests and workers: shorter than a lease and the idle limit of HTTP connections (30 s each). */
export const SHORT_LIMITS: StatementLimits = { statementMs: 9_000, silenceMs: 10_000, idleInTransactionMs: 9_000 }

/** For the pool of reads that may be long. */
export const READ_LIMITS: StatementLimits = { ...SHORT_LIMITS, statementMs: READ_LIMIT_MS }

/** For maintenance and commands, whose statements may read much. */
const LONG_LIMITS: StatementLimits = { statementMs: 30_000, silenceMs: 35_000, idleInTransactionMs: 60_000 }

/** Idle time after which a connection is closed. A new one costs a process, and 10 to 20 ms for each first plan. */
const UNUSED_LIMIT_MS = 600_000

/** Cost of an index entry, in pages. By the default, 0.005, a small index is read as a whole or looked up alike. */
const INDEX_ENTRY_COST = 1

/** The start of a process that takes part in a statement costs as many entries as by default, and each row that it sends. */
const PARALLEL_COSTS = [
  `parallel_setup_cost=${200_000 * INDEX_ENTRY_COST}`,
  `parallel_tuple_cost=${20 * INDEX_ENTRY_COST}`,
]

const listSettings = (settings: readonly string[]) => settings.map((setting) => `-c ${setting}`).join(' ')

/**
 * Settings for requests: rows are found by index, also in a plan that was made while a table was empty or small. Such a
 * plan is kept until the table is analysed, and would read all rows written until then. A list without an index is
 * still scanned; its estimated cost must not start the JIT compiler. Each connection plans a statement once,
 * generically: planning most of them takes longer than running them, and PostgreSQL would plan the first five
 * executions.
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
 * Settings for lists and other reads that may be long, beside those for requests: a statement with filters is planned
 * for their values. Average selectivity is misleading: one account may have most rows of a table. So rows are also read
 * in the order of an index, up to a page, instead of sorting all rows of an account.
 */
export const READ_PLANS = `${INDEX_PLANS} ${listSettings(['plan_cache_mode=force_custom_plan', 'enable_bitmapscan=off'])}`

/**
 * Settings for the workers, beside those for requests: their statements read and write a few rows by index, whatever
 * statistics say. A plan made on an empty table would otherwise read all of it as long as the plan is kept.
 */
export const INDEX_ONLY_PLANS = `${INDEX_PLANS} ${listSettings([
  'enable_hashjoin=off',
  // Tables are joined in the order that is written.
  'join_collapse_limit=1',
  'from_collapse_limit=1',
])}`

/** The setting of sessions in which triggers queue nothing (docs/contract/events.md#event-queue-switch). */
export const EVENT_QUEUE_OFF = '-c signalbox.event_queue=off'

/** Opens a pool of at most `size` connections. A lost idle one is reported to `onError` and replaced. */
export function openDatabase(options: {
  connectionString: string
  size: number
  applicationName: string
  /** Lock timeout of a statement. Default: unlimited. */
  lockTimeoutMs?: number
  /** More settings of the sessions, in the syntax of the server's command line: `-c name=value`. */
  settings?: string
  /** Default: `LONG_LIMITS`. */
  limits?: Partial<StatementLimits>
  /** Pools on the same network path: a dead connection of one makes those of all suspect. Default: none. */
  siblings?: Siblings
  /** Default: `CONNECT_LIMIT_MS`. */
  connectLimitMs?: number
  /** Chooses the connections of `db`, given those of the pool. Default: the pool's. */
  choose?: (connect: () => Promise<pg.PoolClient>) => () => Promise<pg.PoolClient>
  onError: (error: Error) => void
}): DatabasePool {
  const limits = { ...LONG_LIMITS, ...options.limits }
  const pool: pg.Pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.size,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectLimitMs ?? CONNECT_LIMIT_MS,
    idleTimeoutMillis: UNUSED_LIMIT_MS,
    // Firewalls and balancers drop a connection after some minutes of silence.
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    // Client-side timeout: returns the connection with an error if the server does not cancel.
    statement_timeout: limits.statementMs,
    Client: buildClient({
      silenceLimitMs: limits.silenceMs,
      isResting: (client) => guard.isResting(client),
      onSilent: () => guard.noteSilent(limits.silenceMs),
    }),
    idle_in_transaction_session_timeout: limits.idleInTransactionMs,
    ...(options.lockTimeoutMs !== undefined && { lock_timeout: options.lockTimeoutMs }),
    // Statements can share a round trip (dialect.ts).
    pipeline: true,
    options: `-c timezone=UTC ${SERVER_KEEP_ALIVE} ${options.settings ?? ''}`.trim(),
  })
  const { siblings } = options
  const guard: PoolGuard = guardPool(pool, { isUnavailable: isDatabaseUnavailable, ...(siblings && { siblings }) })
  pool.on('error', (error) => {
    // The driver attaches the connection to the error, which a log line must not contain.
    delete (error as { client?: unknown }).client
    options.onError(error)
  })
  const connect = options.choose?.(guard.connect) ?? guard.connect
  const db = new Kysely<DB>({ dialect: buildDialect({ connect, end: () => pool.end() }) })
  return { db, pool, connect: guard.connect, state: guard.read, close: () => db.destroy() }
}

/** Runs `work` in one transaction, committed when it returns and rolled back when it throws; joins an open one. */
export function inTransaction<Result>(db: Database, work: (tx: Transaction<DB>) => Promise<Result>): Promise<Result> {
  if (db.isTransaction) return work(db as Transaction<DB>)
  return db.transaction().execute(async (tx) => {
    const result = await work(tx)
    await writeRest(tx)
    return result
  })
}

/** Result of a check of the database; the text is that of `/readyz`. */
export type DatabaseState = 'ok' | 'database read-only' | 'database unavailable'

/** Whether the database answers within the timeout, and accepts changes. Never throws. */
export async function readDatabaseState(db: Database): Promise<DatabaseState> {
  const answered = sql<{
    is_read_only: boolean
  }>`select current_setting('transaction_read_only')::boolean as is_read_only`
    .execute(db)
    .then(
      ({ rows }): DatabaseState => (rows[0]?.is_read_only ? 'database read-only' : 'ok'),
      (): DatabaseState => 'database unavailable',
    )
  const limit = new AbortController()
  const late = systemClock.sleep(READY_LIMIT_MS, limit.signal).then((): DatabaseState => 'database unavailable')
  const state = await Promise.race([answered, late])
  limit.abort('over')
  return state
}

/** Whether the database answers and accepts changes. Never throws. */
export async function isDatabaseReady(db: Database): Promise<boolean> {
  return (await readDatabaseState(db)) === 'ok'
}

/** Whether the database is unreachable, shutting down or read-only: the caller may retry. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  if (typeof code !== 'string') {
    return (
      error instanceof Error &&
      /timeout exceeded when trying to connect|timeout expired|Connection terminated|is not queryable/.test(
        error.message,
      )
    )
  }
  // Classes 08 (connection), 53 (resources), 57P0x (shutdown, crash, starting up), 25P03 and 25P04 (the transaction took too
  // long to go on), 25006 (a standby, or read-only), 55000 (it takes no connections, or needs something of an operator).
  return /^(08|53|57P0|25P0[34]|25006|55000)/.test(code) || SOCKET_ERRORS.has(code)
}

/** The errors of Node for sockets and names, of a process without descriptors, ports or memory, and that of a caller who was refused. */
const SOCKET_ERRORS = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'EADDRNOTAVAIL',
  'DATABASE_REFUSED',
])

/** Whether a statement was ended by its timeout (`statementMs`). */
export function isStatementTimeout(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === '57014'
}

/** Whether a retry may succeed: deadlock, serialization failure, lock timeout, or a statement of an older schema. */
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

/** Whether the database refused data (class 22) or a rule of the schema was broken (class 23): a retry fails again. */
export function isDataRefused(error: unknown): boolean {
  return /^2[23]/.test(String((error as { code?: unknown } | null)?.code))
}
