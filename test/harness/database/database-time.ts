import type pg from 'pg'

/**
 * Puts a `clock_timestamp()` before that of PostgreSQL, for connections that are opened afterwards and those of `pool`: a
 * test then steps the clock of its database (`stepDatabaseClock`). The machine's stays.
 */
export async function shadowDatabaseClock(pool: pg.Pool): Promise<void> {
  const path = 'shadow, pg_catalog, public'
  await pool.query(`
    create schema shadow;
    create table shadow.step (ms bigint not null);
    insert into shadow.step values (0);
    create function shadow.clock_timestamp() returns timestamptz language sql volatile as
      $$ select pg_catalog.clock_timestamp() + (select ms from shadow.step) * interval '1 ms' $$;
    do $$ begin execute format('alter database %I set search_path = ${path}', current_database()); end $$`)
  // The connections that are open keep what they were opened with.
  pool.on('acquire', (client) => void client.query(`set search_path = ${path}`))
}

/** Sets the clock of the database this much ahead of the real one. */
export async function stepDatabaseClock(pool: pg.Pool, ms: number): Promise<void> {
  await pool.query('update shadow.step set ms = $1', [ms])
}
