import { CompiledQuery } from 'kysely'
import { type ClosingWrite, writeAtEnd } from './closing.ts'
import { type Database, READ_LIMIT_MS, SHORT_LIMITS } from './database.ts'
import { markAhead } from './dialect.ts'
import { nameText } from './fragment.ts'
import { type CompiledText, compileNames, valuesOf } from './named-text.ts'

/** The columns of an outer join: all of them null where nothing was joined. */
export type Joined<Columns> = { [Name in keyof Columns]: Columns[Name] | null }

/**
 * Arguments of a call after the database: the values of the placeholders by name, none where there are no placeholders.
 */
type Given<Params> = Params extends object ? [params: Params] : []

/**
 * A statement with a constant text, for hot paths: building and compiling it for each call costs some 20 µs. `$name` takes
 * the value of that name; the text is compiled once, when it is loaded. Returns its rows.
 */
export function statement<Row, Params extends object | undefined = undefined>(
  text: string,
): (db: Database, ...given: Given<Params>) => Promise<Row[]> {
  const compiled = compileNames(text)
  return async (db, ...[params]) => (await db.executeQuery<Row>(fill(compiled, params))).rows
}

/** The same for a write without a result. Returns how many rows it inserted, updated or deleted. */
export function changeStatement<Params extends object | undefined = undefined>(
  text: string,
): (db: Database, ...given: Given<Params>) => Promise<number> {
  const compiled = compileNames(text)
  return async (db, ...[params]) => Number((await db.executeQuery(fill(compiled, params))).numAffectedRows ?? 0)
}

/**
 * The condition that `column` is null, for rows that are looked up by a key. As long as PostgreSQL knows nothing of a table,
 * it prefers an index that holds only the rows with `column is null` to that of the key, and reads it through; in this form
 * it does not see that the index holds what is asked for.
 */
export const isNull = (column: string) => `num_nonnulls(${column}) = 0`

/**
 * The condition that the instant `column` is after `instant`, for rows that are looked up by a key. The indexes of what
 * expires serve its deletion; in this form PostgreSQL cannot use them, and reads no row that merely lives.
 */
export const isAfter = (column: string, instant: string) => `(${column} > ${instant}) is true`

/**
 * A statement with a constant text and without a result, such as one that only locks: within a transaction it shares the
 * round trip of the next statement, which fails with its error.
 */
export function aheadStatement<Params extends object | undefined = undefined>(
  text: string,
): (db: Database, ...given: Given<Params>) => Promise<void> {
  const compiled = compileNames(text)
  return async (db, ...[params]) => {
    await db.executeQuery(markAhead(fill(compiled, params)))
  }
}

function fill<Row>(compiled: CompiledText, params: object | undefined): CompiledQuery<Row> {
  return CompiledQuery.raw(compiled.text, valuesOf(compiled, params))
}

/** Ends statements of the transaction, from here on, as those of the pool of reads that may be long. */
export function limitReads(db: Database): Promise<void> {
  return setReadLimit(db, { limit: `${READ_LIMIT_MS}` })
}

/** Ends the limit of `limitReads`: a change that waits for a lock is no long read. */
export function endReadLimit(db: Database): Promise<void> {
  return setReadLimit(db, { limit: `${SHORT_LIMITS.statementMs}` })
}

const setReadLimit = aheadStatement<{ limit: string }>(`select set_config('statement_timeout', $limit, true)`)

/**
 * A write with a constant text that needs no statement of its own: `text` is a list of parts of `with`, which the last
 * statement of the transaction takes up (`writeAtEnd`).
 */
export function closingStatement<Params extends object>(
  text: string,
): (db: Database, params: Params, more?: Omit<ClosingWrite, 'parts'>) => Promise<void> {
  const name = nameText('closing')
  const compiled = compileNames(text)
  return (db, params, more = {}) =>
    writeAtEnd(db, { parts: { name, text: compiled.text, values: valuesOf(compiled, params) }, ...more })
}
