import type { AccountId, DispatchId, WebhookId } from '../../../src/base/id.ts'
import { recordEvents } from '../../../src/event/occurrence/event.ts'
import { type Receiver, startReceiver } from '../fakes/receiver.ts'
import { createTestApp, type TestApp, type TestAppOptions, type TestCall } from './app.ts'

/** A webhook of a test, with its secret. */
export interface MadeWebhook {
  id: WebhookId
  secret: string
}

/** The whole service with an allowed receiver. */
export interface DeliveryApp extends AsyncDisposable {
  t: TestApp
  receiver: Receiver
  /** Calls the API with a key that does not expire, because these tests advance the clock by hours. */
  call: TestCall
  /** Creates a webhook through the API; global unless an account is given. */
  makeWebhook(options?: { url?: string; events?: string[]; account?: AccountId }): Promise<MadeWebhook>
  /** Records `count` events of a type, as an operation does. */
  emit(count?: number, event?: string): Promise<void>
  setActive(webhook: WebhookId, isActived: boolean): Promise<void>
  /** The ledger, the oldest row first. */
  listRows(): ReturnType<typeof listLedger>
  readWebhook(id: WebhookId): ReturnType<typeof readWebhookRow>
  /** The attempt log of a dispatch: status code or error class of each attempt. */
  listOutcomes(dispatch: string): Promise<(string | number | null)[]>
  replay(dispatch: string, body?: unknown): ReturnType<TestCall>
  /** Enqueues a test delivery. */
  sendTest(webhook: WebhookId): Promise<DispatchId>
  /** Advances the clock by `ms`, then routes, posts and records. */
  pass(ms: number): Promise<void>
}

/** The event type that the tests of deliveries use. */
const EVENT = 'contract.create'

function listLedger({ database }: TestApp) {
  return database.db.selectFrom('webhook_dispatch').selectAll().orderBy('created_at').orderBy('document_id').execute()
}

function readWebhookRow({ database }: TestApp, id: WebhookId) {
  return database.db.selectFrom('webhook').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()
}

/** Starts the service and a receiver on loopback; `targets` are further receivers it may post to. */
export async function openDelivery(options: TestAppOptions & { targets?: Receiver[] } = {}): Promise<DeliveryApp> {
  const receiver = await startReceiver()
  const allowed = [receiver, ...(options.targets ?? [])].map((item) => `127.0.0.1:${item.port}`).join(',')
  const env = { APP_ENV: 'development', WEBHOOK_ALLOWED_PRIVATE_TARGETS: allowed, ...options.env }
  const t = await createTestApp({ ...options, env })
  const { db } = t.database
  const made = await t.admin('POST', '/api/v3/identity/api-key', { name: 'test', permissions: ['*:*'] })
  const call = t.callAs(made.body.data.key)
  return {
    t,
    receiver,
    call: expectDone(call),
    makeWebhook: async ({ url = `${receiver.origin}/hook`, events = [EVENT], account } = {}) => {
      const scope = account === undefined ? { is_global: true } : { account }
      const { body } = await expectDone(call)('POST', '/api/v3/webhook/webhook', { url, ...scope })
      const id = body.data.document_id as WebhookId
      const types = await db.selectFrom('event').select('document_id').where('internal', 'in', events).execute()
      const set = { events: types.map((row) => row.document_id) }
      await expectDone(call)('PUT', `/api/v3/webhook/webhook/${id}/events`, set)
      return { id, secret: body.data.secret as string }
    },
    emit: async (count = 1, event = EVENT) => {
      const [resource = '', action = ''] = event.split('.')
      const rest = { resource, action, resourceId: null, url: null }
      const draft = { type: event, accountScope: 'account', account: null, ...rest } as const
      const drafts = Array.from({ length: count }, () => draft)
      await recordEvents({ ids: t.app.ids, enableApiEventQueue: true }, db, drafts, new Date(t.clock.now()))
    },
    setActive: async (id, isActived) => {
      await expectDone(call)('PATCH', `/api/v3/webhook/webhook/${id}/active`, { is_actived: isActived })
    },
    listRows: () => listLedger(t),
    readWebhook: (id) => readWebhookRow(t, id),
    listOutcomes: async (dispatch) => {
      const log = db.selectFrom('webhook_attempt_log').selectAll().where('dispatch', '=', dispatch)
      return (await log.orderBy('attempt').execute()).map((row) => row.status_code ?? row.error_class)
    },
    replay: (dispatch, body) => call('POST', `/api/v3/webhook/dispatch/${dispatch}/replay`, body),
    sendTest: async (webhook) => {
      const { body } = await expectDone(call)('POST', `/api/v3/webhook/webhook/${webhook}/test`)
      return body.data.dispatch_id as DispatchId
    },
    pass: async (ms) => {
      t.clock.advance(ms)
      await t.settle()
    },
    [Symbol.asyncDispose]: async () => {
      await t[Symbol.asyncDispose]()
      await receiver.close()
    },
  }
}

/** The same calls, failing the test where the API refuses. */
function expectDone(call: TestCall): TestCall {
  return async (method, path, ...rest) => {
    const answer = await call(method, path, ...rest)
    if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer
  }
}
