import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { request } from 'undici'
import { openDatabaseServer } from '../database-server.ts'
import { untilInterrupted } from '../interruption.ts'
import { monotonicMs } from '../monotonic.ts'
import { findMedian } from '../quantile.ts'
import { POOL_SIZE, startService } from '../service-process.ts'
import { formatTable } from '../text-table.ts'
import { CALLERS, type CallerName, makeCallers } from './callers.ts'
import { type Filled, fillPopulation, type Population } from './population.ts'

/** Requests before those that are measured: they open connections and compile. */
const WARM_UP = 3

const LIST = {
  webhooks: '/api/v3/webhook/webhook',
  subscriptions: '/api/v3/webhook/webhook-event',
  dispatches: '/api/v3/webhook/dispatch',
  events: '/api/v3/webhook/event-occurrence',
  contracts: '/api/v3/contract/contract',
  messages: '/api/v3/realtime/message',
  accounts: '/api/v3/identity/account',
  members: '/api/v3/identity/account/{own}/member',
  users: '/api/v3/identity/user',
  sessions: '/api/v3/identity/session',
  audit: '/api/v3/audit/log',
  jobs: '/api/v3/webhook/replay-job',
  dashboard: '/api/v3/webhook/dashboard/summary',
} as const

/** Query of a list. */
const QUERIES: readonly (readonly [name: string, list: keyof typeof LIST, query: string])[] = [
  ...(Object.keys(LIST) as (keyof typeof LIST)[]).map((list) => [list, list, ''] as const),
  ...(Object.keys(LIST) as (keyof typeof LIST)[])
    .filter((list) => list !== 'dashboard')
    .map((list) => [`${list}, count`, list, '?count=true'] as const),
  ['dispatches, status', 'dispatches', '?filters=status|eq|failed'],
  ['dispatches, no success', 'dispatches', '?filters=status|ne|success'],
  ['dispatches, status code', 'dispatches', '?filters=last_status_code|eq|500'],
  ['dispatches by updated_at', 'dispatches', '?sort=-updated_at'],
  ['events, id of a resource', 'events', '?filters=resource_id|eq|filled-3'],
  ['events, like in a day', 'events', '?filters=resource_id|like|led-3&filters=created_at|gte|{day}'],
  ['contracts by name', 'contracts', '?sort=name'],
  ['contracts, like', 'contracts', '?filters=name|like|ract 29'],
  ['webhooks, like', 'webhooks', '?filters=url|like|receiver.example/77'],
  ['users, like', 'users', '?filters=email|like|person-77'],
  ['users by email', 'users', '?sort=email'],
  ['audit, outcome', 'audit', '?filters=outcome|eq|failure'],
]

/** Milliseconds of each request, by its name and caller; a status where it is no success. */
type Measured = Map<string, Map<CallerName, string>>

/**
 * Measures each list for each kind of caller, beside one account that holds all rows of the others and beside many accounts
 * that hold a few each. Prints medians in milliseconds, as a client sees them.
 */
export async function measureLists(options: { scale: number; rounds: number; only?: Population }): Promise<void> {
  await untilInterrupted(async (stack) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const server = await openDatabaseServer(dataDir)
    stack.defer(() => server.close())
    console.log(`${server.description}. Scale ${options.scale}, medians of ${options.rounds} requests in ms.`)
    const populations: readonly Population[] = options.only ? [options.only] : ['one huge', 'spread']
    for (const population of populations) {
      const connectionString = await server.createDatabase('lists')
      const measured = await measurePopulation(stack, { connectionString, dataDir, population, ...options })
      console.log(`\nBeside ${population === 'spread' ? 'many accounts' : 'one huge account'}:`)
      console.log(formatTable(['list', ...CALLERS], toLines(measured)))
      await server.dropDatabase(connectionString)
    }
  })
}

function toLines(measured: Measured): string[][] {
  return [...measured].map(([name, ofCallers]) => [name, ...CALLERS.map((caller) => ofCallers.get(caller) ?? '')])
}

async function measurePopulation(
  stack: AsyncDisposableStack,
  given: { connectionString: string; dataDir: string; population: Population; scale: number; rounds: number },
): Promise<Measured> {
  const { connectionString, dataDir, rounds } = given
  const adminPassword = randomBytes(12).toString('base64url')
  const options = { connectionString, dataDir, poolSize: POOL_SIZE, adminPassword }
  // A start prepares the database.
  await (await startService(stack, options)).stop()
  const filled = await fill(connectionString, given)
  const service = await startService(stack, options)
  const tokens = await makeCallers(service.origin, adminPassword, filled)
  const measured: Measured = new Map()
  for (const [name, list, query] of QUERIES) {
    const ofCallers = new Map<CallerName, string>()
    for (const caller of CALLERS) {
      const own = caller === 'member of another' ? filled.other : (filled.own[0] ?? '')
      const url = `${service.origin}${fillIn(`${LIST[list]}${query}`, own)}`
      ofCallers.set(caller, await measureRequest(url, tokens[caller], rounds))
    }
    measured.set(name, ofCallers)
  }
  await service.stop()
  return measured
}

async function fill(connectionString: string, given: { population: Population; scale: number }): Promise<Filled> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    return await fillPopulation(client, given)
  } finally {
    await client.end()
  }
}

function fillIn(path: string, own: string): string {
  const day = new Date(Date.now() - 86_400_000).toISOString()
  return encodeURI(path.replace('{own}', own).replace('{day}', day)).replaceAll('|', '%7C')
}

/** The median of a request in ms, or its status when it is refused. */
async function measureRequest(url: string, token: string, rounds: number): Promise<string> {
  const times: number[] = []
  for (let round = -WARM_UP; round < rounds; round += 1) {
    const startedAt = monotonicMs()
    const { statusCode, body } = await request(url, { headers: { authorization: `Bearer ${token}` } })
    await body.dump({ limit: 10_000_000 })
    if (statusCode !== 200) return statusCode === 403 ? '' : String(-statusCode)
    if (round >= 0) times.push(monotonicMs() - startedAt)
  }
  return findMedian(times).toFixed(1)
}
