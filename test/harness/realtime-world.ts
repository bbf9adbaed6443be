import { randomUUID } from 'node:crypto'
import pusherModule from 'pusher-js'
import type { TestAnswer } from './app.ts'
import { createTestDatabase } from './database.ts'
import { signInAdministrator } from './identity-world.ts'
import type { PusherClient } from './realtime-server.ts'
import { callService, type ServiceProcess, startService } from './service-process.ts'
import { findFreePort } from './sso-example.ts'

const PusherClient = pusherModule as unknown as typeof pusherModule.default

const KEY = 'key-1'
const PASSWORD = 'correct horse battery'

/** A person with a session. */
export interface Person {
  id: string
  email: string
  password: string
  jwt: string
}

/**
 * The embedded server in two processes with the role `api`, neither of which publishes: that is done by a third one, which has
 * no server. The first process is at BASE_URL.
 */
export interface RealtimeWorld extends AsyncDisposable {
  one: ServiceProcess
  other: ServiceProcess
  publisher: ServiceProcess
  account: string
  /** Calls the first process as an administrator. Throws unless the status is below 300. */
  call(method: string, path: string, body?: object): Promise<TestAnswer>
  /** A person who belongs to the account and is signed in. */
  addMember(): Promise<Person>
  addContract(): Promise<string>
  /** The official client, connected to a process, that signs in and is authorized through another one. */
  connect(person: Person, processes: { to: ServiceProcess; through: ServiceProcess }): PusherClient
}

/** Starts the processes. */
export async function startRealtimeWorld(): Promise<RealtimeWorld> {
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await createTestDatabase({ content: 'prepared' }))
  const port = await findFreePort()
  const origin = `http://127.0.0.1:${port}`
  const env = {
    BASE_URL: origin,
    INTEGRATION_REALTIME_APP_ID: 'app-1',
    INTEGRATION_REALTIME_KEY: KEY,
    INTEGRATION_REALTIME_SECRET: 'secret-1',
    INTEGRATION_REALTIME_CLUSTER: 'embedded',
    RATE_LIMIT_STRICT_PER_MINUTE: '1000',
  }
  const token = await signInAdministrator(database, origin)
  const start = async (SIGNALBOX_ROLES: string, PORT = '0') => {
    const options = { databaseUrl: database.connectionString, token }
    return stack.use(await startService({ ...options, env: { ...env, PORT, SIGNALBOX_ROLES } }))
  }
  const one = await start('api', String(port))
  const other = await start('api')
  const publisher = await start('dispatcher,realtime')
  const clients: PusherClient[] = []
  const call: RealtimeWorld['call'] = async (method, path, body) => {
    const answer = await one.call(method, path, body)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer
  }
  const account = (await call('POST', '/api/v3/identity/account', { name: 'Example' })).body.data.document_id as string
  const addMember = async () => {
    const person = { email: `${randomUUID()}@example.com`, password: PASSWORD }
    const { document_id: id } = (await call('POST', '/api/v3/identity/user', person)).body.data
    await call('POST', `/api/v3/identity/account/${account}/member`, { user: id })
    const path = '/api/v3/auth/login/local'
    const { body } = await callService({ url: one.url }, { method: 'POST', path, body: person })
    return { ...person, id, jwt: body.data.jwt as string }
  }
  const kept = stack.move()
  return {
    one,
    other,
    publisher,
    account,
    call,
    addMember,
    addContract: async () => {
      const { body } = await call('POST', '/api/v3/contract/contract', { name: 'A contract', account })
      return body.data.document_id
    },
    connect: (person, processes) => {
      const client = connectClient(person, processes)
      clients.push(client)
      return client
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.disconnect()
      await kept.disposeAsync()
    },
  }
}

function connectClient({ jwt }: Person, { to, through }: { to: ServiceProcess; through: ServiceProcess }) {
  const { hostname, port } = new URL(to.url)
  const headers = { authorization: `Bearer ${jwt}` }
  const client = new PusherClient(KEY, {
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
