import { createHmac } from 'node:crypto'
import { expect } from 'vitest'
import { createTestApp, type TestApp, type TestAppOptions, type TestCall } from '../app/app.ts'
import { type Receiver, startReceiver } from '../fakes/receiver.ts'

// biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what each case asserts
type Json = any

/** Requests that a target received. */
export interface ReceivedChange {
  path: string
  headers: Record<string, string>
  body: Json
  raw: string
}

/** The whole service with a target on loopback. */
export interface ProvisioningFixture extends AsyncDisposable {
  t: TestApp
  receiver: Receiver
  /** Calls with a key that does not expire, since tests let hours pass. Fails the test where the API refuses. */
  call: (...call: Parameters<TestCall>) => Promise<Json>
  /** The same without the check. */
  tryCall: TestCall
  makeTarget(body?: object): Promise<{ id: string; secret: string; path: string }>
  makeUser(body?: object): Promise<{ id: string; email: string }>
  /** Requests that the target of this path received, in order. */
  received(path?: string): ReceivedChange[]
  /** The deliveries of a target, oldest first. */
  listDeliveries(target: string): Promise<Json[]>
  /** Advances the clock, then delivers what is due. */
  pass(ms: number): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const TARGETS = '/api/v3/provisioning/target'

let names = 0

/** Starts the service and a target on loopback. */
export async function openProvisioning(
  options: TestAppOptions & { receiver?: Receiver } = {},
): Promise<ProvisioningFixture> {
  const receiver = options.receiver ?? (await startReceiver())
  const env = {
    APP_ENV: 'development',
    WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}`,
    ...options.env,
  }
  const t = await createTestApp({ ...options, env })
  const made = await t.admin('POST', '/api/v3/identity/api-key', { name: 'test', permissions: ['*:*'] })
  const tryCall = t.callAs(made.body.data.key)
  const call = async (...input: Parameters<TestCall>) => {
    const answer = await tryCall(...input)
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    return answer.body.data
  }
  return {
    t,
    receiver,
    call,
    tryCall,
    makeTarget: async (body = {}) => {
      names += 1
      const path = `/target-${names}`
      const row = await call('POST', TARGETS, { url: `${receiver.origin}${path}`, ...body })
      return { id: row.document_id, secret: row.secret, path }
    },
    makeUser: async (body = {}) => {
      names += 1
      const row = await call('POST', '/api/v3/identity/user', { email: `user-${names}@example.com`, ...body })
      return { id: row.document_id, email: row.email }
    },
    received: (path) =>
      receiver.requests
        .filter((request) => path === undefined || request.path === path)
        .map((request) => ({
          path: request.path,
          headers: request.headers,
          raw: request.body.toString(),
          body: JSON.parse(request.body.toString()),
        })),
    listDeliveries: (target) =>
      call('GET', `/api/v3/provisioning/delivery?filters=target|eq|${target}&sort=created_at&page_size=200`),
    pass: async (ms) => {
      t.clock.advance(ms)
      await t.settle()
    },
    [Symbol.asyncDispose]: async () => {
      await t[Symbol.asyncDispose]()
      if (!options.receiver) await receiver.close()
    },
  }
}

/** The signature that a secret gives a body at the time of a header, computed without the code of the service. */
export function signAgain(secret: string, header: string, body: string): string {
  const timestamp = /^t=(\d+)/.exec(header)?.[1]
  return `t=${timestamp},v1=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`
}
