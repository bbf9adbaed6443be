import { expect } from 'vitest'
import type { AccountId } from '../../src/base/id.ts'
import { createKeyedApp, type TestApp, type TestAppOptions } from '../harness/app/app.ts'
import { type ReceivedRequest, type Receiver, startReceiver } from '../harness/fakes/receiver.ts'

// biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what each case asserts
export type Json = any

/** A webhook of a test, on a path of its own at the receiver. */
export interface ContractWebhook {
  id: string
  secret: string
  path: string
  row: Json
}

/** The whole service with a receiver on loopback that it may post to. */
export interface ContractFixture extends AsyncDisposable {
  app: TestApp
  receiver: Receiver
  createAccount(): Promise<Json>
  findRoleId(name: string): Promise<string>
  /** Signs a new user in who has these roles, by their names, in each of these accounts. */
  signInWithRoles(accounts: readonly string[], roles: readonly string[]): ReturnType<TestApp['signInMember']>
  /** Creates a webhook on the receiver, with the rest of the body as given, subscribed to `events`. */
  createWebhook(
    body: ({ account: string } | { is_global: true }) & { resource_ids?: string[]; max_per_second?: number },
    events?: readonly string[],
  ): Promise<ContractWebhook>
  findEventIds(names: readonly string[]): Promise<string[]>
  subscribe(webhook: string, names: readonly string[]): Promise<Json>
  /** Makes one change that an account owns: creates a contract. Returns its id. */
  makeChange(account: string): Promise<string>
  /** Deliveries that the receiver got for a webhook, in order. */
  received(webhook: ContractWebhook): ReceivedRequest[]
  /** The ledger rows of a webhook, oldest first. */
  readLedger(webhook: ContractWebhook): Promise<Json[]>
  readDispatch(id: string): Promise<Json>
  readWebhook(webhook: ContractWebhook): Promise<Json>
  /** The value of one line of `/metrics`. */
  readMetric(line: string): Promise<number>
}

let paths = 0

/** Starts the service and a receiver; with `receiver`, on one that another fixture started. */
export async function startContractFixture(
  options: TestAppOptions & { receiver?: Receiver } = {},
): Promise<ContractFixture> {
  const { receiver: given, ...appOptions } = options
  const receiver = given ?? (await startReceiver())
  const app = await createKeyedApp({
    ...appOptions,
    env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}`, ...options.env },
  })
  const admin = async (...call: Parameters<TestApp['admin']>) => {
    const answer = await app.admin(...call)
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    return answer.body.data
  }
  const findRoleId = async (name: string): Promise<string> =>
    (await admin('GET', `/api/v3/identity/role?filters=name|eq|${name}`))[0].document_id
  const findEventIds = async (names: readonly string[]) => {
    const query = new URLSearchParams({ filters: `internal|in|${names.join(',')}`, page_size: '200' })
    const rows: Json[] = await admin('GET', `/api/v3/webhook/event?${query}`)
    return names.map((name) => {
      const row = rows.find((row) => row.internal === name)
      if (!row) throw new Error(`the catalogue has no ${name}`)
      return row.document_id
    })
  }
  const subscribe = async (webhook: string, names: readonly string[]) =>
    admin('PUT', `/api/v3/webhook/webhook/${webhook}/events`, { events: await findEventIds(names) })
  return {
    app,
    receiver,
    createAccount: () => admin('POST', '/api/v3/identity/account', { name: 'Acme' }),
    findRoleId,
    signInWithRoles: async (accounts, names) => {
      const user = await app.signInMember(accounts as AccountId[])
      const roles = await Promise.all(names.map(findRoleId))
      for (const account of accounts)
        await admin('PATCH', `/api/v3/identity/account/${account}/member`, { user: user.userId, roles })
      return user
    },
    createWebhook: async (body, events = []) => {
      paths += 1
      const path = `/hook-${paths}`
      const row = await admin('POST', '/api/v3/webhook/webhook', { url: `${receiver.origin}${path}`, ...body })
      if (events.length > 0) await subscribe(row.document_id, events)
      return { id: row.document_id, secret: row.secret, path, row }
    },
    findEventIds,
    subscribe,
    makeChange: async (account) =>
      (await admin('POST', '/api/v3/contract/contract', { account, name: 'Lease' })).document_id,
    received: (webhook) => receiver.requests.filter((request) => request.path === webhook.path),
    readLedger: async (webhook) => {
      const query = new URLSearchParams({ filters: `webhook|eq|${webhook.id}`, sort: 'created_at', page_size: '200' })
      return admin('GET', `/api/v3/webhook/dispatch?${query}`)
    },
    readDispatch: (id) => admin('GET', `/api/v3/webhook/dispatch/${id}`),
    readWebhook: (webhook) => admin('GET', `/api/v3/webhook/webhook/${webhook.id}`),
    readMetric: async (line) => {
      // Figures of at most 5 s are shared by all scrapes.
      app.clock.advance(5_000)
      const { body } = await app.scrape()
      const found = String(body)
        .split('\n')
        .find((part) => part.startsWith(`${line} `))
      if (found === undefined) throw new Error(`/metrics has no ${line}`)
      return Number(found.slice(line.length + 1))
    },
    [Symbol.asyncDispose]: async () => {
      await app[Symbol.asyncDispose]()
      if (!given) await receiver.close()
    },
  }
}

/** The body of a delivery, read. */
export function readEnvelope(request: ReceivedRequest | undefined): Json {
  if (!request) throw new Error('nothing was delivered')
  return JSON.parse(request.body.toString('utf8'))
}

/** The problem of a refusal, checked for its status and media type. */
export function expectProblem(answer: { status: number; headers: Json; body: Json }, status: number, code: string) {
  expect(answer.status, JSON.stringify(answer.body)).toBe(status)
  expect(answer.headers['content-type']).toContain('application/problem+json')
  expect(answer.body).toMatchObject({ status, code })
  return answer.body
}

export const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
export const NO_ONE = '01990000-0000-7000-8000-000000000000'
