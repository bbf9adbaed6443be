import { findEventOwner } from '../../event/occurrence/event.ts'
import { findDispatchOwner, findJobOwner, findSubscriptionOwner, findWebhookOwner } from './row-owner.store.ts'

/** The database of the webhook in the path. */
export const BY_WEBHOOK = { by: 'row', findOwner: findWebhookOwner } as const

/** The database of the webhook that the member `webhook` of the body names. */
export const BY_NAMED_WEBHOOK = { ...BY_WEBHOOK, member: 'webhook' } as const

/** The database of the subscription, the ledger row or the bulk replay in the path. */
export const BY_SUBSCRIPTION = { by: 'row', findOwner: findSubscriptionOwner } as const
export const BY_DISPATCH = { by: 'row', findOwner: findDispatchOwner } as const
export const BY_JOB = { by: 'row', findOwner: findJobOwner, staysBehind: true } as const

/** The databases of a list of what belongs to webhooks, or of their deliveries. Those of one event may be in two. */
export const BY_FILTERS = { by: 'scope', filters: { webhook: findWebhookOwner }, several: 'merge' } as const

/** The database of a bulk replay: of one event, that of the event. */
export const BY_REPLAY_FILTERS = {
  ...BY_FILTERS,
  filters: { ...BY_FILTERS.filters, event_id: findEventOwner },
  several: 'refuse',
} as const
