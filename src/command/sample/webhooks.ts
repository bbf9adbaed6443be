import type { AccountId, WebhookId } from '../../base/id.ts'
import type { ErrorClass } from '../../delivery/post/attempt-result.ts'
import { AUTO_DISABLE_AFTER_FAILURES } from '../../webhook/delivery/failure-count.ts'
import { secretContextOf } from '../../webhook/registry/webhook.ts'
import { BUSY_TYPES, NOTICE_TYPES, RARE_TYPES } from './event-types.ts'
import { DAY_MS, HOUR_MS, type SamplePlan, type SampleRows } from './sample-plan.ts'
import type { SampleAccount } from './users.ts'

/** Failure of a receiver: the class, or the answered status. */
export type Failure = ErrorClass | number

/** A webhook of the sample, and how its receiver behaves. */
export interface SampleWebhook {
  id: WebhookId
  account: SampleAccount | undefined
  name: string
  url: string
  types: readonly string[]
  createdAt: Date
  /** Share of first attempts that fail and succeed later. */
  flakiness: number
  /** Fails from the event on that is the n-th last of its own, or from an instant on. */
  failure: { kind: Failure; from: { last: number } | { at: Date } } | undefined
  /** Reason of its inactivity. */
  rest: 'inactive' | 'legacy-secret-rotation-required' | undefined
}

const BUSY = BUSY_TYPES.map(([name]) => name)
const ORDERS = ['order.create', 'order.ship'] as const
const INVOICES = ['invoice.send', 'invoice.pay', 'contract.update'] as const

/** Working receivers, for each account in turn: name, path and event types. They are the service's own receiver. */
const WORKING = [
  [
    ['Warehouse', 'warehouse', ORDERS],
    ['Bookkeeping', 'bookkeeping', INVOICES],
  ],
  [
    ['Analytics', 'analytics', BUSY],
    ['Shop', 'shop', ORDERS],
  ],
  [
    ['CRM', 'crm', ['contract.create', 'contract.update', 'invoice.pay']],
    ['Chat messages', 'chat', [...ORDERS, ...RARE_TYPES]],
  ],
] as const

/**
 * Failing receivers, each in an account of its own. Their hosts end in `.example`, so nothing is ever dialled. The
 * service disables a webhook at twenty failures in a row: those with more events since then were disabled days ago.
 */
const FAILING: readonly (readonly [name: string, kind: Failure, last: number])[] = [
  ['Late notices', 'timeout', 12],
  ['Claims desk', 404, 7],
  ['Dunning', 500, 19],
  ['Fleet board', 'tls', 15],
  ['Old intranet', 'dns', 160],
  ['Refund bot', 302, 9],
  ['Status page', 'blocked_address', 5],
  ['Partner portal', 410, 240],
  ['Night batch', 'connect', 120],
  ['Print server', 'reset', 3],
  ['Call center', 503, 11],
]

/** Builds some forty webhooks with their subscriptions. Secrets are random; those that were never rotated have none. */
export function buildWebhooks(
  plan: SamplePlan,
  { accounts, types }: { accounts: readonly SampleAccount[]; types: ReadonlyMap<string, string> },
): { rows: SampleRows; webhooks: SampleWebhook[] } {
  const webhooks = [...listOfAccounts(plan, accounts), ...listGlobal(plan)].map(
    (item, number): SampleWebhook => ({
      ...{ failure: undefined, rest: undefined, flakiness: 0.004 + 0.004 * (number % 5) },
      ...item,
      id: plan.idOf('webhook', number),
      createdAt: plan.before((31 + (number % 20)) * DAY_MS + 3 * HOUR_MS),
    }),
  )
  const links = webhooks.flatMap(({ id, types: names, createdAt }) =>
    names.flatMap((name) => {
      const event = types.get(name)
      return event === undefined ? [] : [{ webhook: id, event, created_at: createdAt, updated_at: createdAt }]
    }),
  )
  const webhook_event = links.map((link, number) => ({ document_id: plan.idOf('subscription', number), ...link }))
  return { rows: { webhook: webhooks.map((webhook) => toRow(plan, webhook)), webhook_event }, webhooks }
}

type Draft = Pick<SampleWebhook, 'account' | 'name' | 'url' | 'types'> & Partial<SampleWebhook>

function listOfAccounts(plan: SamplePlan, accounts: readonly SampleAccount[]): Draft[] {
  return accounts.flatMap((account, number) => {
    const working = WORKING[number % WORKING.length]!.map(
      ([name, path, types]): Draft => ({ account, name, types, url: buildSinkUrl(plan, `${account.slug}-${path}`) }),
    )
    const [name, kind, last] = FAILING[number] ?? []
    if (name === undefined || kind === undefined || last === undefined) return working
    const url = `https://hooks.${account.slug}.example/signalbox/${name.toLowerCase().replaceAll(' ', '-')}`
    const types = last > AUTO_DISABLE_AFTER_FAILURES ? [...RARE_TYPES, 'order.ship', 'invoice.send'] : RARE_TYPES
    return [...working, { account, name, url, types, failure: { kind, from: { last } }, flakiness: 0 }]
  })
}

/** Those of the operator, over all accounts, and two from before secrets were stored encrypted. */
function listGlobal(plan: SamplePlan): Draft[] {
  const global = (name: string, path: string, types: readonly string[]): Draft => ({
    ...{ account: undefined, name, types, url: buildSinkUrl(plan, `platform-${path}`) },
  })
  const resting = { url: 'https://archive.platform.example/events', account: undefined } as const
  return [
    // Out since an hour and a half: its deliveries wait, and arrive at the next attempt.
    {
      ...global('Event archive', 'archive', [...BUSY, ...RARE_TYPES]),
      failure: { kind: 503, from: { at: plan.before(1.5 * HOUR_MS) } },
    },
    global('Alerts of webhooks', 'alerts', NOTICE_TYPES),
    global('Search index', 'search', ['contract.create', 'contract.update']),
    { ...global('Staging copy', 'staging', ORDERS), rest: 'inactive' },
    { ...resting, name: 'Archive of the old platform', types: INVOICES, rest: 'legacy-secret-rotation-required' },
    { ...resting, name: 'Reports of the old platform', types: ORDERS, rest: 'legacy-secret-rotation-required' },
  ]
}

const buildSinkUrl = ({ sinkUrl }: SamplePlan, receiver: string) => `${sinkUrl}?receiver=${receiver}`

function toRow(plan: SamplePlan, { id, account, name, url, createdAt, rest }: SampleWebhook) {
  const owner: AccountId | null = account?.id ?? null
  const isLegacy = rest === 'legacy-secret-rotation-required'
  const updatedAt = rest === undefined ? createdAt : plan.before((isLegacy ? 25 : 4) * DAY_MS)
  return {
    ...{ document_id: id, account: owner, is_global: owner === null, name, url },
    ...{ is_actived: rest === undefined, consecutive_failures: 0 },
    ...{ disabled_at: isLegacy ? updatedAt : null, disabled_reason: isLegacy ? rest : null },
    secret_encrypted: isLegacy ? null : plan.seal(secretContextOf(id)),
    ...{ created_by: account?.members[0]?.id ?? plan.administrator, updated_by: plan.administrator },
    ...{ created_at: createdAt, updated_at: updatedAt },
  }
}
