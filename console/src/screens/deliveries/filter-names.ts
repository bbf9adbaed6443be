import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { useTimeZone } from '../../frame/preferences.ts'
import { formatInstant } from '../../parts/format-instant.ts'
import { useAccountNames } from '../../parts/names.tsx'
import type { NamedFilter } from '../../parts/no-match.tsx'
import { faultName } from '../../parts/words/fault-name.ts'
import { valueName } from '../../parts/words/value-name.ts'
import type { DeliveryFilters } from './filters.ts'
import { useWebhookNames } from './use-webhook-names.ts'

/** The filters of the ledger by the words of their form. */
export function useFilterNames(filters: DeliveryFilters): readonly NamedFilter[] {
  const { t, i18n } = useTranslation()
  const timeZone = useTimeZone()
  const zone = timeZone ?? t('zone.local')
  const { status, webhook, account, code, error, trigger, waiting, since } = filters
  const webhooks = useWebhookNames(useMemo(() => (webhook === undefined ? [] : [webhook]), [webhook]))
  const accounts = useAccountNames([account ?? null])
  const instant = (text: string | undefined) =>
    text === undefined || Number.isNaN(Date.parse(text)) ? text : formatInstant(text, i18n.language, timeZone)
  return [
    [t('deliveries.status'), status && (status === 'test' ? t('deliveries.tests') : valueName('status', status, t))],
    [t('deliveries.event'), filters.event],
    [t('deliveries.answer'), code === 'none' ? t('deliveries.no-answer') : code],
    [t('filters.since'), since && valueName('since', since, t)],
    [t('ledger.id'), filters.id],
    [t('deliveries.webhook'), webhook && (webhooks.get(webhook) ?? webhook)],
    [t('delivery.account'), account && (accounts.get(account) ?? account)],
    [t('event.resource'), filters.resource],
    [t('event.id'), filters.event_id],
    [t('ledger.attempts'), filters.attempts],
    [t('ledger.error'), error && faultName(error, t)],
    [t('ledger.trigger'), trigger && valueName('ledger.trigger', String(trigger === 'manual'), t)],
    [t('ledger.waiting'), waiting && t('deliveries.throttled')],
    [t('ledger.from', { zone }), instant(filters.from)],
    [t('ledger.to', { zone }), instant(filters.to)],
  ]
}
