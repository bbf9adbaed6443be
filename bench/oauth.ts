import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProgram } from './child-process.ts'
import { openDatabaseServer } from './database-server.ts'
import {
  authorize,
  BENCH_CLIENT,
  BENCH_REDIRECT_URI,
  exchange,
  introspect,
  type OauthSide,
  redeem,
  refresh,
} from './oauth-client.ts'
import { POOL_SIZE, startService } from './service-process.ts'
import { formatTable } from './text-table.ts'

/** Requests in flight at once. */
const LANES = 8

/** The least that the service may do of what `oidc-provider` does with its adapter in memory. */
const GOAL = 0.5

const ADMIN_PASSWORD = 'bench administrator password'

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

/** The comparisons by name: each prepares a round and measures it. */
const CASES: Readonly<Record<string, (side: OauthSide, count: number) => Promise<number>>> = {
  'authorize to code': (side, count) => measure(count, async () => void (await authorize(side))),
  'code to token': async (side, count) => {
    const codes: string[] = []
    await measure(count, async () => void codes.push(await authorize(side)))
    return measure(count, async () => void (await redeem(side, codes.pop() ?? '')))
  },
  refresh: async (side, count) => {
    const tokens = await Promise.all(
      Array.from({ length: LANES }, async () => (await redeem(side, await authorize(side))).refresh),
    )
    return measure(count, async (lane) => {
      tokens[lane] = await refresh(side, tokens[lane] ?? '')
    })
  },
  introspection: async (side, count) => {
    const { refresh: token } = await redeem(side, await authorize(side))
    return measure(count, () => introspect(side, token))
  },
  // The baseline verifies the token and signs another one, and keeps nothing.
  exchange: async (side, count) => {
    const { access } = await redeem(side, await authorize(side))
    return measure(count, () => exchange(side, access))
  },
}

/** Measures the flows of the OAuth provider, each beside `oidc-provider` with its adapter in memory, in turns. */
export async function measureOauth({ count, rounds }: { count: number; rounds: number }): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const service = await startOwnSide(stack, dataDir)
  const bare = await startBareSide(stack)
  const lines: string[][] = []
  for (const [name, run] of Object.entries(CASES)) {
    const rates: { own: number; bare: number }[] = []
    // The first round of each side warms it up.
    for (let round = 0; round <= rounds; round += 1) {
      const rate = { own: await run(service, count), bare: await run(bare, count) }
      if (round > 0) rates.push(rate)
    }
    const middle = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
    const ratio = middle(rates.map((rate) => rate.own / rate.bare))
    const own = middle(rates.map((rate) => rate.own)).toFixed(0)
    lines.push([name, own, middle(rates.map((rate) => rate.bare)).toFixed(0), ratio.toFixed(2), String(GOAL)])
  }
  console.log(formatTable(['case', 'service/s', 'in memory/s', 'ratio', 'goal'], lines))
}

async function startBareSide(stack: AsyncDisposableStack): Promise<OauthSide> {
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
  return { name: 'oidc-provider', clientId, secret, paths, cookie: '' }
}

async function startOwnSide(stack: AsyncDisposableStack, dataDir: string): Promise<OauthSide> {
  const server = await openDatabaseServer(join(dataDir, 'postgres'))
  stack.defer(() => server.close())
  const connectionString = await server.createDatabase('oauth')
  const { origin } = await startService(stack, {
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
  return {
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
}
