import { Kysely, PostgresDialect, type PostgresPool } from 'kysely'
import type pg from 'pg'
import {
  type Database,
  type DatabasePool,
  INDEX_ONLY_PLANS,
  INDEX_PLANS,
  openDatabase,
} from '../../../src/postgres/statement/database.ts'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'
import { TEST_CONNECT_LIMIT_MS } from '../database/kept-pool.ts'
import { openReporting, type PlanNode, type PlanReport } from './explain.ts'
import { countTraffic } from './round-trips.ts'
import { visitTableStates } from './table-states.ts'

/** A step of a plan that reads a table, or an index of it, without a value of the index's first column. */
export interface WholeRead {
  table: string
  /** The statement, on one line. */
  sql: string
  /** The step, its index and its condition. */
  step: string
  /** Whether all that is read is sorted before a row of it is returned: a sort stands above it, and no limit between. */
  isSorted: boolean
  /** Tables at the time of the plan. */
  state: string
}

/** A prepared database whose pools are those of a service: of its requests, and of its workers. */
export interface RequestDatabase extends TestDatabase {
  workerDatabase: DatabasePool
  /**
   * The whole reads in the plans of what the pool of the requests executed: in those that it had, of functions too, and in
   * those that its statements have in each state of the tables. All of them are generic plans, as a connection keeps them.
   */
  listWholeReads(): Promise<WholeRead[]>
}

/** Opens such a database. The pool of the requests reports the plan of each statement. */
export async function openRequestDatabase(): Promise<RequestDatabase> {
  const database = await createTestDatabase({ content: 'prepared', isOwn: true })
  const { connectionString } = database
  const reports = new Set<string>()
  const requests = openReporting({ connectionString, size: 10, settings: INDEX_PLANS }, (json) => reports.add(json))
  const { texts } = countTraffic(requests.pool)
  const workerDatabase = open(connectionString, INDEX_ONLY_PLANS)
  return {
    ...database,
    ...requests,
    workerDatabase,
    listWholeReads: async () => {
      const firstColumns = await readFirstColumns(database.pool)
      const state = 'as they are'
      const executed = [...reports].flatMap((json) => findWholeReads(JSON.parse(json), { state, firstColumns }))
      const queries = texts.filter((text) => /^\s*(with|select|insert|update|delete)/i.test(text))
      return [...executed, ...(await explainInStates(connectionString, new Set(queries)))]
    },
    [Symbol.asyncDispose]: async () => {
      await requests.close()
      await workerDatabase.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

function open(connectionString: string, settings: string): DatabasePool {
  return openDatabase({
    connectionString,
    size: 2,
    applicationName: 'signalbox test',
    settings,
    connectLimitMs: TEST_CONNECT_LIMIT_MS,
    onError: () => {},
  })
}

/** The whole reads of statements in each state of the tables. */
async function explainInStates(connectionString: string, texts: ReadonlySet<string>): Promise<WholeRead[]> {
  const database = open(connectionString, INDEX_PLANS)
  const client = await database.pool.connect()
  try {
    const firstColumns = await readFirstColumns(client)
    const reads: WholeRead[] = []
    await visitTableStates(client, async (state) => {
      for (const text of texts) reads.push(...findWholeReads(await explain(client, text), { state, firstColumns }))
    })
    return reads
  } finally {
    client.release()
    await database.close()
  }
}

/**
 * The whole reads of what `work` executes, of functions too, in each state of the tables, which hold a few rows each, and how
 * many plans it had. What it writes is rolled back.
 */
export async function listReadsInStates(
  connectionString: string,
  work: (db: Database) => Promise<void>,
): Promise<{ reads: WholeRead[]; plans: number }> {
  const reports: string[] = []
  const database = openReporting({ connectionString, size: 1, settings: INDEX_PLANS }, (json) => reports.push(json))
  const client = await database.pool.connect()
  // Transactions of the one connection, which the visit has begun.
  const lent = { connect: async () => ({ query: client.query.bind(client), release: () => {} }), end: async () => {} }
  const db: Database = new Kysely({ dialect: new PostgresDialect({ pool: lent as unknown as PostgresPool }) })
  try {
    const firstColumns = await readFirstColumns(client)
    const reads: WholeRead[] = []
    let plans = 0
    await visitTableStates(client, async (state) => {
      await client.query('savepoint before_work')
      await client.query('discard plans')
      reports.length = 0
      await work(db)
      for (const json of reports) reads.push(...findWholeReads(JSON.parse(json), { state, firstColumns }))
      plans += reports.length
      await client.query('rollback to savepoint before_work')
    })
    return { reads, plans }
  } finally {
    client.release()
    await database.close()
  }
}

async function explain(client: pg.ClientBase, text: string): Promise<PlanReport> {
  const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
  const values = count === 0 ? '' : `(${Array(count).fill('null').join()})`
  const all = `prepare one as ${text}; explain (format json) execute one${values}; deallocate one`
  const [, explained] = (await client.query(all)) as unknown as pg.QueryResult[]
  return { 'Query Text': text, Plan: explained?.rows[0]['QUERY PLAN'][0].Plan }
}

/** The first column or expression of each index, as conditions write it. */
async function readFirstColumns(pool: pg.Pool | pg.ClientBase): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query<{ index: string; column: string }>(`
    select c.relname as index, pg_get_indexdef(i.indexrelid, 1, false) as column
    from pg_index i join pg_class c on c.oid = i.indexrelid where c.relnamespace = 'public'::regnamespace`)
  return new Map(rows.map(({ index, column }) => [index, column]))
}

const READS = ['Seq Scan', 'Index Scan', 'Index Only Scan', 'Bitmap Index Scan']

function findWholeReads(
  { 'Query Text': text, Plan }: PlanReport,
  { state, firstColumns }: { state: string; firstColumns: ReadonlyMap<string, string> },
): WholeRead[] {
  const sql = text.replaceAll(/\s+/g, ' ').trim()
  const visit = (node: PlanNode, above: { table: string; isSorted: boolean }): WholeRead[] => {
    const { 'Node Type': type, 'Index Name': index = '', 'Index Cond': condition = '' } = node
    const table = node['Relation Name'] ?? above.table
    const isSorted = type === 'Sort' || (above.isSorted && type !== 'Limit')
    const isWhole = READS.includes(type) && !comparesFirst(condition, firstColumns.get(index) ?? index)
    const here = isWhole ? [{ table, sql, step: [type, index, condition].join(' ').trim(), isSorted, state }] : []
    return [...here, ...(node.Plans ?? []).flatMap((plan) => visit(plan, { table, isSorted }))]
  }
  return visit(Plan, { table: '', isSorted: false })
}

/** Whether a condition names values of a column: `(column = $1)`, `(column = ANY ($1))`. */
function comparesFirst(condition: string, column: string): boolean {
  const [before = '', ...rest] = condition.split(`${column} = `)
  const [cast = '', ...more] = condition.split(`(${column})::text = `)
  return (rest.length > 0 && before.endsWith('(')) || (more.length > 0 && cast.endsWith('('))
}
