import type pg from 'pg'

/** A state of tables in which PostgreSQL makes plans that it keeps while they grow. */
export type TableState = 'of a few rows, analysed' | 'new' | 'grown, never analysed'

/** Rows that a table gains when it grows: its indexes have inner pages then. */
const GROWTH = 600

const LIST_TABLES = `
  select c.relname as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by 1`

/**
 * Puts all tables, which hold a few rows each, into each state in turn and calls `visit`. A state does not follow from what
 * was analysed meanwhile, nor from the sizes that files had. Ends with the rows as they were; statistics and files differ
 * then. `client` is of a superuser, and nobody else uses the database meanwhile.
 */
export async function visitTableStates(
  client: pg.ClientBase,
  visit: (state: TableState) => Promise<void>,
): Promise<void> {
  const { rows } = await client.query<{ name: string }>(LIST_TABLES)
  const tables = rows.map(({ name }) => name)
  const all = tables.map((name) => `public."${name}"`).join(', ')
  const runForEach = (write: (name: string) => string) => client.query(tables.map(write).join(';\n'))
  await client.query('begin; set local session_replication_role = replica')
  try {
    await client.query(`analyze ${all}`)
    await visit('of a few rows, analysed')
    await runForEach((name) => `create temp table "kept ${name}" on commit drop as table public."${name}"`)
    // Also forgets what was analysed.
    await client.query(`truncate ${all}`)
    await visit('new')
    await runForEach((name) => `insert into public."${name}" overriding system value table "kept ${name}"`)
    for (const name of tables) await growTable(client, name)
    await visit('grown, never analysed')
  } finally {
    await client.query('rollback')
  }
}

interface Column {
  name: string
  type: string
  is_key: boolean
}

/** The columns of a table, with those that are keys of unique indexes or in their expressions. */
const LIST_COLUMNS = `
  select format('%I', a.attname) as name, format_type(a.atttypid, null) as type, exists (
      select from pg_index i where i.indrelid = a.attrelid and i.indisunique and (a.attnum = any(i.indkey)
        or i.indexprs is not null and exists (select from pg_depend d
          where d.objid = i.indexrelid and d.refobjid = a.attrelid and d.refobjsubid = a.attnum))) as is_key
  from pg_attribute a
  where a.attrelid = format('public.%I', $1::text)::regclass and a.attnum > 0 and not a.attisdropped
    and a.attgenerated = ''`

/** Values of a type that differ from row to row. */
const VARIED: Record<string, (column: string) => string> = {
  uuid: (column) => `case when ${column} is not null then gen_random_uuid() end`,
  bytea: () => `sha256(convert_to(gen_random_uuid()::text, 'UTF8'))`,
  text: (column) => `${column} || n`,
  bigint: (column) => `${column} + 1000000 + n`,
  integer: (column) => `${column} + 1000000 + n`,
  'timestamp with time zone': (column) => `${column} + n * interval '1 minute'`,
}

/** Adds rows that are like the first one, but for their keys. */
async function growTable(client: pg.ClientBase, table: string): Promise<void> {
  const { rows: columns } = await client.query<Column>(LIST_COLUMNS, [table])
  const names = columns.map(({ name }) => name)
  const values = columns.map(({ name, type, is_key: isKey }) => {
    const isVaried = isKey || type === 'uuid'
    return (isVaried && VARIED[type]?.(`r.${name}`)) || `r.${name}`
  })
  await client.query(`insert into public."${table}" (${names}) overriding system value
    select ${values} from (select * from public."${table}" limit 1) r, generate_series(1, ${GROWTH}) n`)
}
