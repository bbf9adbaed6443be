import type { AccountId } from '../../../src/base/id.ts'
import { recordEvents } from '../../../src/event/occurrence/event.ts'
import { type SimulatedProvider, startRealtimeProvider } from '../realtime/realtime-provider.ts'
import { buildManualClock } from '../run/manual-clock.ts'
import { createTestApp, type TestApp, type TestAppOptions, type TestCall } from './app.ts'

/** The whole service with a simulated provider. */
export interface RealtimeApp extends AsyncDisposable {
  t: TestApp
  provider: SimulatedProvider
  /** Calls the API as an administrator. */
  call: TestCall
  addAccount(): Promise<AccountId>
  addContract(account: AccountId): Promise<string>
  /** Records events of an account, as an operation does; returns their ids. */
  emit(account: AccountId | null, count?: number): Promise<string[]>
  /** Advances the clock by `ms`, then routes, publishes and records. */
  pass(ms: number): Promise<void>
  /** The messages in the ledger, in the order of their events. */
  listRows(): Promise<{ status: string | null; attempts: number | null; last_error: string | null }[]>
}

/** Starts the service with a provider on loopback. */
export async function openRealtime(options: TestAppOptions = {}): Promise<RealtimeApp> {
  const clock = options.clock ?? buildManualClock()
  const provider = await startRealtimeProvider(() => clock.now())
  const t = await createTestApp({ ...options, clock, env: { ...provider.env, ...options.env } })
  const { db } = t.database
  // These tests advance the clock by hours, and a key does not expire.
  const made = await t.admin('POST', '/api/v3/identity/api-key', { name: 'test', permissions: ['*:*'] })
  const call = t.callAs(made.body.data.key)
  return {
    t,
    provider,
    call,
    addAccount: async () => {
      const { body } = await call('POST', '/api/v3/identity/account', { name: 'Example' })
      return body.data.document_id as AccountId
    },
    addContract: async (account) => {
      const { body } = await call('POST', '/api/v3/contract/contract', { account, name: 'Example' })
      return body.data.document_id as string
    },
    emit: async (account, count = 1) => {
      const of = { accountScope: 'account', account, resource: 'webhook', action: 'update' } as const
      const drafts = Array.from({ length: count }, () => ({
        ...of,
        type: 'webhook.update',
        resourceId: null,
        url: null,
      }))
      const events = await recordEvents(
        { ids: t.app.ids, enableApiEventQueue: true },
        db,
        drafts,
        new Date(clock.now()),
      )
      return events.map((event) => event.id)
    },
    pass: async (ms) => {
      clock.advance(ms)
      await t.settle()
    },
    listRows: () =>
      db.selectFrom('realtime_message').select(['status', 'attempts', 'last_error']).orderBy('document_id').execute(),
    [Symbol.asyncDispose]: async () => {
      await t[Symbol.asyncDispose]()
      await provider.close()
    },
  }
}

/** The ids of published messages of a channel, in the order of their arrival. */
export function listArrivals(provider: SimulatedProvider, account: AccountId): string[] {
  return provider.messages
    .filter((message) => message.channel === `private-account-${account}`)
    .map((message) => (JSON.parse(message.data) as { id: string }).id)
}
