import { expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { keepRows, openRestorable } from './restorable-database.ts'

/** What a test may do to rows, and what a restored database must not show any more. */
const CHANGES: Readonly<Record<string, string>> = {
  'a row in a table that had none': `insert into login_throttle (email_hash, address_hash, failures, last_failure_at)
    values ('\\x01', '\\x02', 1, now())`,
  'a changed row': `update permission set description = 'other' where name = (select min(name) from permission)`,
  'a row more': `insert into permission (name, created_at, updated_at) values ('x', now(), now())`,
  'a row less':
    'delete from role_permission where (role, pattern) in (select role, pattern from role_permission limit 1)',
  'a number of a sequence': `select nextval('recorded_ordinal')`,
  'a row in the place of another': `with gone as (delete from permission where name = (select min(name) from permission))
    insert into permission (name, created_at, updated_at) values ('x', now(), now())`,
}

/** The next numbers of the sequences. */
const NUMBERS = 'select sequencename as name, last_value as row from pg_sequences order by 1'

/** Every row of every table, in a statement for all of them. */
const ROWS = `select string_agg(
    format('select %1$L as name, t::text as row from public.%1$I t', relname), ' union all ') || ' order by name, row' as text
  from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`

async function readRows({ pool }: TestDatabase): Promise<unknown[]> {
  const { rows } = await pool.query(ROWS)
  return [...(await pool.query(rows[0].text)).rows, ...(await pool.query(NUMBERS)).rows]
}

test('a restored database has the rows and numbers that it had, whatever a test did to them, again and again', async () => {
  await using database = await createTestDatabase({ content: 'prepared', isOwn: true })
  const { pool, connectionString } = database
  await keepRows(connectionString)
  const keeper = await openRestorable(connectionString)
  const pids = 'select pid from pg_stat_activity where datname = current_database()'
  const restore = async () => keeper.restore((await pool.query(pids)).rows.map(({ pid }) => pid))
  const before = await readRows(database)
  for (const [change, statement] of [...Object.entries(CHANGES), ...Object.entries(CHANGES)]) {
    expect((await pool.query(statement)).rowCount, change).toBe(1)
    expect(await restore(), change).toBe(true)
    expect(await readRows(database), change).toEqual(before)
  }
  await keeper.close()
})

test.each([
  ['default', `alter table permission alter column description set default 'other'`],
  ['table', 'create table other (id integer)'],
  ['function', `create function other() returns integer language sql as 'select 1'`],
  ['statistics', 'analyze permission'],
])('a database with another %s is not restored', async (_, statement) => {
  await using database = await createTestDatabase({ content: 'prepared', isOwn: true })
  const { pool, connectionString } = database
  await keepRows(connectionString)
  const keeper = await openRestorable(connectionString)
  await pool.query(statement)
  const { rows } = await pool.query('select pid from pg_stat_activity where datname = current_database()')
  expect(await keeper.restore(rows.map(({ pid }) => pid))).toBe(false)
  await keeper.close()
})
