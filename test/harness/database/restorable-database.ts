import pg from 'pg'

/** A database that can be made as it was when it was opened. */
export interface RestorableDatabase {
  connectionString: string
  /**
   * Puts back the rows and the numbers of sequences that the database had. False when that would not make it as it was:
   * its tables, functions, triggers, settings or statistics differ, or somebody but the server processes `known` is still
   * connected. It is then of no further use.
   */
  restore(known: readonly number[]): Promise<boolean>
  /** Ends the connection that this object keeps. */
  close(): Promise<void>
}

/** How often, and at what interval in milliseconds, connections that are ending are looked for. */
const ENDING_CHECKS = 100
const ENDING_PAUSE_MS = 10

/** The latest transaction that wrote one of the selected rows. Text of each number would take most of the time. */
const LATEST = `age('3'::xid) - min(age(xmin))`

/**
 * Keeps a copy of the rows, and a function that puts them and the numbers of sequences back, without any trigger or check of
 * references. It passes over tables whose files are empty, and over those with as many rows as they had that nobody has
 * written since: a hundred statements less in most tests.
 */
const KEEP_ROWS = `
create schema kept_rows;
create type kept_rows.state as (count bigint, latest bigint);
create table kept_rows.kept (name text primary key, state kept_rows.state);
do $$
declare
  name text;
  has_rows boolean;
  found oid;
  seen text;
  last bigint;
  is_used boolean;
  body text := '';
begin
  for name, found in select relname, oid from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' loop
    execute format('select exists (select from public.%I)', name) into has_rows;
    if has_rows then
      execute format('create table kept_rows.%1$I as table public.%1$I', name);
      seen := format('(select (count(*), ${LATEST.replaceAll("'", "''")})::kept_rows.state from public.%I)', name);
      execute format('insert into kept_rows.kept values (%L, %s)', name, seen);
      body := body || format(
        'if %2$s is distinct from (select state from kept_rows.kept where name = %1$L) then
           delete from public.%1$I;
           insert into public.%1$I table kept_rows.%1$I;
           update kept_rows.kept set state = %2$s where name = %1$L;
         end if;', name, seen);
    else
      body := body || format('if pg_relation_size(%s) > 0 then delete from public.%I; end if;', found, name);
    end if;
  end loop;
  for name, found in select relname, oid from pg_class where relnamespace = 'public'::regnamespace and relkind = 'S' loop
    execute format('select last_value, is_called from public.%I', name) into last, is_used;
    body := body || format('perform setval(%s, %s, %L);', found, last, is_used);
  end loop;
  execute format('create function kept_rows.restore() returns void language plpgsql as %L', 'begin ' || body || ' end');
end $$`

/** Latest transactions that changed the catalogues, which differ after a change of anything but rows. */
const READ_MARK = `select concat_ws(' ',
  ${[
    'pg_class where oid',
    'pg_attribute where attrelid',
    'pg_constraint where oid',
    'pg_proc where oid',
    'pg_type where oid',
  ]
    .map((rows) => `(select concat(count(*), ':', ${LATEST}) from ${rows} >= 16384)`)
    .join(', ')},
  ${['pg_trigger', 'pg_namespace', 'pg_db_role_setting']
    .map((table) => `(select concat(count(*), ':', ${LATEST}) from ${table})`)
    .join(', ')},
  (select count(*) from pg_statistic where starelid >= 16384)) as mark`

const COUNT_OTHERS = `select count(*)::int as count from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and pid <> all ($1)`

/** Keeps the rows of a database, and of the clones of it. */
export async function keepRows(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query(KEEP_ROWS)
  await client.end()
}

/** Opens a database whose rows are kept. */
export async function openRestorable(connectionString: string): Promise<RestorableDatabase> {
  const client = new pg.Client({
    connectionString,
    application_name: 'signalbox test keeper',
    lock_timeout: 1_000,
    // Set here, because a change of this setting makes the server plan every statement of the function anew.
    options: '-c session_replication_role=replica',
  })
  client.on('error', () => {})
  await client.connect()
  // A process of tests does not wait for this connection to end.
  ;(client as unknown as { unref(): void }).unref()
  const readMark = async () => (await client.query({ name: 'mark', text: READ_MARK })).rows[0].mark as string
  const mark = await readMark()
  const isAlone = async (known: readonly number[]) =>
    (await client.query({ name: 'others', text: COUNT_OTHERS, values: [known] })).rows[0].count === 0
  const restore = async (known: readonly number[]) => {
    for (let checks = 1; !(await isAlone(known)); checks += 1) {
      if (checks === ENDING_CHECKS) return false
      await new Promise((resolve) => setTimeout(resolve, ENDING_PAUSE_MS))
    }
    if ((await readMark()) !== mark) return false
    await client.query({ name: 'restore', text: 'select kept_rows.restore()' })
    return true
  }
  return {
    connectionString,
    // A connection that was ended, by a test of such faults, restores nothing.
    restore: (known) => restore(known).catch(() => false),
    close: () => client.end().catch(() => {}),
  }
}
