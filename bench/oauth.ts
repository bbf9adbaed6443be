import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProgram } from './child-process.ts'
import { openDatabaseServer } from './database-server.ts'
import { OAUTH_CASES } from './oauth-case.ts'
import { BENCH_CLIENT, BENCH_REDIRECT_URI, type OauthSide } from './oauth-client.ts'
import { readProcess } from './process-times.ts'
import { POOL_SIZE, startService } from './service-process.ts'
import { formatTable } from './text-table.ts'

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
  const run = OAUTH_CASES[name]
  if (!run) throw new Error(`there is no case ${name}`)
  const prepared = await run(side, count)
  const before = (await readProcess(pid))?.ownMs ?? Number.NaN
  const perSecond = await prepared()
  const after = (await readProcess(pid))?.ownMs ?? Number.NaN
  return { perSecond, cpuMs: (after - before) / count }
}

export interface OauthOptions {
  /** Requests of a round. */
  count: number
  /** Rounds that count; one before them warms up. */
  rounds: number
  /** Where the CPU profile of the service is written; none without it. */
  profileDir?: string | undefined
}

/**
 * Measures the flows of the OAuth provider, each beside `oidc-provider` with its adapter in memory, in turns: requests in a
 * second, and the CPU time of each process. The rate includes the database, which shares the machine.
 */
export async function measureOauth(
  names: readonly string[],
  { count, rounds, profileDir }: OauthOptions,
): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const service = await startOwnSide(stack, dataDir, profileDir)
  const bare = await startBareSide(stack)
  const lines: string[][] = []
  for (const name of names) {
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

async function startOwnSide(stack: AsyncDisposableStack, dataDir: string, profileDir?: string): Promise<Served> {
  const server = await openDatabaseServer(join(dataDir, 'postgres'))
  stack.defer(() => server.close())
  const connectionString = await server.createDatabase('oauth')
  const { origin, pid } = await startService(stack, {
    connectionString,
    dataDir,
    poolSize: POOL_SIZE,
    adminPassword: ADMIN_PASSWORD,
    nodeArguments: profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`],
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
