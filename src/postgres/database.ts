import { Socket } from 'node:net'
import { Kysely, sql, type Transaction } from 'kysely'
import pg from 'pg'
import { systemClock } from '../clock.ts'
import { buildDialect, isStalePlan } from './dialect.ts'
import type { DB } from './tables.generated.ts'
import { parseUtcTimestamp } from './timestamp.ts'

/** The database, or a transaction of it: stores take either. */
export type Database = Kysely<DB>

/** A connection pool and what closes it. */
export interface DatabasePool {
  db: Database
  /** The pool itself, for the few statements that need one connection of their own (locks, LISTEN). */
  pool: pg.Pool
  close(): Promise<void>
}

// int8 comes as text from the driver. Counts and totals here stay far below 2^53, so numbers serve better.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

const parseAnyTimestamp = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ)

pg.types.setTypeParser(
  pg.types.builtins.TIMESTAMPTZ,
  (text: string) => parseUtcTimestamp(text) ?? parseAnyTimestamp(text),
)

/** How long the database may take to show that it is there. */
const READY_LIMIT_MS = 2_000

/** How long a statement of a request waits for a lock; its client is told to try again. */
export const REQUEST_LOCK_LIMIT_MS = 5_000

/** How long a statement may run. */
const STATEMENT_LIMIT_MS = 30_000

/**
 * A connection that is silent for longer than any statement may take leads nowhere (a machine that vanished, a network that swallows): it is
 * ended, so that whoever waits gets an error. Without this a vanished server holds its callers for the quarter of an hour of TCP.
 */
const SILENCE_LIMIT_MS = STATEMENT_LIMIT_MS + 5_000

/**
 * Settings for the workers: their statements read and write a few rows by index, whatever statistics say. A plan that was
 * made while a table was empty would otherwise read all of it for as long as the plan is kept.
 */
export const INDEX_ONLY_PLANS = [
  'enable_seqscan=off',
  'enable_hashjoin=off',
  'enable_mergejoin=off',
  // Tables are joined in the order that is written.
  'join_collapse_limit=1',
  'from_collapse_limit=1',
  'plan_cache_mode=force_generic_plan',
  'jit=off',
]
  .map((setting) => `-c ${setting}`)
  .join(' ')

/**
 * Opens a pool on `connectionString`. Connections are made when needed, at most `size`.
 * A lost idle connection is reported to `onError` and replaced at the next use; it never ends the process.
 */
export function openDatabase(options: {
  connectionString: string
  size: number
  applicationName: string
  /** How long a statement waits for a lock before it fails; unlimited unless given. */
  lockTimeoutMs?: number
  /** More settings of the sessions, in the syntax of the server's command line: `-c name=value`. */
  settings?: string
  onError: (error: Error) => void
}): DatabasePool {
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.size,
    application_name: options.applicationName,
    connectionTimeoutMillis: 5000,
    // A statement that takes longer than this hangs on something; give the connection back with an error.
    statement_timeout: STATEMENT_LIMIT_MS,
    stream: openSocket,
    idle_in_transaction_session_timeout: 60_000,
    ...(options.lockTimeoutMs !== undefined && { lock_timeout: options.lockTimeoutMs }),
    // Statements that do not wait for each other's answers share a round trip (dialect.ts).
    pipeline: true,
    options: `-c timezone=UTC ${options.settings ?? ''}`.trim(),
  })
  // A connection that breaks while it is in use fails the statement in flight, or the next one: that is how it is told. Between two statements
  // of a transaction nobody else listens, and an error event without a listener ends the process.
  pool.on('connect', (client) => {
    client.on('error', () => {})
  })
  pool.on('error', (error) => {
    // The driver hangs the whole connection onto the error; a log line has no use for it.
    delete (error as { client?: unknown }).client
    options.onError(error)
  })
  const db = new Kysely<DB>({ dialect: buildDialect(pool) })
  return { db, pool, close: () => db.destroy() }
}

function openSocket(): Socket {
  const socket = new Socket()
  socket.setTimeout(SILENCE_LIMIT_MS, () => {
    socket.destroy(Object.assign(new Error('the database was silent'), { code: 'ETIMEDOUT' }))
  })
  return socket
}

/**
 * Runs `work` in one transaction: commits what it wrote when it returns, nothing when it throws. Within a transaction
 * it joins that one, which then commits or throws away the whole.
 */
export function inTransaction<Result>(db: Database, work: (tx: Transaction<DB>) => Promise<Result>): Promise<Result> {
  if (db.isTransaction) return work(db as Transaction<DB>)
  return db.transaction().execute(work)
}

/** Whether the database answers now: a server that hangs says nothing, and is not ready either. Never throws. */
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

/** Whether `error` says that the database cannot be reached or is going down, so that the caller may try again. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  if (typeof code !== 'string') {
    return (
      error instanceof Error &&
      /timeout exceeded when trying to connect|Connection terminated|is not queryable/.test(error.message)
    )
  }
  // Classes 08 (connection), 53 (resources), 57P0x (shutdown, crash, starting up), and the socket errors of Node.
  return (
    /^(08|53|57P0)/.test(code) ||
    ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOENT', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'].includes(code)
  )
}

/**
 * Whether the database gave a transaction up so that it may be tried again, nothing of it kept: for another one
 * (deadlock, serialization, a lock that was not free in time), or because a migration changed a prepared statement.
 */
export function isGivenUp(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown }
  return code === '40P01' || code === '40001' || isLockTimeout(error) || isStalePlan(error)
}

/** Whether a statement gave up waiting for a lock (`lockTimeoutMs`). */
export function isLockTimeout(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === '55P03'
}

/** Whether a statement refused itself (`refuse` in the migrations): a condition that it tests does not hold. */
export function isRefusedWrite(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'SB001'
}

/** Whether `error` says that the unique constraint or index `name` was broken. */
export function isUniqueViolation(error: unknown, name: string): boolean {
  const { code, constraint } = (error ?? {}) as { code?: unknown; constraint?: unknown }
  return code === '23505' && constraint === name
}
