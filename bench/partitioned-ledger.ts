import type pg from 'pg'

/** The tables that grow with deliveries, and the column whose first 48 bits are the time of the row. */
const LAYOUT = [
  { table: 'event_occurrence', key: 'document_id', primary: 'document_id' },
  { table: 'webhook_dispatch_ended', key: 'document_id', primary: 'document_id' },
  { table: 'webhook_attempt', key: 'dispatch', primary: 'dispatch, attempt' },
] as const

/** The least id of an instant. */
const leastIdAt = (at: string) =>
  `(lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid`

/** Days of partitions: those of a filled ledger, and some ahead. */
const DAYS = { back: 21, ahead: 7 }

/**
 * Replaces the tables of the ledger by ones that are partitioned by ranges of the id, of so many days each, with the same
 * rows, indexes, settings and views. Rows outside of all ranges go to a default partition.
 */
export async function splitLedger(client: pg.Client, days: number): Promise<void> {
  await client.query('begin')
  const views = await readViews(client)
  for (const layout of LAYOUT) await split(client, layout, days)
  for (const { name, definition } of views) await client.query(`create or replace view ${name} as ${definition}`)
  for (const { table } of LAYOUT) await client.query(`drop table ${table}_plain`)
  await client.query('commit')
  await client.query('vacuum analyze')
}

/** The views of the tables. They keep to the renamed tables until they are made again by the names. */
async function readViews(client: pg.Client): Promise<{ name: string; definition: string }[]> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `select distinct v.oid::regclass::text as name, pg_get_viewdef(v.oid) as definition
     from pg_depend d join pg_rewrite r on r.oid = d.objid join pg_class v on v.oid = r.ev_class
     where d.refobjid = any($1::regclass[]) and v.relkind = 'v'`,
    [LAYOUT.map(({ table }) => table)],
  )
  return rows
}

async function split(client: pg.Client, { table, key, primary }: (typeof LAYOUT)[number], days: number): Promise<void> {
  const { rows: indexes } = await client.query<{ definition: string }>(
    `select pg_get_indexdef(indexrelid) as definition from pg_index where indrelid = $1::regclass and not indisprimary`,
    [table],
  )
  const { rows: settings } = await client.query<{ options: string | null }>(
    `select array_to_string(reloptions, ', ') as options from pg_class where oid = $1::regclass`,
    [table],
  )
  const options = settings[0]?.options
  await client.query(`alter table ${table} rename to ${table}_plain`)
  await client.query(
    `create table ${table} (like ${table}_plain including defaults including constraints) partition by range (${key})`,
  )
  const { rows: bounds } = await client.query<{ at: string; name: string }>(
    `select ${leastIdAt('day')}::text as at, to_char(day, 'YYYYMMDD') as name
     from generate_series(date_trunc('day', now()) - $1 * interval '1 day',
       date_trunc('day', now()) + $2 * interval '1 day', $3 * interval '1 day') day`,
    [DAYS.back, DAYS.ahead, days],
  )
  const settingsOf = options ? ` with (${options})` : ''
  for (const [index, { at, name }] of bounds.entries()) {
    const from = index === 0 ? 'minvalue' : `'${at}'`
    const to = bounds[index + 1]?.at
    const range = to === undefined ? 'default' : `for values from (${from}) to ('${to}')`
    await client.query(`create table ${table}_${to ? name : 'other'} partition of ${table} ${range}${settingsOf}`)
  }
  await client.query(`insert into ${table} select * from ${table}_plain`)
  await client.query(`alter table ${table} add primary key (${primary})`)
  for (const { definition } of indexes)
    await client.query(
      `create ${definition.includes('UNIQUE') ? 'unique ' : ''}index on ${table} ${shapeOf(definition)}`,
    )
}

/** The part of the definition of an index behind its table. */
const shapeOf = (definition: string) => definition.slice(definition.indexOf('USING'))

/** The partitions of deliveries, and of their attempts, with rows of before `before` alone. */
export async function listOldPartitions(client: pg.Client, before: Date): Promise<[ended: string, attempts: string][]> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname as name, substring(pg_get_expr(c.relpartbound, c.oid) from $$TO \\('([^']+)'\\)$$)::uuid as least
     from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'webhook_dispatch_ended'::regclass and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
       and substring(pg_get_expr(c.relpartbound, c.oid) from $$TO \\('([^']+)'\\)$$)::uuid <= ${leastIdAt('$1::timestamptz')}`,
    [before],
  )
  return rows.map(({ name }) => [name, name.replace('webhook_dispatch_ended', 'webhook_attempt')])
}

/**
 * Makes the table of deliveries the first partition of a new one, as it would be done beside a running service. Returns the
 * milliseconds of the check of its rows, which blocks nothing, and of the locks that block all statements on the table.
 */
export async function attachWhole(client: pg.Client): Promise<{ checkMs: number; lockMs: number }> {
  const timed = async (text: string) => {
    const startedAt = performance.now()
    await client.query(text)
    return performance.now() - startedAt
  }
  const table = 'webhook_dispatch_ended'
  const { rows } = await client.query<{ least: string }>(
    `select ${leastIdAt(`date_trunc('day', now()) + interval '2 days'`)}::text as least`,
  )
  const least = rows[0]?.least
  const views = (await readViews(client)).map(
    ({ name, definition }) => `create or replace view ${name} as ${definition}`,
  )
  const { rows: indexes } = await client.query<{ definition: string }>(
    `select pg_get_indexdef(indexrelid) as definition from pg_index where indrelid = $1::regclass and not indisprimary`,
    [table],
  )
  const added = await timed(
    `alter table ${table} add constraint ${table}_range check (document_id < '${least}') not valid`,
  )
  const checkMs = await timed(`alter table ${table} validate constraint ${table}_range`)
  const swapped = await timed(`begin;
    alter table ${table} rename to ${table}_first;
    create table ${table} (like ${table}_first including defaults) partition by range (document_id);
    alter table ${table} add primary key (document_id);
    ${indexes.map(({ definition }) => `create index on ${table} ${shapeOf(definition)};`).join('\n')}
    alter table ${table} attach partition ${table}_first for values from (minvalue) to ('${least}');
    create table ${table}_other partition of ${table} default;
    ${views.join('\n')}
    commit`)
  return { checkMs, lockMs: added + swapped }
}
