import { Button, Group, NativeSelect, Text, TextInput } from '@mantine/core'
import { Outlet, useNavigate, useSearch } from '@tanstack/react-router'
import { type SyntheticEvent, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission } from '../../parts/problem.tsx'
import { BulkReplay } from './bulk-replay.tsx'
import { useDeliveryColumns } from './delivery-table.tsx'
import { type DeliveryFilters, SINCE_HOURS, toApiFilters } from './filters.ts'

const STATUSES = ['pending', 'retrying', 'success', 'failed', 'exhausted', 'cancelled'] as const

/** The ledger: every delivery, newest first, by the filters of the URL. */
export function DeliveriesScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const filters = useSearch({ from: '/deliveries' })
  const navigate = useNavigate({ from: '/deliveries' })
  const choose = (next: DeliveryFilters) => void navigate({ to: '/deliveries', search: next, replace: true })
  // Counted back from when the filters were chosen, so that the pages of one list agree.
  const apiFilters = useMemo(() => toApiFilters(filters, Date.now()), [filters])
  const query = { sort: '-created_at' as const, ...(apiFilters.length > 0 && { filters: apiFilters }) }
  const rows = useRows({
    key: ['deliveries', apiFilters],
    load: (page, signal) => api.webhook.webhookDispatchFindAll({ query: { ...query, ...page }, signal }),
    isNewestFirst: true,
  })
  const columns = useDeliveryColumns()
  if (!may('webhook-dispatch:find-all'))
    return (
      <Page title={t('deliveries.title')}>
        <NoPermission permission="webhook-dispatch:find-all" />
      </Page>
    )
  return (
    <Page
      title={t('deliveries.title')}
      lead={t('deliveries.lead')}
      actions={
        <>
          {may('webhook-dispatch:replay') && <BulkReplay filters={apiFilters} />}
          <ApiCall
            operation="webhook.webhookDispatchFindAll"
            method="GET"
            path="/api/v3/webhook/dispatch"
            query={query}
          />
        </>
      }
    >
      <FilterBar key={JSON.stringify(filters)} filters={filters} onChoose={choose} />
      <List
        caption={t('deliveries.title')}
        columns={columns}
        rows={rows}
        isFiltered={Object.keys(filters).length > 0}
        onClear={() => choose({})}
        empty={<Text>{t('deliveries.empty')}</Text>}
      />
      <Outlet />
    </Page>
  )
}

function FilterBar({ filters, onChoose }: { filters: DeliveryFilters; onChoose: (next: DeliveryFilters) => void }) {
  const { t } = useTranslation()
  const [event, setEvent] = useState(filters.event ?? '')
  const [webhook, setWebhook] = useState(filters.webhook ?? '')
  const without = (name: keyof DeliveryFilters, value: string): DeliveryFilters => {
    const { [name]: _, ...rest } = { ...filters, ...typed() }
    return value === '' ? rest : { ...rest, [name]: value }
  }
  const typed = () => ({ ...(event && { event: event.trim() }), ...(webhook && { webhook: webhook.trim() }) })
  const submit = (submitted: SyntheticEvent) => {
    submitted.preventDefault()
    const { event: _event, webhook: _webhook, ...rest } = filters
    onChoose({ ...rest, ...typed() })
  }
  return (
    <form onSubmit={submit} aria-label={t('filters.title')}>
      <Group align="flex-end" gap="sm">
        <NativeSelect
          label={t('deliveries.status')}
          value={filters.status ?? ''}
          onChange={({ currentTarget }) => onChoose(without('status', currentTarget.value))}
          data={[
            { value: '', label: t('filters.all') },
            ...STATUSES.map((value) => ({ value, label: t(`status.${value}`) })),
            { value: 'test', label: t('deliveries.tests') },
          ]}
        />
        <NativeSelect
          label={t('filters.since')}
          value={filters.since ?? ''}
          onChange={({ currentTarget }) => onChoose(without('since', currentTarget.value))}
          data={[
            { value: '', label: t('filters.any-time') },
            ...Object.keys(SINCE_HOURS).map((value) => ({ value, label: t(`since.${value as '1h'}`) })),
          ]}
        />
        <NativeSelect
          label={t('deliveries.answer')}
          value={filters.code ?? ''}
          onChange={({ currentTarget }) => onChoose(without('code', currentTarget.value))}
          data={[
            { value: '', label: t('filters.all') },
            ...['2xx', '3xx', '4xx', '5xx'].map((value) => ({ value, label: value })),
            { value: 'none', label: t('deliveries.no-answer') },
          ]}
        />
        <TextInput
          label={t('deliveries.event')}
          placeholder="contract.update"
          value={event}
          onChange={({ currentTarget }) => setEvent(currentTarget.value)}
        />
        <TextInput
          label={t('deliveries.webhook')}
          placeholder="id"
          value={webhook}
          onChange={({ currentTarget }) => setWebhook(currentTarget.value)}
        />
        <Button type="submit" variant="default">
          {t('filters.apply')}
        </Button>
        {Object.keys(filters).length > 0 && (
          <Button variant="subtle" onClick={() => onChoose({})}>
            {t('list.clear')}
          </Button>
        )}
      </Group>
    </form>
  )
}
