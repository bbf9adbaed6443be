import { Button, Stack, Text, TextInput } from '@mantine/core'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { AccountSelect } from '../../../parts/account-select.tsx'
import { ApiCall } from '../../../parts/api-call.tsx'
import { escapeFilter } from '../../../parts/filter-text.ts'
import { FilterChoice, FilterForm } from '../../../parts/form.tsx'
import { guardScreen } from '../../../parts/guarded.tsx'
import { List, useRows } from '../../../parts/list.tsx'
import { useAccountNames } from '../../../parts/names.tsx'
import type { NamedFilter } from '../../../parts/no-match.tsx'
import { Page } from '../../../parts/page.tsx'
import { valueName } from '../../../parts/words/value-name.ts'
import { useEventTypes } from '../../catalogue/event-types.ts'
import { useActivity } from '../use-activity.ts'
import { BulkBar, ExportButton } from './bulk-bar.tsx'
import { EventSelect } from './event-select.tsx'
import { readSubscribers } from './subscribers.ts'
import { useWebhookColumns } from './webhook-columns.tsx'

interface Filters {
  q?: string
  state?: string
  scope?: string
  account?: string
  /** Name of an event type. */
  event?: string
}

const STATES: Readonly<Record<string, readonly string[]>> = {
  active: ['is_actived|eq|true'],
  inactive: ['is_actived|eq|false', 'disabled_reason|null|true'],
  disabled: ['is_actived|eq|false', 'disabled_reason|null|false'],
}

/** The filters as the API takes them. Pure. */
function toApiFilters({ q, state, scope, account }: Filters): string[] {
  return [
    ...(q ? [`url|like|${escapeFilter(q)}`] : []),
    ...(STATES[state ?? ''] ?? []),
    ...(account ? [`account|eq|${account}`] : []),
    ...(scope === 'global' ? ['is_global|eq|true'] : scope === 'account' ? ['is_global|eq|false'] : []),
  ]
}

/** The webhooks that the user may see. */
export const WebhooksScreen = guardScreen('webhook:find-all', 'webhooks.title', Webhooks)

function Webhooks() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const filters = useSearch({ from: '/webhooks' })
  const navigate = useNavigate()
  const filter = (next: Filters) => void navigate({ to: '/webhooks', search: next, replace: true })
  const apiFilters = toApiFilters(filters)
  const query = { sort: '-created_at' as const, ...(apiFilters.length > 0 && { filters: apiFilters }) }
  const types = useEventTypes(filters.event !== undefined)
  const event = types.data?.find(({ internal }) => internal === filters.event)?.document_id
  const rows = useRows({
    key: ['webhooks', apiFilters, filters.event ?? '', event ?? ''],
    load: (page, signal) =>
      filters.event === undefined
        ? api.webhook.webhookFindAll({ query: { ...query, ...page }, signal })
        : readSubscribers(event, { filters: apiFilters, page, signal }),
  })
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const choose = (id: string, isChosen: boolean) => {
    const next = new Set(chosen)
    isChosen ? next.add(id) : next.delete(id)
    setChosen(next)
  }
  const activity = useActivity(rows.shown.map(({ document_id }) => document_id))
  const accounts = useAccountNames(rows.shown.map(({ account }) => account))
  const named = useFilterNames(filters)
  const columns = useWebhookColumns({ activity, accounts, chosen, onChoose: choose })
  const create = may('webhook:create') && (
    <Button component={Link} to="/webhooks/new" size="compact-md">
      {t('webhooks.new')}
    </Button>
  )
  return (
    <Page
      title={t('webhooks.title')}
      lead={t('webhooks.lead')}
      actions={
        <>
          {create}
          {may('webhook:export') && <ExportButton filters={apiFilters} />}
          <ApiCall operation="webhook.webhookFindAll" method="GET" path="/api/v3/webhook/webhook" query={query} />
        </>
      }
    >
      <FilterBar key={JSON.stringify(filters)} filters={filters} onChoose={filter} />
      {chosen.size > 0 && (
        <BulkBar
          chosen={chosen}
          active={rows.shown.filter(({ is_actived }) => is_actived).map(({ document_id }) => document_id)}
          onDone={() => setChosen(new Set())}
        />
      )}
      <List
        name="webhooks"
        caption={t('webhooks.title')}
        columns={columns}
        rows={rows}
        isFiltered={Object.keys(filters).length > 0}
        filters={named}
        onClear={() => filter({})}
        empty={
          <Stack align="center">
            <Text size="sm">{t('webhooks.empty')}</Text>
            {create}
          </Stack>
        }
      />
    </Page>
  )
}

/** The filters by the words of the screen. */
function useFilterNames({ q, state, scope, account, event }: Filters): readonly NamedFilter[] {
  const { t } = useTranslation()
  const accounts = useAccountNames([account ?? null])
  return [
    [t('webhooks.url-part'), q],
    [t('webhooks.state'), state && valueName('status', state, t)],
    [t('webhooks.scope'), scope && (scope === 'global' ? t('webhooks.global') : t('webhooks.of-account'))],
    [t('account.label'), account && (accounts.get(account) ?? account)],
    [t('webhooks.event'), event],
  ]
}

function FilterBar({ filters, onChoose }: { filters: Filters; onChoose: (next: Filters) => void }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [text, setText] = useState(filters.q ?? '')
  const change = (name: keyof Filters, value: string) => {
    const { [name]: _, ...rest } = filters
    onChoose(value === '' ? rest : { ...rest, [name]: value })
  }
  return (
    <FilterForm
      onApply={() => change('q', text.trim())}
      onClear={Object.keys(filters).length > 0 ? () => onChoose({}) : undefined}
    >
      <TextInput
        label={t('webhooks.url-part')}
        value={text}
        minLength={3}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
      <FilterChoice
        label={t('webhooks.state')}
        value={filters.state}
        onChange={(value) => change('state', value)}
        options={[
          { value: 'active', label: t('status.active') },
          { value: 'inactive', label: t('status.inactive') },
          { value: 'disabled', label: t('status.disabled') },
        ]}
      />
      <FilterChoice
        label={t('webhooks.scope')}
        value={filters.scope}
        onChange={(value) => change('scope', value)}
        options={[
          { value: 'global', label: t('webhooks.global') },
          { value: 'account', label: t('webhooks.of-account') },
        ]}
      />
      <AccountSelect
        value={filters.account ?? ''}
        onChange={(account) => change('account', account)}
        hint=""
        placeholder={t('filters.all')}
      />
      {may('webhook-event:find-all') && may('event:find-all') && (
        <EventSelect value={filters.event ?? ''} onChange={(event) => change('event', event)} />
      )}
    </FilterForm>
  )
}
