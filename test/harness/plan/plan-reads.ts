import { sql } from 'kysely'
import { expect } from 'vitest'
import type { Database } from '../../../src/postgres/statement/database.ts'
import type { ExecutedStatement, PlanNode, WatchedDatabase } from './explain.ts'

/** Nothing may analyse these tables while a test runs: they are as they are after a burst of work. */
export async function keepUnanalysed(db: Database, tables: readonly string[]): Promise<void> {
  for (const table of tables) await sql`alter table ${sql.table(table)} set (autovacuum_enabled = off)`.execute(db)
}

/**
 * Runs `work` and expects of its statements that they read no table through, but for the `small` ones, and `most` rows at
 * most. With `SHOW_PLANS` in the environment it prints what each step of each plan read.
 */
export async function expectFewReads<Result>(
  watched: WatchedDatabase,
  { most, small = [] }: { most: number; small?: readonly string[] },
  work: (db: Database) => Promise<Result>,
): Promise<Result> {
  let result: Result | undefined
  const executed = await watched.watch(async (db) => {
    result = await work(db)
  })
  if (process.env.SHOW_PLANS) process.stdout.write(`${expect.getState().currentTestName}\n${describePlans(executed)}\n`)
  expect(executed.length).toBeGreaterThan(0)
  expect(listReadThrough(executed).filter((table) => !small.includes(table))).toEqual([])
  const read = executed.flatMap(({ nodes }) => nodes).reduce((sum, node) => sum + countRowsRead(node), 0)
  expect(read, describeReads(executed)).toBeLessThanOrEqual(most)
  return result as Result
}

/** Steps that read a table through. */
function listReadThrough(executed: readonly ExecutedStatement[]): string[] {
  return executed
    .flatMap(({ nodes }) => nodes)
    .filter((node) => node['Node Type'] === 'Seq Scan' && node['Actual Loops'] !== 0)
    .map((node) => node['Relation Name'] ?? '')
}

/**
 * Rows that a step took from a table or an index, with those that it then passed over. What a bitmap scan takes is counted
 * where it reads the index: some entries of former versions of rows are among it.
 */
function countRowsRead(node: PlanNode): number {
  if (!node['Node Type'].includes('Scan') || nameOf(node) === undefined) return 0
  const passedOver = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  const taken = node['Node Type'] === 'Bitmap Heap Scan' ? 0 : (node['Actual Rows'] ?? 0)
  return (taken + passedOver) * (node['Actual Loops'] ?? 1)
}

/** Relation that a step reads: a table, or the index of a bitmap scan, which does not name its table. */
function nameOf(node: PlanNode): string | undefined {
  return node['Relation Name'] ?? (node['Node Type'] === 'Bitmap Index Scan' ? node['Index Name'] : undefined)
}

/** Step that read most, for the message of a failure. */
function describeReads(executed: readonly ExecutedStatement[]): string {
  return executed
    .flatMap(({ nodes }) => nodes)
    .filter((node) => countRowsRead(node) > 0)
    .map((node) => `${countRowsRead(node)} by ${node['Node Type']} of ${nameOf(node)}`)
    .join('\n')
}

/** Each statement with the steps of its plan that reach a table. */
function describePlans(executed: readonly ExecutedStatement[]): string {
  const steps = (nodes: readonly PlanNode[]) =>
    nodes
      .filter((node) => nameOf(node) && node['Actual Loops'] !== 0)
      .map((node) => {
        const by = node['Index Name'] ? ` by ${node['Index Name']}` : ''
        return `    ${node['Node Type']} of ${nameOf(node)}${by}: ${countRowsRead(node)} rows`
      })
  const begin = (text: string) => text.replaceAll(/\s+/g, ' ').trim().slice(0, 100)
  return executed.map(({ sql: text, nodes }) => [`  ${begin(text)}`, ...steps(nodes)].join('\n')).join('\n')
}
