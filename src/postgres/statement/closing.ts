import type { CompiledQuery, Kysely } from 'kysely'
import { markLast } from './dialect.ts'
import { buildJoin, type Fragment } from './fragment.ts'
import type { DB } from './tables.generated.ts'

type Database = Kysely<DB>

/** A write that its transaction makes with its last statement. */
export interface ClosingWrite {
  /** Its text is a list of parts of `with`: `one as (update ...), other as (insert ...)`. */
  parts: Fragment
  /**
   * The invalidations that its triggers send (`invalidate` in the migrations), comma-separated, for the caches of this
   * process: a trigger runs after its statement, which therefore cannot return them.
   */
  invalidations?: string
  /** Maps an error of the statement to its problem, such as a taken name; other errors are returned unchanged. */
  explain?: (error: unknown) => unknown
}

/** The writes that wait for the last statement of their transaction. */
const waiting = new WeakMap<Database, ClosingWrite[]>()

/**
 * Defers a write to the last statement of the transaction `db`, which also records the change: it costs no statement of
 * its own. Its rows must be locked by an earlier statement of the transaction, since it may wait for a lock itself and
 * would then read the state before. No later statement sees it, and two of them must not write the same row. Outside a
 * transaction it is written at once; an equal deferred write is made first.
 */
export async function writeAtEnd(db: Database, write: ClosingWrite): Promise<void> {
  if (!db.isTransaction) return runWrites(db, [write])
  const isRepeated = waiting.get(db)?.some(({ parts }) => parts.name === write.parts.name)
  if (isRepeated) await runWrites(db, takeWrites(db))
  const writes = waiting.get(db)
  if (writes) writes.push(write)
  else waiting.set(db, [write])
}

/** Takes the writes that wait for the last statement of `tx`; the caller must make them. */
export function takeWrites(tx: Database): readonly ClosingWrite[] {
  const writes = waiting.get(tx) ?? []
  waiting.delete(tx)
  return writes
}

/** Makes the deferred writes of `tx` that no statement has included. Its last statement, if any. */
export async function writeRest(tx: Database): Promise<void> {
  const writes = takeWrites(tx)
  if (writes.length > 0) await runWrites(tx, writes, markLast)
}

const joinWrites = buildJoin()

async function runWrites(
  db: Database,
  writes: readonly ClosingWrite[],
  mark: (query: CompiledQuery) => CompiledQuery = (query) => query,
): Promise<void> {
  const query = joinWrites(
    writes.map(({ parts }) => parts),
    (texts) => `with ${texts.join(', ')} select`,
  )
  await runExplained(db, mark(query), writes)
}

/** Runs a statement that makes `writes`, and maps a failure to the problem of one of them. Returns its rows. */
export async function runExplained<Row>(
  db: Database,
  query: CompiledQuery<Row>,
  writes: readonly ClosingWrite[],
): Promise<Row[]> {
  try {
    return (await db.executeQuery(query)).rows
  } catch (error) {
    throw writes.reduce((cause, { explain }) => (explain ? explain(cause) : cause), error)
  }
}
