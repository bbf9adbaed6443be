import type { AddressInfo } from 'node:net'
import { type AccountId, isUuid } from '../../src/base/id.ts'
import { createTestApp, type TestApp } from '../harness/app/app.ts'
import type { TestDatabase } from '../harness/database/database.ts'
import { type Receiver, startReceiver } from '../harness/fakes/receiver.ts'
import { createAuthority } from '../harness/fakes/tls.ts'
import { bundleProgram } from '../harness/process/bundled-program.ts'
import { type CommandEnd, runCommand } from '../harness/process/command-line.ts'
import { startProcess, type TestProcess } from '../harness/process/process.ts'

/** The base URL of every service of these tests, so that its tokens are valid on any port. */
const BASE_URL = 'http://signalbox.test'

/** A service on a port, with a webhook's receiver that it trusts, and the `signalbox` command. */
export interface CliFixture extends AsyncDisposable {
  service: TestApp
  /** Where the service listens. */
  url: string
  /** An account to own things. */
  account: AccountId
  /** Receives deliveries of the service over HTTPS. */
  receiver: Receiver
  /** Runs `signalbox <args>` to its end in this process, as the administrator unless `env` says otherwise. */
  run(args: string[], env?: Record<string, string>): Promise<CommandEnd>
  /** Starts `signalbox <args>` in a process of its own. */
  start(args: string[], env?: Record<string, string>): TestProcess
  /** Creates a global webhook on the receiver, subscribed to these event types; returns its id. */
  subscribe(events: string[]): Promise<string>
  /** Creates a contract of the account through the API; returns its id. */
  createContract(): Promise<string>
}

/** Opens the fixture. The clocks of service and command differ by a day, because nothing may depend on their agreement. */
export async function openCliFixture(
  options: { env?: Record<string, string>; database?: TestDatabase } = {},
): Promise<CliFixture> {
  const authority = await createAuthority()
  const receiver = await startReceiver({ tls: await authority.issue(['127.0.0.1']) })
  const service = await createTestApp({
    ca: authority.ca,
    ...(options.database && { database: options.database }),
    env: { BASE_URL, WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}`, ...options.env },
  })
  await service.app.start()
  const { port } = service.app.server.server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const made = await service.admin('POST', '/api/v3/identity/account', { name: 'Command account' })
  const account = made.body.data.document_id as AccountId
  const program = await bundleProgram()
  const start = (args: string[], env: Record<string, string> = {}) =>
    startProcess({
      args: [program, ...args],
      env: { SIGNALBOX_URL: url, SIGNALBOX_TOKEN: service.adminToken, ...env },
    })
  return {
    service,
    url,
    account,
    receiver,
    start,
    run: (args, env = {}) =>
      runCommand(args, { env: { SIGNALBOX_URL: url, SIGNALBOX_TOKEN: service.adminToken, ...env } }),
    subscribe: (events) => subscribe(service, receiver, events),
    createContract: async () => {
      const answer = await service.admin('POST', '/api/v3/contract/contract', { name: 'A contract', account })
      if (!isUuid(answer.body.data?.document_id)) throw new Error(`not created: ${JSON.stringify(answer.body)}`)
      return answer.body.data.document_id
    },
    [Symbol.asyncDispose]: async () => {
      await service[Symbol.asyncDispose]()
      await receiver.close()
    },
  }
}

async function subscribe({ admin }: TestApp, receiver: Receiver, events: string[]): Promise<string> {
  const made = await admin('POST', '/api/v3/webhook/webhook', { url: `${receiver.origin}/hook`, is_global: true })
  const id = made.body.data.document_id
  const filter = encodeURIComponent(`internal|in|${events.join(',')}`)
  const found = await admin('GET', `/api/v3/webhook/event?filters=${filter}`)
  const ids = found.body.data.map((row: { document_id: string }) => row.document_id)
  const set = await admin('PUT', `/api/v3/webhook/webhook/${id}/events`, { events: ids })
  if (set.status !== 200) throw new Error(`not subscribed: ${JSON.stringify(set.body)}`)
  return id
}
