import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'
import { nameOf } from './database-server.ts'

/** What one side has used up to a moment; a member is undefined where this machine or server does not tell. */
export interface Usage {
  /** CPU time of the HTTP server's process, all threads. */
  processMs: number | undefined
  /** CPU time of all processes of PostgreSQL. */
  postgresMs: number | undefined
  /** Statements that PostgreSQL ran in the side's database, `begin` and `commit` included. */
  statements: number | undefined
}

/** Reads counters of the machine and of PostgreSQL. */
export interface Meter {
  /** What cannot be read here, one sentence each. */
  gaps: string[]
  read(side: { pid: number; connectionString: string }): Promise<Usage>
  /** Waits until the service has routed every recorded event, so that its backlog does not run beside the other side. */
  waitForRouting(): Promise<void>
  close(): Promise<void>
}

/** The unit of /proc/<pid>/stat: USER_HZ, 100 a second on every Linux port that Node runs on. */
const TICK_MS = 10

const ROUTING_LIMIT_MS = 120_000

/** Opens a meter on the service's database. Its own statements there are some two a measurement. */
export async function openMeter(connectionString: string): Promise<Meter> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  const countsStatements = await hasStatementCounter(client)
  const postmaster = await findPostmaster(client)
  return {
    gaps: [
      ...(countsStatements ? [] : ['Statements are not counted: pg_stat_statements is not loaded on this server.']),
      ...(postmaster ? [] : ['CPU time of PostgreSQL is not read: it is no process of this Linux machine.']),
    ],
    read: async (side) => ({
      processMs: (await readProcess(side.pid))?.ownMs,
      postgresMs: postmaster && (await sumFamily(postmaster)),
      statements: countsStatements ? await countStatements(client, nameOf(side.connectionString)) : undefined,
    }),
    waitForRouting: () => waitForRouting(client),
    close: () => client.end(),
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
     from pg_stat_statements s join pg_database d on d.oid = s.dbid where d.datname = $1`,
    [database],
  )
  return rows[0]?.calls ?? 0
}

async function waitForRouting(client: pg.Client): Promise<void> {
  const startedAt = performance.now()
  while (performance.now() - startedAt < ROUTING_LIMIT_MS) {
    const { rows } = await client.query('select from event_occurrence where routed_at is null limit 1')
    if (rows.length === 0) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('the service did not route its events within two minutes')
}

interface ProcessTimes {
  name: string
  parent: number
  /** Its own CPU time. */
  ownMs: number
  /** That of its children that ended. */
  endedMs: number
}

/** The times of a process (proc(5), /proc/<pid>/stat); undefined when it is gone or this is no Linux. */
async function readProcess(pid: number): Promise<ProcessTimes | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The name is in brackets and may hold anything, so fields are counted from the last bracket.
  const [, name = '', rest = ''] = /^\d+ \((.*)\) (.*)$/s.exec(text ?? '') ?? []
  if (name === '') return undefined
  const field = (number: number) => Number(rest.split(' ')[number - 3])
  return {
    name,
    parent: field(4),
    ownMs: (field(14) + field(15)) * TICK_MS,
    endedMs: (field(16) + field(17)) * TICK_MS,
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

/** CPU time of the postmaster and of all its children, those that ended included. */
async function sumFamily(postmaster: number): Promise<number> {
  const names = await readdir('/proc')
  const processes = await Promise.all(
    names.filter((name) => /^\d+$/.test(name)).map((name) => readProcess(Number(name))),
  )
  const childrenMs = processes.reduce((sum, one) => sum + (one?.parent === postmaster ? one.ownMs : 0), 0)
  const head = await readProcess(postmaster)
  return childrenMs + (head ? head.ownMs + head.endedMs : 0)
}
