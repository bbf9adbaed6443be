import { execFile } from 'node:child_process'
import { chown, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { systemRandom } from '../../../src/base/random.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/postgres/embedded/embedded.ts'
import { openDatabase } from '../../../src/postgres/statement/database.ts'
import { findDataRoot } from '../process/data-root.ts'
import { seedDataDir } from '../process/seeded-data-dir.ts'
import { waitFor } from '../run/wait.ts'
import { copyCluster } from './cluster.ts'
import type { TestDatabase } from './database.ts'

/** One of two servers of a database. */
export interface ReplicatedServer {
  connectionString: string
  /** Runs one statement on a connection of its own. */
  ask<Row extends pg.QueryResultRow>(text: string): Promise<Row[]>
  /** Kills every process of the server at once, as a lost machine does. */
  kill(): Promise<void>
  /** Stops every process of the server from running: its connections stay open and nothing answers. */
  freeze(): Promise<void>
  /** Lets a frozen server run on. */
  thaw(): Promise<void>
  stop(): Promise<void>
}

/** A primary server and a standby that streams from it. */
export interface Failover extends AsyncDisposable {
  primary: ReplicatedServer
  standby: ReplicatedServer
  /** Makes the standby take changes; resolves when it does. */
  promote(): Promise<void>
  /** Waits until the standby has applied all of the primary. */
  awaitReplay(): Promise<void>
  /** Stops the stream to an asynchronous standby: what is committed from here on stays with the primary. */
  stopStream(): Promise<void>
  /** Holds what the standby has received back from its readers, or lets it be applied again. */
  setReplay(state: 'paused' | 'running'): Promise<void>
  /** A pool on one or both of them, for tests that read and write rows. */
  open(connectionString: string): TestDatabase
}

/** Whether a commit on the primary waits for the standby. */
export type ReplicationMode = 'synchronous' | 'asynchronous'

const SETTINGS = {
  // The machine stays up, so what was written outlives the server without being forced to disk.
  ...{ fsync: 'off', full_page_writes: 'off' },
  ...{ wal_level: 'replica', max_wal_senders: '5', wal_keep_size: '256MB', hot_standby: 'on' },
}

/** Starts both, with the schema of the service. */
export async function startFailover(mode: ReplicationMode): Promise<Failover> {
  const root = await mkdtemp(join(await findDataRoot(), 'signalbox failover '))
  const [primaryDir, standbyDir] = [join(root, 'primary'), join(root, 'standby')]
  const started: ReplicatedServer[] = []
  const pools: TestDatabase[] = []
  const start = async (dataDir: string, settings: Record<string, string> = {}): Promise<ReplicatedServer> => {
    const server = await startEmbeddedPostgres({
      ...{ dataDir, random: systemRandom, log: () => {}, settings: { ...SETTINGS, ...settings } },
    })
    const built = buildServer(server)
    started.push(built)
    return built
  }
  await seedDataDir(primaryDir)
  const primary = await start(primaryDir)
  await copyRunning(primary.connectionString, { from: primaryDir, to: standbyDir })
  const { hostname, port, username, password } = new URL(primary.connectionString)
  const source = `host=${hostname} port=${port} user=${username} password=${password} application_name=standby`
  const standby = await start(standbyDir, { primary_conninfo: source })
  await waitFor('the stream to the standby', async () => {
    const rows = await primary.ask("select 1 from pg_stat_replication where state = 'streaming'")
    return rows.length === 1
  })
  if (mode === 'synchronous') {
    await primary.ask("alter system set synchronous_standby_names = 'standby'")
    await primary.ask('select pg_reload_conf()')
    await waitFor('the synchronous standby', async () => {
      const [row] = await primary.ask<{ sync_state: string }>('select sync_state from pg_stat_replication')
      return row?.sync_state === 'sync'
    })
  }
  return {
    primary,
    standby,
    promote: async () => {
      const [row] = await standby.ask<{ pg_promote: boolean }>('select pg_promote()')
      if (!row?.pg_promote) throw new Error('the standby was not promoted')
    },
    awaitReplay: async () => {
      const [row] = await primary.ask<{ lsn: string }>('select pg_current_wal_flush_lsn()::text as lsn')
      const text = `select 1 where pg_last_wal_replay_lsn() >= '${row!.lsn}'`
      await waitFor('the replay', async () => (await standby.ask(text)).length === 1)
    },
    stopStream: async () => {
      const [row] = await primary.ask<{ pid: number }>('select pid from pg_stat_replication')
      sendSignal(row!.pid, 'SIGSTOP')
    },
    setReplay: async (state) => {
      await standby.ask(`select pg_wal_replay_${state === 'paused' ? 'pause' : 'resume'}()`)
      // A pause is requested, and holds when the server has seen the request.
      if (state === 'paused')
        await waitFor('the pause of the replay', async () => {
          const [row] = await standby.ask<{ state: string }>('select pg_get_wal_replay_pause_state() as state')
          return row?.state === 'paused'
        })
    },
    open: (connectionString) => {
      const opened = openDatabase({ connectionString, size: 4, applicationName: 'signalbox test', onError: () => {} })
      const pool = { ...opened, connectionString, [Symbol.asyncDispose]: () => opened.close() }
      pools.push(pool)
      return pool
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(pools.map((pool) => pool.close()))
      await Promise.all(started.map((server) => server.stop()))
      await rm(root, { recursive: true, force: true })
    },
  }
}

/** The connection string of both servers, in this order. */
export function nameBoth(server: ReplicatedServer, two: ReplicatedServer): string {
  const host = new URL(two.connectionString).host
  return server.connectionString.replace(/(@[^/]+)/, `$1,${host}`).concat('?target_session_attrs=read-write')
}

/** Copies the files of a running server for a standby of it. The package of the server has no `pg_basebackup`. */
async function copyRunning(connectionString: string, { from, to }: { from: string; to: string }): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    await client.query("select pg_backup_start('standby', true)")
    await mkdir(to, { mode: 0o700 })
    await copyCluster(join(from, 'postgres'), join(to, 'postgres'))
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
    const files = join(to, 'postgres', 'data')
    await rm(join(files, 'postmaster.pid'))
    const { uid, gid } = await stat(files)
    for (const [name, text] of [
      ['backup_label', rows[0]!.labelfile],
      ['standby.signal', ''],
    ] as const) {
      await writeFile(join(files, name), text)
      await chown(join(files, name), uid, gid)
    }
  } finally {
    await client.end()
  }
}

function buildServer(server: EmbeddedPostgres): ReplicatedServer {
  let isFrozen = false
  const signal = async (name: NodeJS.Signals) => {
    for (const pid of [server.pid, ...(await listChildren(server.pid))]) sendSignal(pid, name)
  }
  return {
    connectionString: server.connectionString,
    ask: (text) => ask(server.connectionString, text),
    kill: async () => {
      await signal('SIGKILL')
      await server.exited
    },
    freeze: async () => {
      isFrozen = true
      await signal('SIGSTOP')
    },
    thaw: async () => {
      isFrozen = false
      await signal('SIGCONT')
    },
    stop: async () => {
      if (isFrozen) await signal('SIGCONT')
      await server.stop()
    },
  }
}

async function ask<Row extends pg.QueryResultRow>(connectionString: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}

/** The processes of a server beside its first one: each of them serves one connection, or works in the background. */
async function listChildren(parent: number): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid='])
  return stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([pid, ppid]) => (pid !== undefined && ppid === parent ? [pid] : []))
}

function sendSignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    // It has ended by itself.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
