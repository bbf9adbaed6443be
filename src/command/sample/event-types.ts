import { buildExample } from '../../event/catalogue/example.ts'
import { DAY_MS, type SamplePlan, type SampleRows } from './sample-plan.ts'

/** Event types of the sample's platform, in addition to those of the routes. */
const PUBLISHED = [
  ['order.create', 'An order was placed'],
  ['order.ship', 'An order left the warehouse'],
  ['invoice.send', 'An invoice was sent'],
  ['invoice.pay', 'An invoice was paid'],
  ['invoice.overdue', 'An invoice was not paid in time'],
  ['refund.create', 'A refund was asked for'],
  ['shipment.delay', 'A shipment will be late'],
] as const

/** One that the platform gave up. */
const DEPRECATED = 'shipment.delay'

/** Frequent types, with their share of an account's events in percent. */
export const BUSY_TYPES = [
  ['order.create', 31],
  ['order.ship', 26],
  ['invoice.send', 15],
  ['invoice.pay', 13],
  ['contract.update', 13],
  ['contract.create', 2],
] as const

/** Rare types: two events a day and account. Webhooks of hosts that do not exist subscribe to these alone. */
export const RARE_TYPES = ['invoice.overdue', 'refund.create', 'shipment.delay'] as const

/** Notices of the service about webhooks. */
export const NOTICE_TYPES = [
  'webhook.failing',
  'webhook.auto-disable',
  'webhook.recovered',
  'webhook-dispatch.exhausted',
] as const

/** Builds the missing event types. Returns the ids of all, by name. */
export function buildEventTypes(plan: SamplePlan): { rows: SampleRows; ids: ReadonlyMap<string, string> } {
  const at = plan.before(90 * DAY_MS)
  const missing = PUBLISHED.filter(([internal]) => !plan.eventTypes.has(internal))
  const event = missing.map(([internal, description], number) => ({
    ...{ document_id: plan.idOf('event type', number), internal, description, source: 'external' },
    ...{ account_scope: 'account', is_tenant_visible: true, created_at: at, updated_at: at },
    ...{ group: 'shop', example: buildExample({ internal, accountScope: 'account', readPath: null }) },
    deprecated_at: internal === DEPRECATED ? at : null,
    deprecation_remedy: internal === DEPRECATED ? 'Subscribe to order.ship.' : null,
  }))
  const own = event.map(({ internal, document_id: id }) => [internal, id] as const)
  return { rows: { event }, ids: new Map([...plan.eventTypes, ...own]) }
}
