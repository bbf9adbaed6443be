import type { AccountId, WebhookId } from '../../id.ts'

/** What the routing rules look at in an event. */
export interface RoutedEvent {
  accountScope: 'account' | 'none'
  account: AccountId | null
  isPurge: boolean
  excludedWebhook: WebhookId | null
  createdAt: Date
}

/** What the routing rules look at in a webhook. */
export interface RoutedWebhook {
  id: WebhookId
  isGlobal: boolean
  account: AccountId | null
  isActived: boolean
  deletedAt: Date | null
  createdAt: Date
  /** Whether it subscribes to the event's type, and the type is active. */
  isSubscribed: boolean
}

/** Why an event goes to a webhook, or why not. */
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

/**
 * Decides whether an event goes to a webhook (docs/contract/events.md#routing-rules). The router and the explanation an operator asks
 * for both call this, so what is explained is what was done. Pure.
 */
export function decideRouting(event: RoutedEvent, webhook: RoutedWebhook): RoutingVerdict {
  if (event.excludedWebhook === webhook.id) return 'excluded'
  if (webhook.deletedAt !== null) return 'deleted'
  if (webhook.createdAt > event.createdAt) return 'created_later'
  if (!webhook.isSubscribed) return 'not_subscribed'
  if (!webhook.isActived) return 'inactive'
  if (webhook.isGlobal) return 'deliver'
  if (event.isPurge) return 'purge'
  if (event.accountScope === 'none') return 'no_owner'
  return event.account !== null && event.account === webhook.account ? 'deliver' : 'other_account'
}
