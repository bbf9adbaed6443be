import { CompiledQuery } from 'kysely'
import { type ClosingWrite, writeAtEnd } from './closing.ts'
import { type Database, READ_LIMIT_MS, SHORT_LIMITS } from './database.ts'
import { markAhead } from './dialect.ts'
import { nameText } from './fragment.ts'
import { type CompiledText, compileNames, valuesOf } from './named-text.ts'

/** The columns of an outer join: all of them null where nothing was joined. */
export type Joined<Columns> = { [Name in keyof Columns]: Columns[Name] | null }

/** Arguments of a call after the database: the values of the placeholders by name; none without placeholders. */
type Given<Params> = Params extends object ? [params: Params] : []

/**
 * A statement with a constant text, for hot paths: building and compiling it for each call costs some 20 µs. `$name` takes
 * the value of that name; the text is compiled once, when it is loaded. Returns its rows, or what `read` makes of each.
 */
export function statement<Row, Params extends object | undefined = undefined, Result = Row>(
  text: string,
  read?: (row: Row) => Result,
): (db: Database, ...given: Given<Params>) => Promise<Result[]> {
  const compiled = compileNames(text)
  return async (db, ...[params]) => {
    const { rows } = await db.executeQuery<Row>(fill(compiled, params))
    return read ? rows.map((row) => read(row)) : (rows as Row[] & Result[])
  }
}

/** As `statement`, for one row at most: returns the first row, or what `read` makes of it; undefined without one. */
export function rowStatement<Row, Params extends object | undefined = undefined, Result = Row>(
  text: string,
  read?: (row: Row) => Result,
): (db: Database, ...given: Given<Params>) => Promise<Result | undefined> {
  const find = statement<Row, Params, Result>(text, read)
  return async (db, ...given) => (await find(db, ...given))[0]
}

/** As `rowStatement`, for a statement that always returns a row. Rejects without one. */
export function soleRowStatement<Row, Params extends object | undefined = undefined, Result = Row>(
  text: string,
  read?: (row: Row) => Result,
): (db: Database, ...given: Given<Params>) => Promise<Result> {
  const find = statement<Row, Params, Result>(text, read)
  return async (db, ...given) => {
    const rows = await find(db, ...given)
    if (rows.length === 0) throw new Error(`a statement that always returns a row returned none: ${text.trim()}`)
    return rows[0] as Result
  }
}

/** A write without a result. Returns the number of inserted, updated or deleted rows. */
export function changeStatement<Params extends object | undefined = undefined>(
  text: string,
): (db: Database, ...given: Given<Params>) => Promise<number> {
  const compiled = compileNames(text)
  return async (db, ...[params]) => Number((await db.executeQuery(fill(compiled, params))).numAffectedRows ?? 0)
}

/**
 * The condition that `column` is null, for rows that are looked up by a key. Without statistics of a table, PostgreSQL
 * prefers a partial index of the rows with `column is null` to that of the key, and reads all of it; in this form it
 * does not recognize that index as usable.
 */
export const isNull = (column: string) => `num_nonnulls(${column}) = 0`

/**
 * The condition that the instant `column` is after `instant`, for rows that are looked up by a key. The indexes on
 * expiries are for deletions; in this form PostgreSQL cannot use them, and does not read all unexpired rows.
 */
export const isAfter = (column: string, instant: string) => `(${column} > ${instant}) is true`

/** A constant statement without a result, in the round trip of the next one, which fails with its error. */
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

/** Sets the statement timeout of the pool of long reads for the rest of the transaction. */
export function limitReads(db: Database): Promise<void> {
  return setReadLimit(db, { limit: `${READ_LIMIT_MS}` })
}

/** Reverts `limitReads`: a change that waits for a lock is not a long read. */
export function endReadLimit(db: Database): Promise<void> {
  return setReadLimit(db, { limit: `${SHORT_LIMITS.statementMs}` })
}

const setReadLimit = aheadStatement<{ limit: string }>(`select set_config('statement_timeout', $limit, true)`)

/**
 * A write without a statement of its own: parts of `with` of the transaction's last statement (`writeAtEnd`).
 * `invalidationOf` names what each call invalidates.
 */
export function closingStatement<Params extends object>(
  text: string,
  invalidationOf?: (params: Params) => string,
): (db: Database, params: Params, more?: Omit<ClosingWrite, 'parts'>) => Promise<void> {
  const name = nameText('closing')
  const compiled = compileNames(text)
  return (db, params, more = {}) => {
    const parts = { name, text: compiled.text, values: valuesOf(compiled, params) }
    return writeAtEnd(db, { parts, ...(invalidationOf && { invalidations: invalidationOf(params) }), ...more })
  }
}
