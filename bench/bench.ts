import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import { API_CASES } from './api-case.ts'
import { IDENTITY_CASES } from './identity-case.ts'
import { OAUTH_CASES } from './oauth-case.ts'
import { PRODUCTS, type ProductName } from './peers/products.ts'
import type { RealtimeLoad } from './realtime.ts'
import { measureTable, ROW_NAMES } from './table.ts'

/** The measurements by name, each beside a baseline in the same run: `npm run bench -- --help`. */

function readCount(text: string): number {
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1) throw new InvalidArgumentError('It must be a whole number from 1.')
  return count
}

function readSeconds(text: string): number {
  const seconds = Number(text)
  if (!(seconds > 0)) throw new InvalidArgumentError('It must be a number above 0.')
  return seconds
}

function readCounts(text: string): number[] {
  return text.split(',').map(readCount)
}

/** Publications a second of `realtime-bus`. */
const BUS_RATES = [200, 800, 1_600, 3_200, 6_400, 12_800, 25_600]

interface PeersFlags {
  origin?: string
  token: string
  project?: string
  pids: number[]
  seconds: number
}

function readRows(text: string): string[] {
  const names = text.split(',')
  const unknown = names.find((name) => !ROW_NAMES.includes(name))
  if (unknown !== undefined) throw new InvalidArgumentError(`There is no row ${unknown}.`)
  return names
}

const program = new Command('bench').description('Measures the service, each time beside a baseline in the same run.')

program
  .command('deliveries', { isDefault: true })
  .description('deliveries a second through the whole path, beside a bare undici loop (the default)')
  .argument('[count]', 'deliveries a round', readCount, 10_000)
  .argument('[rounds]', 'rounds', readCount, 3)
  .action(async (count: number, rounds: number) => {
    const { measureDeliveries } = await import('./deliveries.ts')
    await measureDeliveries({ count, rounds })
  })

program
  .command('api')
  .description('requests a second of the API, beside bare Fastify routes with the same answers')
  .argument('[seconds]', 'seconds a measurement', readSeconds, 5)
  .argument('[rounds]', 'rounds', readCount, 3)
  .addOption(new Option('--only <case...>', 'these cases only').choices(Object.keys(API_CASES)))
  .addOption(
    new Option('--profile <case>', 'load the service alone and write its CPU profile').choices(Object.keys(API_CASES)),
  )
  .option('--profile-dir <directory>', 'where the profile is written (default: a new temporary directory)')
  .action(
    async (seconds: number, rounds: number, options: { only?: string[]; profile?: string; profileDir?: string }) => {
      const { compareApi, profileApi } = await import('./api.ts')
      const { only, profile, profileDir } = options
      if (profile === undefined) return compareApi(only ?? Object.keys(API_CASES), { seconds, rounds })
      const directory = profileDir ?? (await mkdtemp(join(tmpdir(), 'signalbox-profile-')))
      return profileApi(profile, directory, { seconds, rounds })
    },
  )

const IDENTITY_NAMES = [...Object.keys(IDENTITY_CASES), 'storm']

program
  .command('identity')
  .description('bearer check, refresh and exchange beside bare routes, and other requests under a storm of sign-ins')
  .argument('[seconds]', 'seconds a measurement', readSeconds, 5)
  .argument('[rounds]', 'rounds', readCount, 3)
  .addOption(new Option('--only <case...>', 'these alone').choices(IDENTITY_NAMES))
  .action(async (seconds: number, rounds: number, { only }: { only?: string[] }) => {
    const { measureIdentity } = await import('./identity.ts')
    await measureIdentity(only ?? IDENTITY_NAMES, { seconds, rounds })
  })

program
  .command('move')
  .description('the move of an account to a cell, beside a copy within one database')
  .argument('[rows]', 'rows of its ledger', readCount, 1_000_000)
  .action(async (rows: number) => {
    const { measureMove } = await import('./move.ts')
    await measureMove(rows)
  })

program
  .command('cells')
  .description('a delivery in home, in one cell and in two, and the way of events between them, beside one database')
  .argument('[count]', 'deliveries of each', readCount, 20_000)
  .argument('[seconds]', 'seconds of each latency', readSeconds, 10)
  .option('--rate <n>', 'events a second of the latencies', readCount, 50)
  .action(async (count: number, seconds: number, { rate }: { rate: number }) => {
    const { measureCells } = await import('./cells/cells.ts')
    await measureCells({ count, seconds, rate })
  })

program
  .command('partitions')
  .description('deliveries, reads and removal with the ledger as it is, and partitioned by ranges of the id')
  .argument('[rounds]', 'rounds', readCount, 3)
  .action(async (rounds: number) => {
    const { measurePartitions } = await import('./partitions.ts')
    await measurePartitions(rounds)
  })

program
  .command('lists')
  .description('each list for each kind of caller, beside one account with a million rows and beside 50,000 accounts')
  .argument('[scale]', 'share of the full size of the others, 0 to 1', readSeconds, 1)
  .argument('[rounds]', 'requests of each', readCount, 15)
  .addOption(new Option('--only <population>', 'this population only').choices(['one huge', 'spread']))
  .action(async (scale: number, rounds: number, options: { only?: 'one huge' | 'spread' }) => {
    const { measureLists } = await import('./lists/lists.ts')
    await measureLists({ scale, rounds, ...options })
  })

program
  .command('storage')
  .description('bytes that the database keeps of a published event with one delivery, by table and index')
  .argument('[count]', 'events', readCount, 20_000)
  .option('--rate <n>', 'events a second; without it as fast as they are taken', readCount)
  .action(async (count: number, options: { rate?: number }) => {
    const { measureStorage } = await import('./storage.ts')
    await measureStorage(count, options.rate)
  })

program
  .command('idle-connections')
  .description('POSTs that meet a connection which its receiver closes, beside an undici agent, calm and loaded')
  .argument('[seconds]', 'seconds a measurement, of four', readSeconds, 15)
  .action(async (seconds: number) => {
    const { measureIdleConnections } = await import('./idle-connections.ts')
    await measureIdleConnections({ seconds })
  })

program
  .command('oauth')
  .description(
    'authorization, tokens, refresh, introspection and exchange, beside oidc-provider with its adapter in memory',
  )
  .argument('[count]', 'requests a round', readCount, 500)
  .argument('[rounds]', 'rounds', readCount, 3)
  .addOption(new Option('--only <case...>', 'these cases only').choices(Object.keys(OAUTH_CASES)))
  .option('--profile-dir <directory>', 'writes the CPU profile of the service there')
  .action(async (count: number, rounds: number, options: { only?: string[]; profileDir?: string }) => {
    const { only, profileDir } = options
    const { measureOauth } = await import('./oauth.ts')
    await measureOauth(only ?? Object.keys(OAUTH_CASES), { count, rounds, profileDir })
  })

program
  .command('realtime')
  .description('connections, memory, fan-out and latency of the embedded realtime server, beside a bare ws broadcast')
  .argument('[seconds]', 'seconds of the measurement of latency', readSeconds, 5)
  .argument('[rounds]', 'rounds', readCount, 3)
  .option('--idle <n>', 'idle clients', readCount, 4_000)
  .option('--fan-out <n>', 'clients that receive each event', readCount, 2_000)
  .option('--publishes <n>', 'events of a fan-out', readCount, 50)
  .option('--per-second <n>', 'events a second of the measurement of latency', readCount, 500)
  .action(async (seconds: number, rounds: number, options: Omit<RealtimeLoad, 'seconds' | 'rounds'>) => {
    const { measureRealtime } = await import('./realtime.ts')
    await measureRealtime({ ...options, seconds, rounds })
  })

program
  .command('realtime-sockets')
  .description(
    'memory, connections a second and fan-out of the embedded realtime server with many clients, beside bare ws',
  )
  .argument(
    '[counts...]',
    'clients, each on a server of its own',
    (text, counts: number[]) => [...counts, readCount(text)],
    [],
  )
  .action(async (counts: number[]) => {
    const { measureSockets } = await import('./realtime-sockets.ts')
    await measureSockets(counts.length > 0 ? counts : [4_000, 20_000])
  })

program
  .command('realtime-bus')
  .description('publish to arrival between the processes of the embedded realtime server, by NATS beside PostgreSQL')
  .argument('[seconds]', 'seconds a rate', readSeconds, 5)
  .option('--processes <n>', 'processes', readCount, 8)
  .option('--rates <n,n>', 'publications a second of all, until one is not reached', readCounts, BUS_RATES)
  .action(async (seconds: number, options: { processes: number; rates: number[] }) => {
    const { measureBus } = await import('./realtime-bus/realtime-bus.ts')
    await measureBus({ seconds, ...options })
  })

program
  .command('browser')
  .description('from a change over the API to its event in Chromium, on a private channel of the embedded server')
  .argument('[changes]', 'changes', readCount, 500)
  .action(async (changes: number) => {
    const { measureBrowser } = await import('./realtime-browser.ts')
    await measureBrowser({ changes })
  })

program
  .command('console')
  .description('first load of the operator console on a slow network, and pauses while a large ledger is scrolled')
  .option('--rows <n>', 'deliveries of the ledger', readCount, 1_000_000)
  .action(async ({ rows }: { rows: number }) => {
    const { measureConsole } = await import('./console/console.ts')
    await measureConsole({ rows })
  })

program
  .command('authorization')
  .description('channel authorization beside a route that authenticates and asks nothing')
  .argument('[seconds]', 'seconds a measurement', readSeconds, 3)
  .argument('[rounds]', 'rounds', readCount, 5)
  .action(async (seconds: number, rounds: number) => {
    const { measureAuthorization } = await import('./realtime-authorization.ts')
    await measureAuthorization({ seconds, rounds })
  })

program
  .command('table')
  .description('every figure of the delivery engine, each beside its baseline and its goal')
  .option('--only <row,row>', `these rows only: ${ROW_NAMES.join(', ')}`, readRows)
  .option('--seconds <n>', 'seconds a measurement', readSeconds, 10)
  .option('--full', 'all data in the rows that measure much of it: takes half an hour or more and some 20 GB')
  .action(async ({ only, seconds, full }: { only?: string[]; seconds: number; full?: boolean }) => {
    const isMeasured = await measureTable(only ?? ROW_NAMES, { seconds, isFull: full ?? false })
    if (!isMeasured) process.exitCode = 1
  })

program
  .command('peers')
  .description('Signalbox or another product by the same load over HTTP, beside a bare route: docs/benchmarks.md')
  .addArgument(new Argument('<product>', 'whose API takes the load').choices(Object.keys(PRODUCTS)))
  .option('--origin <url>', 'http://127.0.0.1:<port> of its running server; without it a Signalbox is started')
  .option('--token <token>', 'bearer token of its API', '')
  .option('--project <id>', 'project, for Convoy')
  .option('--pids <pid,pid>', 'processes of the service and its stores, whose processor time counts', readCounts, [])
  .option('--seconds <n>', 'seconds a measurement', readSeconds, 10)
  .action(async (product: ProductName, { origin, token, project, pids, seconds }: PeersFlags) => {
    const { measurePeer } = await import('./peers/peers.ts')
    const server = origin === undefined ? undefined : { origin, token, project, pids }
    await measurePeer({ product, server, seconds })
  })

program
  .command('throttle')
  .description('a webhook with a limit a second in two processes, and others beside its backlog: a row of the table')
  .argument('[seconds]', 'seconds at a steady rate', readSeconds, 10)
  .action(async (seconds: number) => {
    if (!(await measureTable(['throttle'], { seconds, isFull: false }))) process.exitCode = 1
  })

try {
  await program.parseAsync()
} catch (error) {
  console.error(`bench: ${(error as Error).message}`)
  process.exit(1)
}
