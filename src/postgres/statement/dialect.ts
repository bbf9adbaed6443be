import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from 'kysely'
import type pg from 'pg'
import { buildCache } from '../../base/cache.ts'
import { isOfConnection } from '../connection/connection-error.ts'
import { shouldLeave } from '../connection/pool-client.ts'
import { writeArray } from './array.ts'
import { type KnownColumns, queryPrepared } from './prepared-query.ts'

/** Distinct statements after which a connection is replaced, which bounds its plans. A process uses about 150. */
export const PREPARED_PER_CONNECTION = 500

const NAMES_LIMIT = 2_000

/** The name of a prepared statement: equal texts have equal names on every connection. */
export function buildStatementNames(limit = NAMES_LIMIT): (text: string) => string {
  const names = buildCache<string, string>({ limit })
  return (text) => {
    const known = names.find(text)
    if (known !== undefined) return known
    const name = createHash('sha256').update(text).digest('base64url')
    names.put(text, name)
    return name
  }
}

/** Statements that end their transaction: `commit` is sent with them. */
const lastStatements = new WeakSet<CompiledQuery>()

/** Marks the last statement of a transaction: it shares a round trip with `commit`, a rollback if it fails. */
export function markLast<Row>(query: CompiledQuery<Row>): CompiledQuery<Row> {
  lastStatements.add(query)
  return query
}

/** Statements without a result: they are sent together with the next statement of the transaction. */
const aheadStatements = new WeakSet<CompiledQuery>()

/**
 * Marks a compiled statement whose result is not read, such as one that only locks, so that it shares the round trip of
 * the next statement. If it fails, the next statement fails with its error. Outside a transaction it is awaited.
 */
export function markAhead<Row>(query: CompiledQuery<Row>): CompiledQuery<Row> {
  aheadStatements.add(query)
  return query
}

/** Statements that must outlive the transaction whose first round trip they share, with where their rows are left. */
const detachedStatements = new WeakMap<CompiledQuery, (rows: Promise<unknown[]>) => void>()

/**
 * Runs a statement that commits by itself. Given to a transaction, of which it must be the first statement, it is sent
 * before `begin` in the round trip of the next statement: await it after that one.
 */
export async function runDetached<DB, Row>(db: Kysely<DB>, query: CompiledQuery<Row>): Promise<Row[]> {
  let detached: Promise<unknown[]> | undefined
  detachedStatements.set(query, (rows) => {
    detached = rows
  })
  const { rows } = await db.executeQuery(query)
  return detached === undefined ? rows : ((await detached) as Row[])
}

/** Source of connections: a pool, or its guard. */
export interface ConnectionSource {
  connect(): Promise<pg.PoolClient>
  end(): Promise<void>
}

/**
 * The Kysely dialect of the service. Beside the one of Kysely it
 * - prepares every statement under a name made from its text, so that PostgreSQL parses and plans it once a connection;
 * - sends `begin` together with the first statement of a transaction, `commit` together with the last one where that is
 *   marked, and a statement whose answer is not needed together with the next one; a transaction whose first statement
 *   is marked as its last is that statement alone. The pool's connections must have the driver's option `pipeline`.
 */
export function buildDialect(pool: ConnectionSource): Dialect {
  const nameOf = buildStatementNames()
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => buildDriver(pool, nameOf),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  }
}

function buildDriver(pool: ConnectionSource, nameOf: (text: string) => string): Driver {
  const prepared = new WeakMap<pg.PoolClient, Prepared>()
  const connectionOf = (connection: DatabaseConnection) => connection as PreparingConnection
  return {
    init: async () => {},
    acquireConnection: async () => {
      const client = await pool.connect()
      const known = prepared.get(client) ?? { names: new Set(), columns: new Map() }
      prepared.set(client, known)
      return new PreparingConnection(client, { nameOf, ...known })
    },
    beginTransaction: async (connection, settings) => {
      const level = settings.isolationLevel ? ` isolation level ${settings.isolationLevel}` : ''
      const mode = settings.accessMode ? ` ${settings.accessMode}` : ''
      connectionOf(connection).begin(`begin${level}${mode}`)
    },
    commitTransaction: (connection) => connectionOf(connection).commit(),
    rollbackTransaction: (connection) => connectionOf(connection).rollback(),
    releaseConnection: async (connection) => connectionOf(connection).release(),
    destroy: () => pool.end(),
  }
}

/** The statements that were prepared on a connection. */
interface Prepared {
  names: Set<string>
  /** The columns of those that return rows. */
  columns: KnownColumns
}

function writeParameter(value: unknown): unknown {
  return Array.isArray(value) ? (writeArray(value) ?? value) : value
}

/** The socket of a connection; the driver's types leave it out. */
function socketOf(client: pg.PoolClient): Duplex {
  return (client as unknown as { connection: { stream: Duplex } }).connection.stream
}

/** One use of a pooled connection, from its acquisition to its release. */
class PreparingConnection implements DatabaseConnection {
  readonly #client: pg.PoolClient
  readonly #nameOf: (text: string) => string
  readonly #names: Set<string>
  readonly #columns: KnownColumns
  /** The `begin` to send with the first statement. */
  #begin: string | undefined
  /** Set when `commit` was sent with the last statement. */
  #commit: Promise<pg.QueryResult> | undefined
  #isInTransaction = false
  /** The first error of the statements that were sent ahead; undefined when all of them succeeded. */
  #aheadError: Promise<unknown> = Promise.resolve()
  #isBroken = false
  #isHeld = false

  constructor(client: pg.PoolClient, options: Prepared & { nameOf: (text: string) => string }) {
    this.#client = client
    this.#nameOf = options.nameOf
    this.#names = options.names
    this.#columns = options.columns
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const isLast = lastStatements.has(query)
    // A transaction of one statement is that statement.
    if (isLast && this.#begin !== undefined) this.#forgetBegin()
    const isAhead = this.#isInTransaction && aheadStatements.has(query)
    const leaveRows = this.#isInTransaction ? detachedStatements.get(query) : undefined
    if (leaveRows && this.#begin === undefined) throw new Error('a detached statement is the first of its transaction')
    this.#hold()
    if (!leaveRows) this.#sendBegin()
    const name = this.#nameOf(query.sql)
    this.#names.add(name)
    const statement = { name, text: query.sql, values: query.parameters.map(writeParameter) }
    const answered = queryPrepared(this.#client, statement, this.#columns)
    if (isLast && this.#isInTransaction) this.#sendCommit()
    if (leaveRows) {
      leaveRows(answered.then(({ rows }) => rows))
      // The next statement flushes both. A transaction may also end without one.
      setImmediate(() => this.#flush())
      return { rows: [] }
    }
    if (!isAhead) this.#flush()
    if (isAhead) {
      this.#keepError(answered)
      return { rows: [] }
    }
    try {
      const { command, rowCount, rows } = await answered
      const isWrite = command === 'INSERT' || command === 'UPDATE' || command === 'DELETE' || command === 'MERGE'
      return { rows: (rows ?? []) as Row[], ...(isWrite && { numAffectedRows: BigInt(rowCount ?? 0) }) }
    } catch (error) {
      // After a failed statement every other one of the transaction fails too: the first error is the cause.
      const cause = (await this.#aheadError) ?? error
      if (isOfConnection(error)) this.#isBroken = true
      // The driver's stack ends at the socket; this one ends at the operation.
      if (cause instanceof Error) Error.captureStackTrace(cause)
      throw cause
    }
  }

  /** Messages from here on are one write to the socket, made by `#flush`: a write costs some 20 µs. */
  #hold(): void {
    if (this.#isHeld) return
    this.#isHeld = true
    socketOf(this.#client).cork()
  }

  #flush(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    socketOf(this.#client).uncork()
  }

  #keepError(answered: Promise<unknown>): void {
    const earlier = this.#aheadError
    const failed = answered.then(
      () => undefined,
      (error: unknown) => {
        if (isOfConnection(error)) this.#isBroken = true
        return error
      },
    )
    this.#aheadError = earlier.then(async (error) => error ?? (await failed))
  }

  // biome-ignore lint/correctness/useYield: cursors are not supported
  async *streamQuery(): AsyncGenerator<never> {
    throw new Error('cursors are not supported: read a long list by pages')
  }

  begin(text: string): void {
    this.#begin = text
    this.#isInTransaction = true
    this.#aheadError = Promise.resolve()
  }

  #sendBegin(): void {
    if (this.#begin === undefined) return
    // A failed begin also fails the first statement, which reports it.
    this.#client.query(this.#begin).catch(() => {})
    this.#begin = undefined
  }

  #sendCommit(): void {
    this.#commit = this.#client.query('commit')
    this.#commit.catch(() => {})
  }

  async commit(): Promise<void> {
    // Nothing was sent, so there is nothing to commit.
    if (this.#begin !== undefined) return this.#forgetBegin()
    // The only statement was its own transaction.
    if (!this.#isInTransaction) return
    this.#commit ??= this.#client.query('commit')
    this.#flush()
    const { command } = await this.#commit
    this.#commit = undefined
    this.#isInTransaction = false
    if (command !== 'ROLLBACK') return
    throw (await this.#aheadError) ?? new Error('the transaction was aborted by an earlier statement')
  }

  async rollback(): Promise<void> {
    if (!this.#isInTransaction || this.#begin !== undefined) return this.#forgetBegin()
    this.#isInTransaction = false
    try {
      // After a last statement the transaction has already ended.
      const ended = this.#commit ?? this.#client.query('rollback')
      this.#flush()
      await ended
    } catch {
      // The server rolls back the transaction of a closed connection. The error to report is the cause of the rollback.
      this.#isBroken = true
    } finally {
      this.#commit = undefined
    }
  }

  #forgetBegin(): void {
    this.#begin = undefined
    this.#isInTransaction = false
  }

  release(): void {
    this.#flush()
    this.#client.release(this.#isBroken || this.#names.size > PREPARED_PER_CONNECTION || shouldLeave(this.#client))
  }
}
