import type pg from 'pg'
import { type DatabasePool, INDEX_ONLY_PLANS, INDEX_PLANS, openDatabase } from '../../src/postgres/database.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { openReporting, type PlanNode, type PlanReport } from './explain.ts'
import { TEST_CONNECT_LIMIT_MS } from './kept-pool.ts'
import { countTraffic } from './round-trips.ts'

/** A step of a plan that reads a table, or an index of it, without a value of the index's first column. */
export interface WholeRead {
  table: string
  /** The statement, on one line. */
  sql: string
  /** The step, its index and its condition. */
  step: string
}

/** A prepared database whose pools are those of a service: of its requests, and of its workers. */
export interface RequestDatabase extends TestDatabase {
  workerDatabase: DatabasePool
  /**
   * The whole reads in the plans of what the pool of the requests executed: in those that it had, of functions too, and in
   * those that its statements have on tables without rows. All of them are generic plans, as a connection keeps them.
   */
  listWholeReads(): Promise<WholeRead[]>
}

/** Every plan is one for any values. */
const GENERIC = '-c plan_cache_mode=force_generic_plan'

/** Opens such a database. The pool of the requests reports the plan of each statement. */
export async function openRequestDatabase(): Promise<RequestDatabase> {
  const database = await createTestDatabase({ content: 'prepared' })
  const { connectionString } = database
  const reports = new Set<string>()
  const settings = `${INDEX_PLANS} ${GENERIC}`
  const requests = openReporting({ connectionString, size: 10, settings }, (json) => reports.add(json))
  const { texts } = countTraffic(requests.pool)
  const workerDatabase = open(connectionString, INDEX_ONLY_PLANS)
  return {
    ...database,
    ...requests,
    workerDatabase,
    listWholeReads: async () => {
      const firstColumns = await readFirstColumns(database.pool)
      const explained = await explainOnEmpty(new Set(texts))
      const reported = [...reports].map((json): PlanReport => JSON.parse(json))
      return [...explained, ...reported].flatMap((report) => findWholeReads(report, firstColumns))
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

/** The plans of statements on a database that only the start of a service has written to. */
async function explainOnEmpty(texts: ReadonlySet<string>): Promise<PlanReport[]> {
  await using database = await createTestDatabase({ content: 'prepared' })
  const { pool } = open(database.connectionString, `${INDEX_PLANS} ${GENERIC}`)
  try {
    const reports: PlanReport[] = []
    for (const text of texts)
      if (/^\s*(with|select|insert|update|delete)/i.test(text)) reports.push(await explain(pool, text))
    return reports
  } finally {
    await pool.end()
  }
}

async function explain(pool: pg.Pool, text: string): Promise<PlanReport> {
  const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
  const values = count === 0 ? '' : `(${Array(count).fill('null').join()})`
  const all = `prepare one as ${text}; explain (format json) execute one${values}; deallocate one`
  const [, explained] = (await pool.query(all)) as unknown as pg.QueryResult[]
  return { 'Query Text': text, Plan: explained?.rows[0]['QUERY PLAN'][0].Plan }
}

/** The first column or expression of each index, as conditions write it. */
async function readFirstColumns(pool: pg.Pool): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query<{ index: string; column: string }>(`
    select c.relname as index, pg_get_indexdef(i.indexrelid, 1, false) as column
    from pg_index i join pg_class c on c.oid = i.indexrelid where c.relnamespace = 'public'::regnamespace`)
  return new Map(rows.map(({ index, column }) => [index, column]))
}

const READS = ['Seq Scan', 'Index Scan', 'Index Only Scan', 'Bitmap Index Scan']

function findWholeReads(
  { 'Query Text': text, Plan }: PlanReport,
  firstColumns: ReadonlyMap<string, string>,
): WholeRead[] {
  const sql = text.replaceAll(/\s+/g, ' ').trim()
  const visit = (node: PlanNode, above: string): WholeRead[] => {
    const { 'Node Type': type, 'Index Name': index = '', 'Index Cond': condition = '' } = node
    const table = node['Relation Name'] ?? above
    const isWhole = READS.includes(type) && !comparesFirst(condition, firstColumns.get(index) ?? index)
    const here = isWhole ? [{ table, sql, step: [type, index, condition].join(' ').trim() }] : []
    return [...here, ...(node.Plans ?? []).flatMap((one) => visit(one, table))]
  }
  return visit(Plan, '')
}

/** Whether a condition names values of a column: `(column = $1)`, `(column = ANY ($1))`. */
function comparesFirst(condition: string, column: string): boolean {
  const [before = '', ...rest] = condition.split(`${column} = `)
  const [cast = '', ...more] = condition.split(`(${column})::text = `)
  return (rest.length > 0 && before.endsWith('(')) || (more.length > 0 && cast.endsWith('('))
}
