import { Kysely, PostgresDialect } from 'kysely'
import { type Database, type DatabasePool, openDatabase } from '../../../src/postgres/statement/database.ts'
import type { DB } from '../../../src/postgres/statement/tables.generated.ts'
import type { TestDatabase } from '../database/database.ts'
import { TEST_CONNECT_LIMIT_MS } from '../database/kept-pool.ts'

/** A node of a PostgreSQL plan. */
export interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  'Plan Rows': number
  'Actual Rows'?: number
  'Actual Loops'?: number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
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
    for (const { sql, parameters } of statements.filter((statement) =>
      /^\s*(with|select|update|delete|insert)/i.test(statement.sql),
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

/** A statement as it was executed, of a function too. */
export interface ExecutedStatement {
  sql: string
  nodes: PlanNode[]
}

/** A pool of one connection that reports its plans. */
export interface WatchedDatabase extends AsyncDisposable {
  db: Database
  /** Runs `work`, and returns what was executed for it: prepared statements with the plans that they have. */
  watch(work: (db: Database) => Promise<unknown>): Promise<ExecutedStatement[]>
}

/** `auto_explain` reports the plan of each statement to the client. */
const REPORTING = [
  'session_preload_libraries=auto_explain',
  'auto_explain.log_min_duration=0',
  'auto_explain.log_format=json',
  'auto_explain.log_nested_statements=on',
  'auto_explain.log_level=notice',
]

/** With what the steps of the plan did. */
const MEASURING = ['auto_explain.log_analyze=on', 'auto_explain.log_timing=off']

/** A plan as `auto_explain` reports it. */
export interface PlanReport {
  'Query Text': string
  Plan: PlanNode
}

/**
 * Opens a pool with these settings whose connections report the plan of each statement that they execute, of functions too:
 * the JSON of a `PlanReport`.
 */
export function openReporting(
  { connectionString, size, settings }: { connectionString: string; size: number; settings: string },
  onReport: (json: string) => void,
): DatabasePool {
  const opened = openDatabase({
    connectionString,
    size,
    applicationName: 'signalbox test',
    settings: `${settings} ${REPORTING.map((setting) => `-c ${setting}`).join(' ')}`,
    connectLimitMs: TEST_CONNECT_LIMIT_MS,
    onError: () => {},
  })
  opened.pool.on('connect', (client) => {
    client.on('notice', ({ message = '' }) => {
      const [, json] = /^duration: [\d.]+ ms {2}plan:\n([\s\S]+)$/.exec(message) ?? []
      if (json !== undefined) onReport(json)
    })
  })
  return opened
}

/** Opens a pool of one connection with these settings that tells what was executed, with what the steps of the plans did. */
export function openMeasuring(
  connectionString: string,
  settings: string,
  onExecuted: (executed: ExecutedStatement) => void,
): DatabasePool {
  const measuring = MEASURING.map((setting) => `-c ${setting}`).join(' ')
  return openReporting({ connectionString, size: 1, settings: `${settings} ${measuring}` }, (json) => {
    const report: PlanReport = JSON.parse(json)
    onExecuted({ sql: report['Query Text'], nodes: flatten(report.Plan) })
  })
}

/** Opens a connection to the database of a test with these settings. */
export function openWatched({ connectionString }: TestDatabase, settings: string): WatchedDatabase {
  let executed: ExecutedStatement[] = []
  const opened = openMeasuring(connectionString, settings, (step) => executed.push(step))
  return {
    db: opened.db,
    watch: async (work) => {
      executed = []
      await work(opened.db)
      return executed
    },
    [Symbol.asyncDispose]: () => opened.close(),
  }
}

class RolledBack extends Error {}

function passOverRollback(error: unknown): void {
  if (!(error instanceof RolledBack)) throw error
}

function flatten(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)]
}
