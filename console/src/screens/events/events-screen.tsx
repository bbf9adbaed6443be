import { Text, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { AccountSelect } from '../../parts/account-select.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { escapeFilter } from '../../parts/filter-text.ts'
import { FilterForm } from '../../parts/form.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { AccountLink, useAccountNames } from '../../parts/names.tsx'
import { Page } from '../../parts/page.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'

interface Filters {
  event?: string
  account?: string
  resource_id?: string
}

/** List of events, newest first. */
export const EventsScreen = guardScreen('event-occurrence:find-all', 'event.title', Events)

function Events() {
  const { t } = useTranslation()
  const filters = useSearch({ from: '/events' })
  const navigate = useNavigate()
  const choose = (next: Filters) => void navigate({ to: '/events', search: next, replace: true })
  const apiFilters = Object.entries(filters).map(([name, value]) => `${name}|eq|${escapeFilter(value)}`)
  const query = { sort: '-created_at' as const, ...(apiFilters.length > 0 && { filters: apiFilters }) }
  const rows = useRows({
    key: ['events', apiFilters],
    load: (page, signal) => api.webhook.eventOccurrenceFindAll({ query: { ...query, ...page }, signal }),
    isNewestFirst: true,
  })
  const named = useAccountNames([filters.account ?? null])
  const accounts = useAccountNames(rows.shown.map(({ account }) => account))
  const columns: Column<Schemas['EventOccurrence']>[] = [
    {
      label: t('deliveries.event'),
      opens: true,
      cell: ({ document_id, event }) => (
        <TextLink to="/events/$id" params={{ id: document_id }} size="sm">
          {event}
        </TextLink>
      ),
    },
    { id: 'created', label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
    {
      id: 'resource',
      label: t('event.resource'),
      cell: ({ resource_id }) => (resource_id === null ? '–' : <CopyText text={resource_id} isShort />),
    },
    {
      id: 'account',
      label: t('delivery.account'),
      cell: ({ account }) => <AccountLink id={account} names={accounts} />,
    },
    {
      id: 'routed',
      label: t('event.routed'),
      cell: ({ routed_at }) => (routed_at ? <Time at={routed_at} /> : t('event.waiting')),
    },
  ]
  return (
    <Page
      title={t('event.title')}
      lead={t('event.lead')}
      actions={
        <ApiCall
          operation="webhook.eventOccurrenceFindAll"
          method="GET"
          path="/api/v3/webhook/event-occurrence"
          query={query}
        />
      }
    >
      <FilterBar key={JSON.stringify(filters)} filters={filters} onChoose={choose} />
      <List
        name="events"
        caption={t('event.title')}
        columns={columns}
        rows={rows}
        isFiltered={apiFilters.length > 0}
        filters={[
          [t('deliveries.event'), filters.event],
          [t('account.label'), filters.account && (named.get(filters.account) ?? filters.account)],
          [t('event.resource'), filters.resource_id],
        ]}
        onClear={() => choose({})}
        empty={<Text size="sm">{t('event.empty')}</Text>}
      />
    </Page>
  )
}

function FilterBar({ filters, onChoose }: { filters: Filters; onChoose: (next: Filters) => void }) {
  const { t } = useTranslation()
  const [event, setEvent] = useState(filters.event ?? '')
  const [resource, setResource] = useState(filters.resource_id ?? '')
  const apply = (next: Filters) => {
    const given = { ...filters, event: event.trim(), resource_id: resource.trim(), ...next }
    onChoose(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== '')))
  }
  return (
    <FilterForm onApply={() => apply({})}>
      <TextInput
        label={t('deliveries.event')}
        placeholder="contract.update"
        value={event}
        onChange={({ currentTarget }) => setEvent(currentTarget.value)}
      />
      <AccountSelect
        value={filters.account ?? ''}
        onChange={(account) => apply({ account })}
        hint=""
        placeholder={t('filters.all')}
      />
      <TextInput
        label={t('event.resource')}
        placeholder="id"
        value={resource}
        onChange={({ currentTarget }) => setResource(currentTarget.value)}
      />
    </FilterForm>
  )
}
