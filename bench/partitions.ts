import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { migrate } from '../src/postgres/migration/migrate.ts'
import { openDatabaseServer } from './database-server.ts'
import { untilInterrupted } from './interruption.ts'
import { monotonicMs } from './monotonic.ts'
import { findMedian } from './quantile.ts'
import { formatTable } from './text-table.ts'

/** Ended rows of each layout, over so many days. */
const ROWS = 90_000
const DAYS = 30
/** Rows of one insert, as of a settling under load, and of one delete, as of maintenance. */
const INSERT_BATCH = 500
const DELETE_BATCH = 1_000
const LOOKUPS = 2_000
/** The days that retention removes. */
const OLD_DAYS = 3

const FIRST_DAY = `'2026-01-01'::timestamptz`

/** One layout of the ended rows and the attempt log. */
interface Layout {
  ended: string
  attempts: string
  /** Constraints and indexes of the attempt log. */
  extra: string
}

const PLAIN: Layout = { ended: 'webhook_dispatch_ended', attempts: 'webhook_attempt', extra: '' }
const BY_DAY: Layout = { ended: 'ended_by_day', attempts: 'attempt_by_day', extra: ', at' }

/**
 * Compares the ended rows and the attempt log as they are with the same partitioned by day: inserts, look-ups by id, and
 * what removes old rows. Prints microseconds a row, medians of the rounds (docs/decisions/0011-batched-deletes.md).
 */
export async function measurePartitions(rounds: number): Promise<void> {
  await untilInterrupted(async (stack) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const server = await openDatabaseServer(dataDir)
    stack.defer(() => server.close())
    const connectionString = await server.createDatabase('partitions')
    await migrate(connectionString)
    const client = new pg.Client({ connectionString })
    await client.connect()
    stack.defer(() => client.end())
    await prepare(client)
    console.log(`${server.description}. ${ROWS} rows over ${DAYS} days.`)
    const measured: Record<string, number>[] = []
    for (let round = 0; round < rounds; round += 1) measured.push(await measureRound(client))
    const lines = Object.keys(measured[0] ?? {}).map((what) => {
      const values = measured.map((measurement) => measurement[what] ?? 0)
      return [what, findMedian(values).toFixed(1), Math.min(...values).toFixed(1), Math.max(...values).toFixed(1)]
    })
    console.log(formatTable(['what', 'µs a row', 'least', 'most'], lines))
  })
}

/** Makes the partitioned tables with the columns and indexes of the plain ones, and the ids of the rows. */
async function prepare(client: pg.Client): Promise<void> {
  // Only the cost of the rows is compared.
  await client.query('set session_replication_role = replica')
  await client.query(`
    create table ${BY_DAY.ended} (like ${PLAIN.ended} including defaults) partition by range (created_at);
    create table ${BY_DAY.attempts} (like ${PLAIN.attempts} including defaults, created_at timestamptz not null)
      partition by range (created_at);
    alter table ${BY_DAY.attempts} add primary key (dispatch, attempt, created_at)`)
  const { rows } = await client.query<{ indexdef: string }>(
    'select indexdef from pg_indexes where schemaname = current_schema and tablename = $1',
    [PLAIN.ended],
  )
  for (const { indexdef } of rows) {
    // A unique index of a partitioned table contains its key.
    const isKey = indexdef.includes('UNIQUE')
    const shape = indexdef.slice(indexdef.indexOf('USING'))
    const columns = isKey ? shape.replace('(document_id)', '(document_id, created_at)') : shape
    await client.query(`create ${isKey ? 'unique ' : ''}index on ${BY_DAY.ended} ${columns}`)
  }
  for (let day = 0; day < DAYS; day += 1) {
    for (const table of [BY_DAY.ended, BY_DAY.attempts])
      await client.query(`create table ${table}_${day} partition of ${table}
        for values from (${FIRST_DAY} + interval '${day} day') to (${FIRST_DAY} + interval '${day + 1} day')`)
  }
  await client.query(`
    create table given as select n, gen_random_uuid() as id, gen_random_uuid() as event, n % 50 as hook,
      ${FIRST_DAY} + n * interval '${DAYS} day' / ${ROWS + 1} as at from generate_series(1, ${ROWS}) n;
    create table hook as select n, gen_random_uuid() as id from generate_series(0, 49) n;
    create index on given (n)`)
}

async function measureRound(client: pg.Client): Promise<Record<string, number>> {
  const layouts = [PLAIN, BY_DAY]
  await client.query(`truncate ${layouts.flatMap(({ ended, attempts }) => [ended, attempts]).join(', ')}`)
  const inserted = { plain: await timeInserts(client, PLAIN), byDay: await timeInserts(client, BY_DAY) }
  await client.query(`analyze ${PLAIN.ended}; analyze ${BY_DAY.ended}`)
  const found = { plain: await timeLookups(client, PLAIN), byDay: await timeLookups(client, BY_DAY) }
  const old = (ROWS / DAYS) * OLD_DAYS
  return {
    'insert, plain': inserted.plain / ROWS,
    'insert, by day': inserted.byDay / ROWS,
    'look-up by id, plain': found.plain / LOOKUPS,
    'look-up by id, by day': found.byDay / LOOKUPS,
    'delete by batches, plain': (await timeDeletes(client)) / old,
    'vacuum after it, plain': (await time(() => client.query(`vacuum ${PLAIN.ended}, ${PLAIN.attempts}`))) / old,
    'drop of partitions, by day': (await timeDrops(client)) / old,
  }
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const startedAt = monotonicMs()
  await work()
  return (monotonicMs() - startedAt) * 1_000
}

function timeInserts(client: pg.Client, { ended, attempts, extra }: Layout): Promise<number> {
  return time(async () => {
    for (let start = 0; start < ROWS; start += INSERT_BATCH) {
      const range = `g.n > ${start} and g.n <= ${start + INSERT_BATCH}`
      await client.query(`begin;
        insert into ${ended} (document_id, webhook, event, status, attempts, created_at, updated_at, event_id, account,
          last_attempt_at, last_status_code, last_duration_ms, delivered_at, ended_at, is_test, attempt_trigger, fence)
        select g.id, h.id, 'bench-order.create', 'success', 1, at, at, event, h.id, at, 200, 12, at, at, false, 'schedule', 1
        from given g join hook h on h.n = g.hook where ${range};
        insert into ${attempts}
        select id, 1, 'schedule', 'worker', at, 12, 200, null, 'ok', '{"content-type":"text/plain"}',
          '{"totalMs":1.2,"firstByteMs":0.8,"dnsMs":null,"connectMs":null,"tlsMs":null}'${extra}
        from given g where ${range};
        commit`)
    }
  })
}

async function timeLookups(client: pg.Client, { ended }: Layout): Promise<number> {
  const { rows } = await client.query<{ id: string }>(`select id from given order by random() limit ${LOOKUPS}`)
  const text = `select * from ${ended} where document_id = $1`
  return time(async () => {
    for (const { id } of rows) await client.query({ name: ended, text, values: [id] })
  })
}

/** Deletes the old rows as maintenance does. */
function timeDeletes(client: pg.Client): Promise<number> {
  return time(async () => {
    for (let deleted = DELETE_BATCH; deleted === DELETE_BATCH; ) {
      const { rows } = await client.query<{ deleted: number }>(`
        with old as (
          select document_id from ${PLAIN.ended} where created_at < ${FIRST_DAY} + interval '${OLD_DAYS} day'
          order by created_at limit ${DELETE_BATCH} for update skip locked
        ), gone as (
          delete from ${PLAIN.ended} where document_id = any(array(select document_id from old)) returning document_id
        ), gone_attempts as (
          delete from ${PLAIN.attempts} where dispatch = any(array(select document_id from gone))
        )
        select count(*)::int as deleted from gone`)
      deleted = rows[0]?.deleted ?? 0
    }
  })
}

/** Drops the old partitions, and brings them back. */
async function timeDrops(client: pg.Client): Promise<number> {
  await client.query('begin')
  const tables = Array.from({ length: OLD_DAYS }, (_, day) => `${BY_DAY.ended}_${day}, ${BY_DAY.attempts}_${day}`)
  const spent = await time(() => client.query(`drop table ${tables.join(', ')}`))
  await client.query('rollback')
  return spent
}
