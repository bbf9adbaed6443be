import { sql } from 'kysely'
import { expect } from 'vitest'
import type { Database } from '../../../src/postgres/statement/database.ts'
import type { ExecutedStatement, PlanNode, WatchedDatabase } from './explain.ts'

/** Rows of which a table has a few, and of which it has many. */
const FEW = 3
const MANY = 1_500

/** Statements of workers, and what they work on. */
export interface WorkerStatements {
  tables: readonly string[]
  /** Writes about so many rows into the empty tables. */
  fill(rows: number): Promise<void>
  /** Executes each statement, often enough for its plan to be kept. */
  prepare(): Promise<void>
  /** Indexes that may stand for each other in the statements with this part, because both are read by a whole group's key. */
  alike?: { sql: string; indexes: readonly [string, string] }
}

/**
 * Makes the plans of statements while their tables are in one state after the other, and expects the same ones in all of
 * them: the planner is left no choice. Ends with tables as they are when they are created, and the plans of that state kept
 * on the one connection of `watched`.
 */
export async function expectSamePlans(
  { db, watched }: { db: Database; watched: WatchedDatabase },
  { tables, fill, prepare, alike }: WorkerStatements,
): Promise<void> {
  const names = sql.join(tables.map((table) => sql.table(table)))
  const run = (query: ReturnType<typeof sql>) => query.execute(db)
  const empty = () =>
    db.connection().execute(async (connection) => {
      // The order of the tables is neither that of their references nor that of locks.
      await sql`set session_replication_role = replica`.execute(connection)
      for (const table of tables) await sql`delete from ${sql.table(table)}`.execute(connection)
      await sql`reset session_replication_role`.execute(connection)
    })
  const states: readonly (readonly [state: string, reach: () => Promise<unknown>])[] = [
    ['of a few rows, analysed', () => fill(FEW).then(() => run(sql`analyze ${names}`))],
    ['grown since', () => empty().then(() => fill(MANY))],
    ['emptied and analysed', () => empty().then(() => run(sql`analyze ${names}`))],
    ['emptied and vacuumed', () => run(sql`vacuum ${names}`)],
    // Truncation also forgets what was analysed.
    ['grown, never analysed', () => run(sql`truncate ${names} cascade`).then(() => fill(MANY))],
    ['new', () => run(sql`truncate ${names} cascade`)],
  ]
  const plans: Record<string, Record<string, string>> = {}
  for (const [state, reach] of states) {
    await reach()
    await sql`discard plans`.execute(watched.db)
    for (const { sql: text, plan } of await executedBy(watched, prepare)) {
      plans[text] ??= {}
      plans[text][state] = alike && text.includes(alike.sql) ? plan.replaceAll(...alike.indexes) : plan
    }
  }
  const differing = Object.entries(plans).filter(([, byState]) => new Set(Object.values(byState)).size > 1)
  expect(Object.fromEntries(differing)).toEqual({})
}

async function executedBy(watched: WatchedDatabase, prepare: () => Promise<void>) {
  const executed = await watched.watch(prepare)
  return executed.map(({ sql: text, nodes }: ExecutedStatement) => ({
    sql: text.replaceAll(/\s+/g, ' ').trim(),
    plan: nodes.map(describeRead).filter(Boolean).join('\n'),
  }))
}

/**
 * How a step reads a table. A bitmap of an index reads the same rows as the index does, and of two equal columns the planner
 * may compare either.
 */
function describeRead(node: PlanNode): string {
  const { 'Node Type': type, 'Relation Name': table, 'Index Name': index, 'Index Cond': condition = '' } = node
  if (index !== undefined) return `${index} ${condition.replaceAll(/\b\w+\./g, '')}`.trim()
  return table !== undefined && type.endsWith('Scan') && type !== 'Bitmap Heap Scan' ? `${type} of ${table}` : ''
}
