import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { nameOf } from './database-server.ts'
import { readProcess, readStolenMs, sumFamily } from './process-times.ts'

/** Use of one side up to an instant; a member is undefined where this machine or server does not report it. */
export interface Usage {
  /** CPU time of the HTTP server's process, all threads, and of its children. */
  processMs: number | undefined
  /** CPU time of all processes of PostgreSQL. */
  postgresMs: number | undefined
  /** Top-level statements that PostgreSQL ran in the side's database, `begin` and `commit` included. */
  statements: number | undefined
  /** Bytes of WAL that the whole server wrote. */
  walBytes: number | undefined
  /** Processor time that other machines on the host took (`readStolenMs`). */
  stolenMs: number | undefined
}

/** Subjects of a meter: the process that answers, and its database. */
export interface MeteredSide {
  pid: number
  connectionString: string
}

/** Cost of one statement up to an instant. */
export interface StatementCost {
  query: string
  calls: number
  /** Execution and, where it is tracked, planning. */
  totalMs: number
}

/** Reads counters of the machine and of PostgreSQL. */
export interface Meter {
  /** Figures that cannot be read here, one sentence each. */
  gaps: string[]
  read(side: MeteredSide): Promise<Usage>
  /** Every statement of the side's database by its number; empty where they are not counted. */
  listStatements(side: MeteredSide): Promise<Map<string, StatementCost>>
  /**
   * Waits until the side's process and PostgreSQL are idle, so that what an event still causes after its answer is counted
   * with it, and does not run beside the next measurement. Waits 60 s at most, or 1 s where no CPU time is read.
   */
  waitForQuiet(side: MeteredSide): Promise<void>
  close(): Promise<void>
}

/** A side counts as idle when it used less CPU time than this in the interval: its timers use some of it. */
const QUIET_MS = 30
const QUIET_INTERVAL_MS = 250
const QUIET_LIMIT_MS = 60_000

/** Opens a meter on the server of this database. Its own statements there are some two a measurement. */
export async function openMeter(connectionString: string): Promise<Meter> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  const countsStatements = await hasStatementCounter(client)
  const postmaster = await findPostmaster(client)
  const read = async (side: MeteredSide): Promise<Usage> => ({
    processMs: await sumFamily(side.pid),
    postgresMs: postmaster && (await sumFamily(postmaster)),
    statements: countsStatements ? await countStatements(client, nameOf(side.connectionString)) : undefined,
    walBytes: await readWalBytes(client),
    stolenMs: await readStolenMs(),
  })
  const readCpu = async (side: MeteredSide) => {
    const processMs = await sumFamily(side.pid)
    const postgresMs = postmaster && (await sumFamily(postmaster))
    return processMs === undefined || postgresMs === undefined ? undefined : processMs + postgresMs
  }
  return {
    gaps: [
      ...(countsStatements ? [] : ['Statements are not counted: pg_stat_statements is not loaded on this server.']),
      ...(postmaster ? [] : ['CPU time of PostgreSQL is not read: it is no process of this Linux machine.']),
    ],
    read,
    listStatements: async (side) =>
      countsStatements ? await listStatements(client, nameOf(side.connectionString)) : new Map(),
    waitForQuiet: (side) => waitForQuiet(() => readCpu(side)),
    close: () => client.end(),
  }
}

/** Use between two readings. Pure. */
export function subtractUsage(after: Usage, before: Usage): Usage {
  const difference = (member: keyof Usage) => {
    const [from, to] = [before[member], after[member]]
    return from === undefined || to === undefined ? undefined : to - from
  }
  return {
    processMs: difference('processMs'),
    postgresMs: difference('postgresMs'),
    statements: difference('statements'),
    walBytes: difference('walBytes'),
    stolenMs: difference('stolenMs'),
  }
}

async function hasStatementCounter(client: pg.Client): Promise<boolean> {
  try {
    await client.query('create extension if not exists pg_stat_statements')
    await client.query('select from pg_stat_statements limit 1')
    return true
  } catch {
    return false
  }
}

async function countStatements(client: pg.Client, database: string): Promise<number> {
  const { rows } = await client.query<{ calls: number }>(
    `select coalesce(sum(s.calls), 0)::float8 as calls
     from pg_stat_statements s join pg_database d on d.oid = s.dbid where d.datname = $1 and s.toplevel`,
    [database],
  )
  return rows[0]?.calls ?? 0
}

async function listStatements(client: pg.Client, database: string): Promise<Map<string, StatementCost>> {
  const { rows } = await client.query<StatementCost & { id: string }>(
    `select s.queryid::text as id, min(s.query) as query, sum(s.calls)::float8 as calls,
       sum(s.total_exec_time + s.total_plan_time)::float8 as "totalMs"
     from pg_stat_statements s join pg_database d on d.oid = s.dbid where d.datname = $1 and s.toplevel group by 1`,
    [database],
  )
  return new Map(rows.map(({ id, ...cost }) => [id, cost]))
}

async function readWalBytes(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ bytes: number }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes`,
  )
  return rows[0]?.bytes ?? 0
}

/** Waits until what `readCpu` counts (ms) stands still: 60 s at most, or 1 s where it cannot be read. */
export async function waitForQuiet(readCpu: () => Promise<number | undefined>): Promise<void> {
  const endAt = performance.now() + QUIET_LIMIT_MS
  for (let before = await readCpu(); performance.now() < endAt; ) {
    if (before === undefined) return sleep(1000)
    await sleep(QUIET_INTERVAL_MS)
    const after = await readCpu()
    if (after !== undefined && after - before < QUIET_MS) return
    before = after
  }
}

/** The process that started our backend; undefined when PostgreSQL runs elsewhere. */
async function findPostmaster(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const backend = await readProcess(rows[0]?.pid ?? 0)
  if (backend?.name !== 'postgres') return undefined
  const postmaster = await readProcess(backend.parent)
  return postmaster?.name === 'postgres' ? backend.parent : undefined
}
