import { CompiledQuery } from 'kysely'
import type { Database } from './database.ts'
import { markAhead } from './dialect.ts'

/**
 * A statement with a constant text, for hot paths: building and compiling it for each call costs some 20 µs. `$1`, `$2`,
 * ... take the values in order. Returns its rows.
 */
export function statement<Row>(text: string): (db: Database, values: readonly unknown[]) => Promise<Row[]> {
  return async (db, values) => (await db.executeQuery<Row>(CompiledQuery.raw(text, [...values]))).rows
}

/**
 * A statement with a constant text and without a result, such as one that only locks: within a transaction it shares the
 * round trip of the next statement, which fails with its error.
 */
export function aheadStatement(text: string): (db: Database, values: readonly unknown[]) => Promise<void> {
  return async (db, values) => {
    await db.executeQuery(markAhead(CompiledQuery.raw(text, [...values])))
  }
}
