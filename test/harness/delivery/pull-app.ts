import type { AccountId, WebhookId } from '../../../src/base/id.ts'
import { recordEvents } from '../../../src/event/occurrence/event.ts'
import { createTestApp, type TestAnswer, type TestApp, type TestAppOptions, type TestCall } from '../app/app.ts'

const PATH = '/api/v3/webhook/webhook'

/** A delivery as a pull answers it. */
export interface Pulled {
  id: string
  receipt: string
  attempt: number
  lease_until: string
  headers: Record<string, string>
  body: string
}

/** The whole service with webhooks that pull. */
export interface PullApp extends AsyncDisposable {
  t: TestApp
  /** Calls with a key of everything that does not expire. */
  call: TestCall
  account: AccountId
  /** Creates a webhook of the account, or a global one, that pulls the events `contract.create`. */
  makeWebhook(options?: { isGlobal?: boolean; account?: AccountId }): Promise<{ id: WebhookId; secret: string }>
  /** Records events of the account and routes them. */
  emit(count?: number): Promise<void>
  pull(webhook: string, body?: object, call?: TestCall): Promise<TestAnswer>
  /** Pulls, and expects deliveries. */
  take(webhook: string, body?: object): Promise<Pulled[]>
  ack(webhook: string, receipts: readonly string[], call?: TestCall): Promise<TestAnswer>
  /** Acknowledges, and returns the statuses. */
  settle(webhook: string, receipts: readonly string[]): Promise<string[]>
  /** Gives back, or extends: the receipts of the answer. */
  change(
    webhook: string,
    action: 'nack' | 'extend',
    body: object,
  ): Promise<{ receipt: string; status: string; lease_until?: string | null }[]>
  listRows(): Promise<LedgerRow[]>
  /** Advances the clock, and ends the leases that run out. */
  pass(ms: number): Promise<void>
}

type LedgerRow = Awaited<ReturnType<typeof listRows>>[number]

const listRows = ({ database }: TestApp) =>
  database.db.selectFrom('webhook_dispatch').selectAll().orderBy('created_at').orderBy('document_id').execute()

/** Starts it. */
export async function openPull(options: TestAppOptions = {}): Promise<PullApp> {
  const t = await createTestApp(options)
  return buildPull(t, await openCall(t))
}

/** One service for the tests of a file. */
export interface SharedPull extends AsyncDisposable {
  /** The service with a new account, without webhooks, events and deliveries of the tests before. */
  begin(): Promise<PullApp>
}

const FILLED = [
  ...['webhook_dispatch_open', 'webhook_dispatch_ended', 'webhook_attempt', 'webhook_queue', 'webhook_event'],
  ...['webhook', 'event_queue', 'event_occurrence', 'webhook_delivery_minute'],
]

/** Starts it. */
export async function openSharedPull(): Promise<SharedPull> {
  const t = await createTestApp()
  const call = await openCall(t)
  return {
    begin: async () => {
      await t.database.pool.query(FILLED.map((table) => `delete from ${table}`).join(';'))
      return { ...(await buildPull(t, call)), [Symbol.asyncDispose]: async () => {} }
    },
    [Symbol.asyncDispose]: () => t[Symbol.asyncDispose](),
  }
}

/** The calls of a key of everything that does not expire. */
async function openCall(t: TestApp): Promise<TestCall> {
  const key = await t.admin('POST', '/api/v3/identity/api-key', { name: 'test', permissions: ['*:*'] })
  return t.callAs(key.body.data.key)
}

async function buildPull(t: TestApp, call: TestCall): Promise<PullApp> {
  const { body } = await call('POST', '/api/v3/identity/account', { name: 'Acme' })
  const account: AccountId = body.data.document_id
  const expectDone = async (answer: Promise<TestAnswer>) => {
    const done = await answer
    if (done.status >= 300) throw new Error(`${done.status} ${JSON.stringify(done.body)}`)
    return done.body.data
  }
  const app: PullApp = {
    t,
    call,
    account,
    makeWebhook: async ({ isGlobal = false, account: owner = account } = {}) => {
      const scope = isGlobal ? { is_global: true } : { account: owner }
      const made = await expectDone(call('POST', PATH, { mode: 'pull', ...scope, events: ['contract.create'] }))
      return { id: made.document_id, secret: made.secret }
    },
    emit: async (count = 1) => {
      const facts = { resource: 'contract', action: 'create', resourceId: null, url: null }
      const draft = { type: 'contract.create', accountScope: 'account', account, ...facts } as const
      const drafts = Array.from({ length: count }, () => draft)
      await recordEvents({ ids: t.app.ids, enableApiEventQueue: true }, t.database.db, drafts, new Date(t.clock.now()))
      await t.app.router.drain()
    },
    pull: (webhook, request = {}, by = call) => by('POST', `${PATH}/${webhook}/pull`, request),
    take: async (webhook, request) => (await expectDone(app.pull(webhook, request))).deliveries,
    ack: (webhook, receipts, by = call) => by('POST', `${PATH}/${webhook}/ack`, { receipts }),
    settle: async (webhook, receipts) =>
      (await expectDone(app.ack(webhook, receipts))).receipts.map(({ status }: { status: string }) => status),
    change: async (webhook, action, body) =>
      (await expectDone(call('POST', `${PATH}/${webhook}/${action}`, body))).receipts,
    listRows: () => listRows(t),
    pass: async (ms) => {
      t.clock.advance(ms)
      await t.app.leaseEnder.endLapsed()
    },
    [Symbol.asyncDispose]: () => t[Symbol.asyncDispose](),
  }
  return app
}
