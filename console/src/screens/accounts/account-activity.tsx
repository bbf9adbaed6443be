import { Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { List, useRows } from '../../parts/list.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status, webhookState } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { nameOf } from '../../parts/words/webhook-name.ts'

/** The webhooks of an account. */
export function AccountWebhooks({ account }: { account: string }) {
  const { t } = useTranslation()
  const filters = [`account|eq|${account}`]
  const rows = useRows({
    key: ['webhooks', 'account', account],
    load: (page, signal) => api.webhook.webhookFindAll({ query: { ...page, filters }, signal }),
  })
  const columns: Column<Schemas['Webhook']>[] = [
    {
      label: t('webhooks.name'),
      opens: true,
      cell: (row) => (
        <TextLink to="/webhooks/$id" params={{ id: row.document_id }} size="sm" fw={600}>
          {nameOf(row)}
        </TextLink>
      ),
    },
    { label: t('users.state'), cell: (row) => <Status name={webhookState(row)} /> },
    { label: t('webhooks.failures'), cell: ({ consecutive_failures }) => consecutive_failures, isNumber: true },
    { label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
  ]
  return (
    <List
      caption={t('webhooks.title')}
      columns={columns}
      rows={rows}
      isFiltered={false}
      empty={<Text size="sm">{t('webhooks.empty')}</Text>}
    />
  )
}

/** Changes in an account, newest first. */
export function AccountEvents({ account }: { account: string }) {
  const { t } = useTranslation()
  const filters = [`account|eq|${account}`]
  const rows = useRows({
    key: ['events', 'account', account],
    load: (page, signal) =>
      api.webhook.eventOccurrenceFindAll({ query: { ...page, filters, sort: '-created_at' }, signal }),
    isNewestFirst: true,
  })
  const columns: Column<Schemas['EventOccurrence']>[] = [
    { label: t('audit.time'), cell: ({ created_at }) => <Time at={created_at} /> },
    {
      label: t('deliveries.event'),
      opens: true,
      cell: ({ document_id, event }) => (
        <TextLink to="/events/$id" params={{ id: document_id }} size="sm" fw={600}>
          {event}
        </TextLink>
      ),
    },
    {
      label: t('event.resource'),
      cell: ({ resource_id }) => (resource_id === null ? '–' : <CopyText text={resource_id} isShort />),
    },
  ]
  return (
    <List
      caption={t('event.title')}
      columns={columns}
      rows={rows}
      isFiltered={false}
      empty={<Text size="sm">{t('event.empty')}</Text>}
    />
  )
}
