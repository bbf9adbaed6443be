import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProgram } from './child-process.ts'
import { openDatabaseServer } from './database-server.ts'
import {
  authorize,
  BENCH_CLIENT,
  BENCH_REDIRECT_URI,
  type Browser,
  exchange,
  introspect,
  type OauthSide,
  openBrowser,
  redeem,
  refresh,
} from './oauth-client.ts'
import { readProcess } from './process-times.ts'
import { POOL_SIZE, startService } from './service-process.ts'
import { formatTable } from './text-table.ts'

/** Requests in flight at once. */
const LANES = 8

/** The least that the service may do of what `oidc-provider` does with its adapter in memory. */
const GOAL = 0.5

const ADMIN_PASSWORD = 'bench administrator password'

/** A side with the process that serves it. */
interface Served {
  side: OauthSide
  pid: number
}

/** Requests in a second, and the CPU time of the process for each request in ms, where it can be read. */
interface Rate {
  perSecond: number
  cpuMs: number
}

/** Measures one round. The CPU time is that of the one process: without its database, which other processes serve. */
async function measureRound(name: string, { side, pid }: Served, count: number): Promise<Rate> {
  const run = CASES[name]
  if (!run) throw new Error(`there is no case ${name}`)
  const prepared = await run(side, count)
  const before = (await readProcess(pid))?.ownMs ?? Number.NaN
  const perSecond = await prepared()
  const after = (await readProcess(pid))?.ownMs ?? Number.NaN
  return { perSecond, cpuMs: (after - before) / count }
}

/** Runs `perform` `count` times on all lanes. Returns how many were done in a second. */
async function measure(count: number, perform: (lane: number) => Promise<void>): Promise<number> {
  const began = performance.now()
  let left = count
  const runLane = async (lane: number) => {
    for (; left > 0; ) {
      left -= 1
      await perform(lane)
    }
  }
  await Promise.all(Array.from({ length: LANES }, (_, lane) => runLane(lane)))
  return count / ((performance.now() - began) / 1000)
}

/** A browser for each lane, in which the person has opened the app before. */
function openBrowsers(side: OauthSide): Promise<Browser[]> {
  return Promise.all(
    Array.from({ length: LANES }, async () => {
      const browser = openBrowser(side)
      await authorize(side, browser)
      return browser
    }),
  )
}

/** The comparisons by name: each prepares a round and returns what measures it. */
const CASES: Readonly<Record<string, (side: OauthSide, count: number) => Promise<() => Promise<number>>>> = {
  // As people do it: again and again from the same browsers, one a lane, which keep their cookies.
  'authorize to code': async (side, count) => {
    const browsers = await openBrowsers(side)
    return () => measure(count, async (lane) => void (await authorize(side, browsers[lane])))
  },
  'code to token': async (side, count) => {
    const codes: string[] = []
    const browsers = await openBrowsers(side)
    await measure(count, async (lane) => void codes.push(await authorize(side, browsers[lane])))
    return () => measure(count, async () => void (await redeem(side, codes.pop() ?? '')))
  },
  refresh: async (side, count) => {
    const tokens = await Promise.all(
      Array.from({ length: LANES }, async () => (await redeem(side, await authorize(side))).refresh),
    )
    return () =>
      measure(count, async (lane) => {
        tokens[lane] = await refresh(side, tokens[lane] ?? '')
      })
  },
  introspection: async (side, count) => {
    const { refresh: token } = await redeem(side, await authorize(side))
    return () => measure(count, () => introspect(side, token))
  },
  // The baseline verifies the token and signs another one, and keeps nothing.
  exchange: async (side, count) => {
    const { access } = await redeem(side, await authorize(side))
    return () => measure(count, () => exchange(side, access))
  },
}

/**
 * Measures the flows of the OAuth provider, each beside `oidc-provider` with its adapter in memory, in turns: requests in a
 * second, and the CPU time of each process. The rate includes the database, which shares the machine.
 */
export async function measureOauth({ count, rounds }: { count: number; rounds: number }): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const service = await startOwnSide(stack, dataDir)
  const bare = await startBareSide(stack)
  const lines: string[][] = []
  for (const name of Object.keys(CASES)) {
    const rates: { own: Rate; bare: Rate }[] = []
    // The first round of each side warms it up.
    for (let round = 0; round <= rounds; round += 1) {
      const rate = { own: await measureRound(name, service, count), bare: await measureRound(name, bare, count) }
      if (round > 0) rates.push(rate)
    }
    lines.push(describeCase(name, rates))
  }
  const head = ['case', 'service/s', 'in memory/s', 'ratio', 'goal', 'service CPU ms', 'in memory CPU ms', 'CPU ratio']
  console.log(formatTable(head, lines))
}

function describeCase(name: string, rates: readonly { own: Rate; bare: Rate }[]): string[] {
  const middle = (read: (rate: { own: Rate; bare: Rate }) => number) =>
    rates.map(read).sort((a, b) => a - b)[Math.floor(rates.length / 2)] ?? 0
  return [
    name,
    middle(({ own }) => own.perSecond).toFixed(0),
    middle(({ bare }) => bare.perSecond).toFixed(0),
    middle(({ own, bare }) => own.perSecond / bare.perSecond).toFixed(2),
    String(GOAL),
    middle(({ own }) => own.cpuMs).toFixed(2),
    middle(({ bare }) => bare.cpuMs).toFixed(2),
    middle(({ own, bare }) => bare.cpuMs / own.cpuMs).toFixed(2),
  ]
}

async function startBareSide(stack: AsyncDisposableStack): Promise<Served> {
  const program = startProgram<string, { issuer: string }>('oauth-bare.ts')
  stack.defer(() => program.stop())
  const { issuer } = await program.ask('start')
  const paths = {
    authorize: `${issuer}/auth`,
    token: `${issuer}/token`,
    introspect: `${issuer}/token/introspection`,
    exchange: `${issuer}/token`,
  }
  const { client_id: clientId, client_secret: secret } = BENCH_CLIENT
  return { side: { name: 'oidc-provider', clientId, secret, paths, cookie: '' }, pid: program.pid }
}

async function startOwnSide(stack: AsyncDisposableStack, dataDir: string): Promise<Served> {
  const server = await openDatabaseServer(join(dataDir, 'postgres'))
  stack.defer(() => server.close())
  const connectionString = await server.createDatabase('oauth')
  const { origin, pid } = await startService(stack, {
    connectionString,
    dataDir,
    poolSize: POOL_SIZE,
    adminPassword: ADMIN_PASSWORD,
  })
  const call = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${origin}/api/v3${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    const { data } = (await answer.json()) as { data: Record<string, string> }
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`)
    return data
  }
  const login = { email: 'admin@signalbox.localhost', password: ADMIN_PASSWORD }
  const { jwt = '' } = await call('/auth/login/local', login)
  const client = await call(
    '/oauth/client',
    {
      name: 'bench',
      type: 'confidential',
      redirect_uris: [BENCH_REDIRECT_URI],
      scopes: ['openid', 'email', 'offline_access', 'contract:read'],
      // Allowed without a question: the question is not measured.
      first_party: true,
    },
    { authorization: `Bearer ${jwt}` },
  )
  const issuer = `${origin}/api/v3/oauth`
  const side: OauthSide = {
    name: 'service',
    clientId: client.client_id ?? '',
    secret: client.client_secret ?? '',
    paths: {
      authorize: `${issuer}/authorize`,
      token: `${issuer}/token`,
      introspect: `${issuer}/introspect`,
      exchange: `${issuer}/exchange`,
    },
    cookie: `signalbox_session=${jwt}`,
  }
  return { side, pid }
}
