import type { Schemas } from '@signalbox/client'
import type { TFunction } from 'i18next'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { formatMs } from '../../parts/chart/format.ts'
import { type Column, RowTable } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { faultName } from '../../parts/words/fault-name.ts'
import { BESIDE } from './beside.ts'
import { NextAttempt } from './next-attempt.tsx'
import { useWebhookNames } from './use-webhook-names.ts'

type Delivery = Schemas['Dispatch']

/** The columns of deliveries. */
export function useDeliveryColumns(): Column<Delivery>[] {
  const { t, i18n } = useTranslation()
  return [
    { id: 'status', label: t('deliveries.status'), cell: ({ status }) => <Status name={status} /> },
    {
      label: t('deliveries.event'),
      opens: true,
      cell: ({ document_id, event, is_test }) => (
        <TextLink to="/deliveries/$id" params={{ id: document_id }} search state={BESIDE} size="sm" className="nowrap">
          {event}
          {is_test ? ` (${t('deliveries.test')})` : ''}
        </TextLink>
      ),
    },
    { id: 'created', label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
    { id: 'attempts', label: t('deliveries.attempts'), isNumber: true, cell: ({ attempts }) => attempts },
    { id: 'answer', label: t('deliveries.answer'), cell: (row) => <LastAnswer row={row} /> },
    {
      id: 'duration',
      label: t('deliveries.duration'),
      isNumber: true,
      cell: ({ last_duration_ms }) => (last_duration_ms === null ? '–' : formatMs(last_duration_ms, i18n.language)),
    },
    { id: 'next', label: t('deliveries.next'), cell: (row) => <NextAttempt row={row} /> },
  ]
}

/** Last answer of the receiver, or why there is none. A pulled delivery is acknowledged, without a status. */
export function nameAnswer({ last_status_code: code, last_error: fault, status }: Delivery, t: TFunction): string {
  if (code !== null) return String(code)
  if (fault !== null) return faultName(fault, t)
  return status === 'success' ? t('pull.acknowledged') : '–'
}

/** The same as an element. */
export function LastAnswer({ row }: { row: Delivery }) {
  const { t } = useTranslation()
  return <span className="nowrap small">{nameAnswer(row, t)}</span>
}

/** Some deliveries, without paging. `hasWebhook`: whether they are of several webhooks, which a column names. */
export function DeliveryTable({ rows, hasWebhook = false }: { rows: readonly Delivery[]; hasWebhook?: boolean }) {
  const { t } = useTranslation()
  const names = useWebhookNames(
    useMemo(() => (hasWebhook ? rows.map(({ webhook }) => webhook) : []), [hasWebhook, rows]),
  )
  const [status, event, ...others] = useDeliveryColumns() as [Column<Delivery>, Column<Delivery>]
  const webhook: Column<Delivery> = {
    label: t('deliveries.webhook'),
    cell: ({ webhook: id }) => (
      <TextLink to="/webhooks/$id" params={{ id }} size="sm" className="truncate webhook" title={names.get(id)}>
        {names.get(id) ?? id.slice(0, 8)}
      </TextLink>
    ),
  }
  const columns = [status, event, ...(hasWebhook ? [webhook] : []), ...others]
  return <RowTable caption={t('deliveries.title')} columns={columns} rows={rows} />
}
