import { Group, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { FilterChoice } from '../../parts/form.tsx'
import { List, useRows } from '../../parts/list.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { valueName } from '../../parts/words/value-name.ts'

type Message = Schemas['RealtimeMessage']

const STATUSES = ['pending', 'retrying', 'published', 'rejected', 'exhausted'] as const

/** Recent publications, with their outcomes. */
export function Messages() {
  const { t } = useTranslation()
  const { status } = useSearch({ from: '/realtime' })
  const navigate = useNavigate()
  const choose = (next: string) =>
    void navigate({ to: '/realtime', search: { tab: 'messages', ...(next && { status: next }) }, replace: true })
  const filters = status ? [`status|eq|${status}`] : []
  const rows = useRows<Message>({
    key: ['realtime-messages', filters],
    load: (page, signal) =>
      api.realtime.realtimeMessageFindAll({
        query: { sort: '-created_at', ...(filters.length > 0 && { filters }), ...page },
        signal,
      }),
    isNewestFirst: true,
  })
  const columns: Column<Message>[] = [
    { label: t('deliveries.status'), cell: (row) => <Status name={row.status} /> },
    {
      label: t('deliveries.event'),
      opens: true,
      cell: ({ document_id, event }) => (
        <TextLink to="/events/$id" params={{ id: document_id }} size="sm" className="nowrap">
          {event}
        </TextLink>
      ),
    },
    {
      label: t('realtime.col.channel'),
      cell: ({ channels }) => channels.map((name) => <CopyText key={name} text={name} isShort />),
    },
    { label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
    { label: t('deliveries.attempts'), isNumber: true, cell: ({ attempts }) => attempts },
    {
      label: t('deliveries.answer'),
      cell: ({ last_status_code: code, last_error: fault }) => code ?? fault ?? '–',
    },
    { label: t('deliveries.next'), cell: ({ next_attempt_at }) => <Time at={next_attempt_at} /> },
  ]
  return (
    <Stack>
      <Group align="flex-end">
        <FilterChoice
          label={t('deliveries.status')}
          value={status}
          onChange={choose}
          options={STATUSES.map((value) => ({ value, label: t(`status.${value}`) }))}
        />
      </Group>
      <List
        caption={t('realtime.tab.messages')}
        columns={columns}
        rows={rows}
        isFiltered={filters.length > 0}
        filters={[[t('deliveries.status'), status && valueName('status', status, t)]]}
        onClear={() => choose('')}
        empty={<Text size="sm">{t('realtime.no-message')}</Text>}
      />
    </Stack>
  )
}

/** Events of channels in the last day. */
export function ChannelEvents() {
  const { t } = useTranslation()
  const rows = useRows<Schemas['RealtimeChannelEvent']>({
    key: ['channel-events'],
    load: (page, signal) =>
      api.realtime.realtimeChannelEventFindAll({ query: { sort: '-created_at', ...page }, signal }),
    isNewestFirst: true,
  })
  const columns: Column<Schemas['RealtimeChannelEvent']>[] = [
    { label: t('realtime.col.event'), cell: ({ name, event }) => (event === null ? name : `${name} ${event}`) },
    { label: t('realtime.col.channel'), cell: ({ channel }) => <CopyText text={channel} isShort /> },
    { label: t('users.one'), cell: ({ user_id: user }) => (user === null ? '–' : <CopyText text={user} isShort />) },
    {
      label: t('realtime.listeners'),
      isNumber: true,
      cell: ({ subscription_count: count }) => count ?? '–',
    },
    { label: t('realtime.col.time'), cell: ({ happened_at: at }) => <Time at={at} /> },
  ]
  return (
    <List
      caption={t('realtime.tab.events')}
      columns={columns}
      rows={rows}
      isFiltered={false}
      empty={<Text size="sm">{t('realtime.no-event')}</Text>}
    />
  )
}
