import { Anchor } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { List, useRows } from '../../parts/list.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'
import { NextAttempt } from '../../screens/deliveries/next-attempt.tsx'
import { useWebhookNames } from '../../screens/deliveries/use-webhook-names.ts'
import { hrefOf } from '../route.ts'
import { Nothing } from '../screen.tsx'

/** Deliveries that match filters of the API, the newest first. */
export function DeliveryList({ filters, onClear }: { filters: readonly string[]; onClear?: (() => void) | undefined }) {
  const { t } = useTranslation('portal')
  const { t: shared } = useTranslation('console')
  const { may } = useAccess()
  const rows = useRows({
    key: ['deliveries', filters],
    load: (page, signal) =>
      api.webhook.webhookDispatchFindAll({
        query: { sort: '-created_at', ...(filters.length > 0 && { filters: [...filters] }), ...page },
        signal,
      }),
    isNewestFirst: true,
  })
  const isOfOne = filters.some((filter) => filter.startsWith('webhook|'))
  const names = useWebhookNames(isOfOne ? [] : rows.shown.map(({ webhook }) => webhook))
  const columns: Column<Schemas['Dispatch']>[] = [
    { label: shared('deliveries.status'), cell: ({ status }) => <Status name={status} /> },
    {
      label: shared('deliveries.event'),
      opens: true,
      cell: ({ document_id, event }) => (
        <Anchor href={hrefOf('deliveries', document_id)} size="sm" className="nowrap">
          {event}
        </Anchor>
      ),
    },
    ...(isOfOne
      ? []
      : [
          {
            label: shared('deliveries.webhook'),
            cell: ({ webhook }: Schemas['Dispatch']) => <WebhookLink id={webhook} names={names} />,
          },
        ]),
    { label: shared('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
    { label: shared('deliveries.attempts'), isNumber: true, cell: ({ attempts }) => attempts },
    { label: shared('deliveries.answer'), cell: (row) => <Answer row={row} /> },
    { label: shared('deliveries.next'), cell: (row) => <NextAttempt row={row} /> },
  ]
  return (
    <List
      caption={shared('deliveries.title')}
      columns={columns}
      rows={rows}
      isFiltered={onClear !== undefined}
      {...(onClear && { onClear })}
      empty={
        <Nothing
          title={t('deliveries.none')}
          text={t(may('webhook:test') ? 'deliveries.none-text' : 'deliveries.none-text-viewer')}
        />
      }
    />
  )
}

/** Last answer of the receiver, or why there is none. */
function Answer({ row }: { row: Schemas['Dispatch'] }) {
  const { t } = useTranslation('console')
  const { last_status_code: code, last_error: fault, status } = row
  if (code !== null) return <span className="nowrap">HTTP {code}</span>
  if (fault === null) return <>{status === 'success' ? t('pull.acknowledged') : '–'}</>
  return <span className="nowrap">{t(`fault.${fault as Exclude<Schemas['Attempt']['error_class'], null>}`)}</span>
}

/** A webhook as a link, by its name where it is known; one that is deleted has none. */
export function WebhookLink({ id, names }: { id: string; names: ReadonlyMap<string, string> }) {
  return (
    <Anchor href={hrefOf('webhooks', id)} size="sm">
      {names.get(id) ?? id.slice(0, 8)}
    </Anchor>
  )
}
