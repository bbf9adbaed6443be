import { randomUUID } from 'node:crypto'
import pusherModule from 'pusher-js'
import type { TestAnswer } from '../app/app.ts'
import { signInAdministrator } from '../browser/social-users.ts'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'
import { startLocalService } from '../process/local-service.ts'
import { findFreePort } from '../process/port.ts'
import { callService, type ServiceProcess, startService } from '../process/service-process.ts'
import { type CARRIERS, type RunningCarrier, startCarrier } from './carrier.ts'
import type { PusherClient } from './realtime-server.ts'

const Library = pusherModule as unknown as typeof pusherModule.default

const KEY = 'key-1'
const PASSWORD = 'correct horse battery'

/** A user with a session. */
export interface User {
  id: string
  email: string
  password: string
  jwt: string
}

/** Service at a URL: a process, or a service in the process of the tests. */
type Service = Pick<ServiceProcess, 'url' | 'call'>

/** A service with the embedded server, at BASE_URL. */
export interface RealtimeService extends AsyncDisposable {
  first: Service
  account: string
  database: TestDatabase
  /** Starts a further process on its database. */
  start(roles: string): Promise<ServiceProcess>
  /** Starts a further service on its database in the process of the tests: where no test ends it. */
  startLocal(roles: string): Promise<Service>
  /** Stops the service, with SIGTERM unless said, runs `away`, and starts it again at the same port. */
  restart(away: () => Promise<void>, signal?: NodeJS.Signals): Promise<void>
  /** Calls the service as an administrator. Throws unless the status is below 300. */
  call(method: string, path: string, body?: object): Promise<TestAnswer>
  /** A user who belongs to the account and is signed in. */
  addMember(): Promise<User>
  addContract(): Promise<string>
  /** Gives a contract another name without an event. */
  renameUnseen(contract: string, name: string): Promise<void>
}

/**
 * Starts a service with these roles: in a process of its own, or with `isLocal` in the process of the tests. In development,
 * unless `env` says otherwise.
 */
export async function openRealtimeService(
  options: { roles?: string; env?: Record<string, string>; isLocal?: boolean } = {},
): Promise<RealtimeService> {
  const { roles, isLocal = false } = options
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await createTestDatabase({ content: 'prepared' }))
  const port = String(await findFreePort())
  const origin = `http://127.0.0.1:${port}`
  const token = await signInAdministrator(database, origin)
  const env = { APP_ENV: 'development', BASE_URL: origin, RATE_LIMIT_STRICT_PER_MINUTE: '1000', ...options.env }
  const processes = stack.use(new AsyncDisposableStack())
  const choose = (SIGNALBOX_ROLES: string | undefined, PORT = '0') => {
    const chosen = { ...env, PORT, ...(SIGNALBOX_ROLES && { SIGNALBOX_ROLES }) }
    return { databaseUrl: database.connectionString, token, env: chosen }
  }
  const start = async (...chosen: Parameters<typeof choose>) => processes.use(await startService(choose(...chosen)))
  const startLocal = async (...chosen: Parameters<typeof choose>) =>
    processes.use(await startLocalService(choose(...chosen)))
  const startFirst = async (): Promise<{ service: Service; stop(signal?: NodeJS.Signals): Promise<unknown> }> => {
    const service = isLocal ? await startLocal(roles, port) : await start(roles, port)
    return { service, stop: service.stop }
  }
  let first = await startFirst()
  const call: RealtimeService['call'] = async (method, path, body) => {
    const answer = await first.service.call(method, path, body)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer
  }
  const made = await call('POST', '/api/v3/identity/account', { name: 'Example' })
  const account = made.body.data.document_id as string
  const kept = stack.move()
  return {
    get first() {
      return first.service
    },
    account,
    database,
    call,
    start,
    startLocal,
    restart: async (away, signal) => {
      await first.stop(signal)
      await away()
      first = await startFirst()
    },
    addMember: async () => {
      const user = { email: `${randomUUID()}@example.com`, password: PASSWORD }
      const { document_id: id } = (await call('POST', '/api/v3/identity/user', user)).body.data
      await call('POST', `/api/v3/identity/account/${account}/member`, { user: id })
      const path = '/api/v3/auth/login/local'
      const { body } = await callService({ url: first.service.url }, { method: 'POST', path, body: user })
      return { ...user, id, jwt: body.data.jwt as string }
    },
    addContract: async () => {
      const { body } = await call('POST', '/api/v3/contract/contract', { name: 'A contract', account })
      return body.data.document_id
    },
    renameUnseen: async (contract, name) => {
      await database.pool.query('update contract set name = $2 where document_id = $1', [contract, name])
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/**
 * The embedded server in two services with the role `api`, neither of which publishes: that is done by a third one, which has
 * no server. The first is at BASE_URL. All are in the process of the tests; what they share is the database alone.
 */
export interface RealtimeContext extends RealtimeService {
  other: Service
  carrier: RunningCarrier
  /** The official client, connected to a service, that signs in and is authorized through another one. */
  connect(user: User, services: { to: Service; through: Service }): PusherClient
}

/** The settings of an embedded server outside development. */
export const EMBEDDED = {
  APP_ENV: 'test',
  INTEGRATION_REALTIME_APP_ID: 'app-1',
  INTEGRATION_REALTIME_KEY: KEY,
  INTEGRATION_REALTIME_SECRET: 'secret-1',
  INTEGRATION_REALTIME_CLUSTER: 'embedded',
}

/** Starts the services, joined by this carrier. */
export async function startRealtimeFixture(
  carrier: (typeof CARRIERS)[number] = 'PostgreSQL',
): Promise<RealtimeContext> {
  await using stack = new AsyncDisposableStack()
  const running = stack.use(await startCarrier(carrier))
  const env = { ...EMBEDDED, ...running.env }
  const service = stack.use(await openRealtimeService({ roles: 'api', env, isLocal: true }))
  const other = await service.startLocal('api')
  await service.startLocal('dispatcher,realtime')
  await running.waitForProcesses(2)
  const clients: PusherClient[] = []
  const kept = stack.move()
  return {
    ...service,
    other,
    carrier: running,
    connect: (user, services) => {
      const client = connectClient(user, services)
      clients.push(client)
      return client
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.disconnect()
      await kept.disposeAsync()
    },
  }
}

/** The official client, connected to a service, that signs in and is authorized through another one. */
function connectClient({ jwt }: User, { to, through }: { to: Service; through: Service }) {
  const { hostname, port } = new URL(to.url)
  const headers = { authorization: `Bearer ${jwt}` }
  const client = new Library(KEY, {
    ...{ cluster: '', wsHost: hostname, wsPort: Number(port), forceTLS: false, enabledTransports: ['ws'] },
    channelAuthorization: {
      endpoint: `${through.url}/api/v3/realtime/realtime/auth`,
      transport: 'ajax',
      headers,
    },
    userAuthentication: { endpoint: `${through.url}/api/v3/realtime/realtime/user-auth`, transport: 'ajax', headers },
  })
  client.signin()
  return client
}
