import { Kysely, PostgresDialect } from 'kysely'
import type { Database } from '../../src/postgres/database.ts'
import type { DB } from '../../src/postgres/tables.generated.ts'
import type { TestDatabase } from './database.ts'

/** A node of a PostgreSQL plan. */
export interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Plan Rows': number
  'Actual Rows'?: number
  'Actual Loops'?: number
  Plans?: PlanNode[]
}

/**
 * Runs `work`, and returns the plan of each statement it made, every node of it: the statements are run once more under
 * EXPLAIN ANALYZE in a transaction that is rolled back.
 */
export async function explainStatements(
  database: TestDatabase,
  work: (db: Database) => Promise<unknown>,
): Promise<{ sql: string; nodes: PlanNode[] }[]> {
  const statements: { sql: string; parameters: readonly unknown[] }[] = []
  const db = new Kysely<DB>({
    dialect: new PostgresDialect({ pool: database.pool }),
    log: ({ query }) => {
      statements.push({ sql: query.sql, parameters: query.parameters })
    },
  })
  await db
    .transaction()
    .execute(async (tx) => {
      await work(tx)
      throw new RolledBack()
    })
    .catch(passOverRollback)
  const explained: { sql: string; nodes: PlanNode[] }[] = []
  const client = await database.pool.connect()
  try {
    await client.query('begin')
    for (const { sql, parameters } of statements.filter((one) =>
      /^\s*(with|select|update|delete|insert)/i.test(one.sql),
    )) {
      const { rows } = await client.query(`explain (analyze, format json) ${sql}`, [...parameters])
      explained.push({ sql, nodes: flatten(rows[0]['QUERY PLAN'][0].Plan) })
    }
  } finally {
    await client.query('rollback')
    client.release()
  }
  return explained
}

class RolledBack extends Error {}

function passOverRollback(error: unknown): void {
  if (!(error instanceof RolledBack)) throw error
}

function flatten(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)]
}
