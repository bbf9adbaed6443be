import type { Schemas } from '@signalbox/client'
import type { TFunction } from 'i18next'
import { nameOf } from './webhook-name.ts'

/**
 * Result of a deactivation, and what its Undo loses beside: an activation counts the failures in a row from 0
 * (docs/decisions/0071-undo-or-a-question.md).
 */
export function describeDeactivation(webhook: Schemas['Webhook'], t: TFunction<'console'>): string {
  const { consecutive_failures: count } = webhook
  const text = t('webhooks.deactivated', { name: nameOf(webhook) })
  return count === 0 ? text : `${text} ${t('webhooks.undo-resets', { count })}`
}
