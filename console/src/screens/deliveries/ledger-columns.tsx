import type { Schemas } from '@signalbox/client'
import { useRouterState } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { formatMs } from '../../parts/chart/format.ts'
import type { Column } from '../../parts/row-table.tsx'
import { StatusBadge } from '../../parts/status.tsx'
import { useDateFormat, useNow } from '../../parts/time.tsx'
import { nameAnswer } from './delivery-table.tsx'

type Delivery = Schemas['Dispatch']

/** POSTs that a delivery gets by its schedule (docs/contract/delivery.md#automatic-attempts). */
const SCHEDULED = 5

/**
 * The columns of the ledger. `names`: those of webhooks by their ids. The cells are plain elements, since the ledger draws
 * some 20 rows while a wheel turns once; the table follows their links.
 */
export function useLedgerColumns(names: ReadonlyMap<string, string>): readonly Column<Delivery>[] {
  const { t, i18n } = useTranslation()
  const clock = useDateFormat({ timeStyle: 'medium' })
  const search = useRouterState({ select: ({ location }) => location.searchStr })
  return useMemo(
    () => [
      {
        label: t('ledger.time'),
        cell: ({ created_at }) => (
          <time dateTime={created_at} title={created_at}>
            {clock(created_at)}
          </time>
        ),
      },
      {
        id: 'status',
        label: t('deliveries.status'),
        cell: ({ status }) => <StatusBadge name={status} text={t(`status.${status}`)} />,
      },
      {
        label: t('deliveries.event'),
        opens: true,
        cell: ({ document_id, event, is_test }) => (
          <a className="link" data-beside href={`/console/deliveries/${document_id}${search}`}>
            {event}
            {is_test ? ` (${t('deliveries.test')})` : ''}
          </a>
        ),
      },
      {
        id: 'webhook',
        label: t('deliveries.webhook'),
        cell: ({ webhook }) => (
          <a className="link truncate webhook" href={`/console/webhooks/${webhook}`} title={names.get(webhook)}>
            {names.get(webhook) ?? webhook.slice(0, 8)}
          </a>
        ),
      },
      {
        id: 'attempts',
        label: t('deliveries.attempts'),
        isNumber: true,
        cell: ({ attempts }) =>
          attempts <= SCHEDULED ? t('ledger.of-five', { attempts }) : t('ledger.more', { more: attempts - SCHEDULED }),
      },
      {
        id: 'trigger',
        label: t('ledger.trigger'),
        cell: ({ is_replay, is_test }) => t(is_test && !is_replay ? 'deliveries.test' : `ledger.trigger.${is_replay}`),
      },
      { id: 'answer', label: t('deliveries.answer'), cell: (row) => nameAnswer(row, t) },
      {
        id: 'duration',
        label: t('deliveries.duration'),
        isNumber: true,
        cell: ({ last_duration_ms: ms }) => (ms === null ? '–' : formatMs(ms, i18n.language)),
      },
      {
        id: 'next',
        label: t('deliveries.next'),
        cell: ({ next_attempt_at: at, waiting_reason: reason }) =>
          reason !== null ? t(`deliveries.${reason}`) : at === null ? '–' : <Countdown at={at} />,
      },
    ],
    [t, clock, names, search, i18n.language],
  )
}

/** The time until an instant, to the second. */
function Countdown({ at }: { at: string }) {
  const { t } = useTranslation()
  const nowMs = useNow()
  const seconds = Math.max(0, Math.round((Date.parse(at) - nowMs) / 1_000))
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  const two = (value: number) => String(value).padStart(2, '0')
  const text = hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`
  return (
    <span className="numeric" title={at}>
      {seconds === 0 ? t('ledger.due') : text}
    </span>
  )
}
