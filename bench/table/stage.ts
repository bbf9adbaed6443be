import pg from 'pg'
import { EVENT_TYPE } from '../api-case.ts'
import { call, makeMany, signIn } from '../api-client.ts'
import type { MeteredSide } from '../meter.ts'
import { type ServiceProcess, startService } from '../service-process.ts'
import type { Testbed } from './testbed.ts'

/** Target of a load, and its meters. */
export interface LoadedSide extends MeteredSide {
  testbed: Testbed
  origin: string
  jwt: string
}

/** A service that runs on a database of its own. */
export interface Stage extends LoadedSide {
  service: ServiceProcess
  /** Starts one more process on the same database. */
  startSecond(environment: Record<string, string>): Promise<ServiceProcess>
}

/** Initial rows of a stage. */
export interface StageOptions {
  /** Part of the name of its database, where several stages run at once. Default: `table`. */
  purpose?: string
  /** Writes rows before the service starts. */
  fill?: (client: pg.Client) => Promise<void>
  /** Variables of the service that win over those of every stage. */
  environment?: Record<string, string>
}

/** Copies the template, fills it, and starts a service on it. `stack` ends the service and drops the database. */
export async function openStage(
  testbed: Testbed,
  stack: AsyncDisposableStack,
  options: StageOptions = {},
): Promise<Stage> {
  const connectionString = await testbed.server.createDatabase(options.purpose ?? 'table', testbed.template)
  stack.defer(() => testbed.server.dropDatabase(connectionString))
  if (options.fill) await withClient(connectionString, options.fill)
  const start = (environment?: Record<string, string>) => {
    const merged = { ...testbed.service.environment, ...environment }
    return startService(stack, { ...testbed.service, connectionString, environment: merged })
  }
  const service = await start(options.environment)
  const { jwt } = await signIn(service.origin, testbed.service.adminPassword)
  const { pid, origin } = service
  const startSecond = (environment: Record<string, string>) => start({ ...options.environment, ...environment })
  return { testbed, service, origin, pid, connectionString, jwt, startSecond }
}

/** Runs `work` with a connection of its own. */
export async function withClient<Result>(
  connectionString: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** An account with one webhook that subscribes to `EVENT_TYPE`. */
export interface Subscriber {
  account: string
  webhook: string
}

/** Makes accounts with one webhook each over the API; `urlOf` gives the callback URL of number n. */
export async function makeSubscribers(
  { origin, jwt }: Pick<Stage, 'origin' | 'jwt'>,
  count: number,
  urlOf: (n: number) => string,
): Promise<Subscriber[]> {
  const ask = async (method: 'GET' | 'POST' | 'PUT', path: string, body?: object) =>
    (await call(origin, { jwt, method, path, ...(body && { body }) })).data
  const filter = encodeURIComponent(`internal|in|${EVENT_TYPE}`)
  const [eventType] = (await ask('GET', `/api/v3/webhook/event?filters=${filter}`)) as unknown as [
    { document_id: string },
  ]
  return makeMany(count, async (n) => {
    const account = String((await ask('POST', '/api/v3/identity/account', { name: `Account ${n}` })).document_id)
    const made = await ask('POST', '/api/v3/webhook/webhook', { url: urlOf(n), account })
    const webhook = String(made.document_id)
    await ask('PUT', `/api/v3/webhook/webhook/${webhook}/events`, { events: [eventType.document_id] })
    return { account, webhook }
  })
}
