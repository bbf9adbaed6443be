import type { AccountId, WebhookId } from '../../base/id.ts'

export interface RoutedEvent {
  accountScope: 'account' | 'none'
  account: AccountId | null
  isPurge: boolean
  excludedWebhook: WebhookId | null
  /** The resource that it is about; null where there is none. */
  resourceId: string | null
  createdAt: Date
  /** Its ordinal among recorded webhooks and events; null for an older release. */
  ordinal: number | null
}

export interface RoutedWebhook {
  id: WebhookId
  isGlobal: boolean
  account: AccountId | null
  /** The only resources whose events it receives; null for all. */
  resourceIds: readonly string[] | null
  isActived: boolean
  deletedAt: Date | null
  createdAt: Date
  /** Its ordinal. */
  ordinal: number
  /** Whether it subscribes to the event's type, and the type is active. */
  isSubscribed: boolean
}

/** The reason of a routing decision. */
export type RoutingVerdict =
  | 'deliver'
  /** The event is about this very webhook. */
  | 'excluded'
  | 'deleted'
  | 'created_later'
  | 'not_subscribed'
  | 'inactive'
  /** An account webhook never receives what has no owner. */
  | 'no_owner'
  /** Purge events reach global webhooks only. */
  | 'purge'
  | 'other_account'
  /** The webhook is limited to other resources. */
  | 'other_resource'

/** Decides whether a webhook receives an event (docs/contract/events.md#routing-rules), as the router does. Pure. */
export function decideRouting(event: RoutedEvent, webhook: RoutedWebhook): RoutingVerdict {
  if (event.excludedWebhook === webhook.id) return 'excluded'
  if (webhook.deletedAt !== null) return 'deleted'
  if (isCreatedLater(event, webhook)) return 'created_later'
  if (!webhook.isSubscribed) return 'not_subscribed'
  if (!webhook.isActived) return 'inactive'
  if (!webhook.isGlobal) {
    if (event.isPurge) return 'purge'
    if (event.accountScope === 'none') return 'no_owner'
    if (event.account === null || event.account !== webhook.account) return 'other_account'
  }
  return isAboutOther(event, webhook) ? 'other_resource' : 'deliver'
}

/** An event without a resource reaches no webhook that is limited to some. */
function isAboutOther({ resourceId }: RoutedEvent, { resourceIds }: RoutedWebhook): boolean {
  return resourceIds !== null && (resourceId === null || !resourceIds.includes(resourceId))
}

/** Ordinals are counted by the database; times of processes are used only without ordinals. */
function isCreatedLater(event: RoutedEvent, webhook: RoutedWebhook): boolean {
  return event.ordinal === null ? webhook.createdAt > event.createdAt : webhook.ordinal > event.ordinal
}
