import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readMonotonicMs, systemClock } from '../../src/base/clock.ts'
import { buildKeyring } from '../../src/base/keyring.ts'
import { systemRandom } from '../../src/base/random.ts'
import { addCell } from '../../src/carriage/cell/add-cell.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/postgres/embedded/embedded.ts'
import { migrate } from '../../src/postgres/migration/migrate.ts'
import { type DatabasePool, openDatabase } from '../../src/postgres/statement/database.ts'
import { startNatsServers } from '../../test/harness/nats/nats-servers.ts'
import { EVENT_TYPE } from '../api-case.ts'
import { call, signIn } from '../api-client.ts'
import { sumFamily } from '../process-times.ts'
import { POOL_SIZE, startService } from '../service-process.ts'
import { describeLoad } from './backlog.ts'

/** Published for a global webhook alone, so that no other event leaves its cell. */
export const CROSSING_TYPE = 'bench-crossing.create'
export const CONTRACT_TYPE = 'contract.create'

/** Accounts of a side, each with one webhook. */
const ACCOUNTS = 20

const DURABLE = {
  ...{ fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on', shared_buffers: '256MB', max_wal_size: '4GB' },
  ...{ wal_level: 'logical', max_wal_senders: '10', max_connections: '200' },
}

/** A service, and the databases that it works on. */
export interface Side {
  origin: string
  jwt: string
  pid: number
  servers: readonly EmbeddedPostgres[]
  pools: readonly DatabasePool[]
  /** Processes of the log. */
  logPids: readonly number[]
  ids: ReadonlyMap<string, string>
}

/** Processor time of a side up to an instant, in ms. */
export interface SideUsage {
  service: number
  postgres: number
  log: number
}

/** Reads it. Throws where it cannot be read: the figures of this bench are of Linux. */
export async function readUsage({ pid, servers, logPids }: Side): Promise<SideUsage> {
  const sum = async (pids: readonly number[]) => {
    let total = 0
    for (const each of pids) {
      const ms = await sumFamily(each)
      if (ms === undefined) throw new Error('the processor time of a process cannot be read here')
      total += ms
    }
    return total
  }
  return {
    service: await sum([pid]),
    postgres: await sum(servers.map((server) => server.pid)),
    log: await sum(logPids),
  }
}

/** A service without a log beside one with home and two cells, each database on a server of its own. */
export interface CellsGround {
  plain: Side
  cells: Side
  /** Makes accounts of a side, each with one webhook for `EVENT_TYPE`; of `cells` in this cell, or in home. */
  makeAccounts(side: Side, cell: string | null, urlOf: (n: number) => string): Promise<string[]>
  description: string
}

/** Starts everything; `stack` ends it. */
export async function openCellsGround(stack: AsyncDisposableStack, program: string): Promise<CellsGround> {
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const startServer = async (name: string) => {
    const given = { random: systemRandom, log: () => {}, settings: DURABLE }
    const server = await startEmbeddedPostgres({ dataDir: join(dataDir, name), ...given })
    stack.defer(() => server.stop())
    return server
  }
  const open = (server: EmbeddedPostgres) => {
    const { connectionString } = server
    const pool = openDatabase({ connectionString, size: 2, applicationName: 'bench', onError: () => {} })
    stack.defer(() => pool.close())
    return pool
  }
  const [alone, home, one, two] = [
    ...[await startServer('plain'), await startServer('home'), await startServer('one'), await startServer('two')],
  ] as [EmbeddedPostgres, EmbeddedPostgres, EmbeddedPostgres, EmbeddedPostgres]
  const nats = await startNatsServers({ program, size: 3 })
  stack.defer(() => nats[Symbol.asyncDispose]())
  const secretKey = randomBytes(32).toString('base64')

  async function startSide(servers: readonly EmbeddedPostgres[], environment: Record<string, string>): Promise<Side> {
    const [first] = servers as [EmbeddedPostgres]
    const adminPassword = randomBytes(18).toString('base64url')
    const service = await startService(stack, {
      ...{ connectionString: first.connectionString, dataDir, poolSize: POOL_SIZE, adminPassword },
      environment: { SECRET_KEY: secretKey, LOG_LEVEL: 'error', ...environment },
    })
    const { jwt } = await signIn(service.origin, adminPassword)
    const { origin, pid } = service
    for (const internal of [EVENT_TYPE, CROSSING_TYPE])
      await call(origin, {
        ...{ jwt, method: 'POST', path: '/api/v3/webhook/event', body: { internal, account_scope: 'account' } },
      })
    const ids = new Map<string, string>()
    for (const name of [EVENT_TYPE, CROSSING_TYPE, CONTRACT_TYPE]) {
      const filter = encodeURIComponent(`internal|eq|${name}`)
      const { data } = await call(origin, { jwt, method: 'GET', path: `/api/v3/webhook/event?filters=${filter}` })
      ids.set(name, (data as unknown as [{ document_id: string }])[0].document_id)
    }
    const logPids = environment.EVENT_LOG_URL ? nats.nodes.flatMap((node) => node.pid() ?? []) : []
    return { origin, jwt, pid, servers, pools: servers.map(open), logPids, ids }
  }

  const plain = await startSide([alone], {})
  const cells = await startSide([home, one, two], { EVENT_LOG_URL: nats.url })
  await addCells(cells, secretKey)
  return {
    ...{ plain, cells },
    makeAccounts: (side, cell, urlOf) => makeAccounts(side, cell, urlOf),
    description: '4 servers of PostgreSQL with durable settings, 3 of NATS, one process for each service',
  }
}

/** Adds the cells `c1` and `c2`, and waits until the process works on them. */
async function addCells({ pools, servers }: Side, secretKey: string): Promise<void> {
  const [home, ...others] = pools as [DatabasePool, ...DatabasePool[]]
  const keyring = buildKeyring([secretKey], systemRandom)
  for (const [index, server] of servers.slice(1).entries())
    await addCell(
      {
        ...{ home: home.db, keyring, migrate, newId: randomUUID, now: () => new Date() },
        open: (connectionString) =>
          openDatabase({ connectionString, size: 2, applicationName: 'bench', onError: () => {} }),
        ...{ monotonicMs: readMonotonicMs, rest: systemClock.sleep, record: async () => {} },
      },
      { name: `c${index + 1}`, url: server.connectionString, source: servers[0]?.connectionString ?? '' },
    )
  for (const { pool } of pools) await pool.query('select open_fence()')
  for (const { pool } of others)
    await until('the workers of a cell', async () => (await pool.query('select from delivery_worker')).rowCount !== 0)
}

async function makeAccounts(side: Side, cell: string | null, urlOf: (n: number) => string): Promise<string[]> {
  const accounts: string[] = []
  for (let n = 0; n < ACCOUNTS; n += 1) {
    const account = await makeAccount(side, cell)
    await subscribe(side, { url: urlOf(n), account }, EVENT_TYPE)
    accounts.push(account)
  }
  return accounts
}

/** An account, in a cell as a move leaves it there. */
export async function makeAccount({ origin, jwt, pools }: Side, cell: string | null): Promise<string> {
  const path = '/api/v3/identity/account'
  const { data } = await call(origin, { jwt, method: 'POST', path, body: { name: 'Bench' } })
  const account = String(data.document_id)
  if (cell === null) return account
  const there = pools[Number(cell.slice(1))] as DatabasePool
  await until('the account in its cell', async () => {
    const { rowCount } = await there.pool.query('select from account where document_id = $1', [account])
    return rowCount === 1
  })
  const fence = 'insert into account_fence (account, version, state) values ($1, 1, $2)'
  await there.pool.query(fence, [account, 'open'])
  const [home] = pools as [DatabasePool]
  await home.pool.query(fence, [account, 'gone'])
  await home.pool.query('insert into account_cell (account, cell, version) values ($1, $2, 1)', [account, cell])
  return account
}

/** Makes a webhook that subscribes to one event type. */
export async function subscribe({ origin, jwt, ids }: Side, body: object, type: string): Promise<void> {
  const made = await call(origin, { jwt, method: 'POST', path: '/api/v3/webhook/webhook', body })
  const path = `/api/v3/webhook/webhook/${made.data.document_id}/events`
  await call(origin, { jwt, method: 'PUT', path, body: { events: [ids.get(type)] } })
}

const LIMIT_MS = 120_000

/** Looks every 50 ms. Throws after two minutes. */
export async function until(what: string, look: () => Promise<boolean>): Promise<void> {
  const startedMs = readMonotonicMs()
  while (!(await look())) {
    if (readMonotonicMs() - startedMs > LIMIT_MS)
      throw new Error(`${what}: not within ${LIMIT_MS / 1_000} s, ${describeLoad()}`)
    await systemClock.sleep(50)
  }
}
