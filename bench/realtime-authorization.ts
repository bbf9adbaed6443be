import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { type ApiRequest, CLIENTS } from './api-case.ts'
import { call, makeMany, signIn } from './api-client.ts'
import { openDatabaseServer } from './database-server.ts'
import { untilInterrupted } from './interruption.ts'
import { findMedian } from './quantile.ts'
import { send } from './send.ts'
import { POOL_SIZE, startService } from './service-process.ts'
import { formatTable } from './text-table.ts'

/** Contracts of the account: each is a channel. */
const CONTRACTS = 500

/** A provider that is never called: authorizations are signed here. */
const FOREIGN = {
  INTEGRATION_REALTIME_APP_ID: 'bench',
  INTEGRATION_REALTIME_KEY: 'bench-key',
  INTEGRATION_REALTIME_SECRET: 'bench-secret',
  INTEGRATION_REALTIME_CLUSTER: 'bench',
  INTEGRATION_REALTIME_HOST: '127.0.0.1',
  INTEGRATION_REALTIME_PORT: '9',
}

/** The two places that grants are kept in. */
const PROVIDERS = [
  { name: 'embedded', environment: { INTEGRATION_REALTIME_EMBEDDED: 'true' } },
  { name: 'foreign', environment: FOREIGN },
] as const

/** Credentials of a member. */
interface Member {
  jwt: string
  account: string
  contracts: readonly string[]
}

/** The requests, by name. The first is what the others are compared with: authenticated, and asks nothing. */
const CASES: Readonly<Record<string, (member: Member, n: number) => ApiRequest>> = {
  'no channel': (member, n) => post(member, 'user-auth', { socket_id: `${n}.1` }),
  'channel of an account': (member, n) =>
    post(member, 'auth', { socket_id: `${n}.1`, channel_name: `private-account-${member.account}` }),
  'channel of a contract': (member, n) =>
    post(member, 'auth', { socket_id: `${n}.1`, channel_name: `private-contract-${member.contracts[n % CONTRACTS]}` }),
}

/** The ratio of requests a second that an authorization must reach. */
const GOAL = 0.8

function post({ jwt }: Member, action: string, body: object): ApiRequest {
  return {
    ...{ method: 'POST', path: `/api/v3/realtime/realtime/${action}`, body: JSON.stringify(body) },
    headers: { authorization: `Bearer ${jwt}`, 'content-type': 'application/json' },
  }
}

/**
 * Measures channel authorization beside a route that authenticates and signs, and asks nothing, in turn: requests a second,
 * with the grants at the embedded server and with those at a foreign provider, which are stored.
 */
export async function measureAuthorization({ seconds, rounds }: { seconds: number; rounds: number }): Promise<void> {
  await untilInterrupted(async (stack) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const server = await openDatabaseServer(dataDir)
    stack.defer(() => server.close())
    const lines: string[][] = []
    for (const { name, environment } of PROVIDERS) {
      const connectionString = await server.createDatabase(name)
      const adminPassword = randomBytes(18).toString('base64url')
      const options = { connectionString, dataDir, poolSize: POOL_SIZE, adminPassword, environment }
      const service = await startService(stack, options)
      const rates = await measureCases(service.origin, await makeMember(service.origin, adminPassword), {
        seconds,
        rounds,
      })
      await service.stop()
      const base = rates.get('no channel') ?? []
      for (const [title, measured] of rates) {
        const ratio = findMedian(measured.map((rate, round) => rate / (base[round] ?? rate)))
        const goal = measured === base ? '' : String(GOAL)
        lines.push([name, title, findMedian(measured).toFixed(0), ratio.toFixed(2), goal])
      }
    }
    console.log(`${server.description}\n\nMedians of ${rounds} rounds of ${seconds} s, ${CLIENTS} clients.\n`)
    console.log(formatTable(['provider', 'request', 'a second', 'ratio', 'goal'], lines))
  })
}

async function makeMember(origin: string, adminPassword: string): Promise<Member> {
  const { jwt } = await signIn(origin, adminPassword)
  const make = async (path: string, body: object) =>
    String((await call(origin, { jwt, method: 'POST', path: `/api/v3/${path}`, body })).data.document_id)
  const account = await make('identity/account', { name: 'Bench' })
  const credentials = { email: 'member@bench.test', password: randomBytes(18).toString('base64url') }
  const user = await make('identity/user', credentials)
  await call(origin, { jwt, method: 'POST', path: `/api/v3/identity/account/${account}/member`, body: { user } })
  const contracts = await makeMany(CONTRACTS, (n) => make('contract/contract', { account, name: `Contract ${n}` }))
  const { data } = await call(origin, { method: 'POST', path: '/api/v3/auth/login/local', body: credentials })
  return { jwt: String(data.jwt), account, contracts }
}

/** Requests a second of each case in each round; the first round is preceded by one that is not counted. */
async function measureCases(
  origin: string,
  member: Member,
  { seconds, rounds }: { seconds: number; rounds: number },
): Promise<Map<string, number[]>> {
  const pool = new Pool(origin, { connections: CLIENTS, pipelining: 1 })
  const rates = new Map<string, number[]>(Object.keys(CASES).map((name) => [name, []]))
  let number = 0
  const run = async (build: (member: Member, n: number) => ApiRequest): Promise<number> => {
    const startedAt = performance.now()
    let requests = 0
    const client = async () => {
      for (; performance.now() - startedAt < seconds * 1000; requests += 1)
        await send(pool, build(member, ++number), 200)
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
    return requests / ((performance.now() - startedAt) / 1000)
  }
  try {
    for (let round = 0; round <= rounds; round += 1)
      for (const [name, build] of Object.entries(CASES)) {
        const rate = await run(build)
        if (round > 0) rates.get(name)?.push(rate)
      }
    return rates
  } finally {
    await pool.destroy()
  }
}
