import { Button, Group, NativeSelect, Progress, Stack, Text, TextInput, Tooltip } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { type SyntheticEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { type Column, List, useRows } from '../../parts/list.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission } from '../../parts/problem.tsx'
import { Status, webhookState } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { nameOf } from './webhook-name.ts'

/** Failed deliveries in a row that disable a webhook (docs/contract/delivery.md#automatic-disable). */
export const DISABLE_AFTER = 20

interface Filters {
  q?: string
  state?: string
  scope?: string
}

const STATES: Readonly<Record<string, readonly string[]>> = {
  active: ['is_actived|eq|true'],
  inactive: ['is_actived|eq|false', 'disabled_reason|null|true'],
  disabled: ['is_actived|eq|false', 'disabled_reason|null|false'],
}

/** The filters as the API takes them. Pure. */
function toApiFilters({ q, state, scope }: Filters): string[] {
  const text = q?.replaceAll(/[\\,]/g, '\\$&')
  return [
    ...(text ? [`url|like|${text}`] : []),
    ...(STATES[state ?? ''] ?? []),
    ...(scope === 'global' ? ['is_global|eq|true'] : scope === 'account' ? ['is_global|eq|false'] : []),
  ]
}

/** The webhooks that the person may see. */
export function WebhooksScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const filters = useSearch({ from: '/webhooks' })
  const navigate = useNavigate()
  const choose = (next: Filters) => void navigate({ to: '/webhooks', search: next, replace: true })
  const apiFilters = toApiFilters(filters)
  const query = { sort: '-created_at' as const, ...(apiFilters.length > 0 && { filters: apiFilters }) }
  const rows = useRows({
    key: ['webhooks', apiFilters],
    load: (page, signal) => api.webhook.webhookFindAll({ query: { ...query, ...page }, signal }),
  })
  const columns: Column<Schemas['Webhook']>[] = [
    {
      label: t('webhooks.name'),
      cell: (row) => (
        <Stack gap={0} miw={180}>
          <TextLink to="/webhooks/$id" params={{ id: row.document_id }} size="sm" fw={600}>
            {nameOf(row)}
          </TextLink>
          <Text size="xs" c="dimmed" className="wrap">
            {row.url}
          </Text>
        </Stack>
      ),
    },
    { label: t('webhooks.state'), cell: (row) => <Status name={webhookState(row)} /> },
    {
      label: t('webhooks.scope'),
      cell: ({ is_global, account }) =>
        is_global ? (
          t('webhooks.global')
        ) : (
          <Tooltip label={account}>
            <Text component="span" size="sm" className="nowrap">
              {t('webhooks.of-account')}
            </Text>
          </Tooltip>
        ),
    },
    {
      label: t('webhooks.failures'),
      cell: ({ consecutive_failures: failures }) => (
        <Stack gap={2} miw={90}>
          <Text size="xs">{t('webhooks.of', { failures, limit: DISABLE_AFTER })}</Text>
          <Progress
            value={(failures / DISABLE_AFTER) * 100}
            color={failures >= 15 ? 'red' : failures > 0 ? 'yellow' : 'teal'}
            size={4}
            aria-label={t('webhooks.failures')}
          />
        </Stack>
      ),
    },
    { label: t('webhooks.updated'), cell: ({ updated_at }) => <Time at={updated_at} /> },
  ]
  if (!may('webhook:find-all'))
    return (
      <Page title={t('webhooks.title')}>
        <NoPermission permission="webhook:find-all" />
      </Page>
    )
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
          <ApiCall operation="webhook.webhookFindAll" method="GET" path="/api/v3/webhook/webhook" query={query} />
        </>
      }
    >
      <FilterBar key={JSON.stringify(filters)} filters={filters} onChoose={choose} />
      <List
        caption={t('webhooks.title')}
        columns={columns}
        rows={rows}
        isFiltered={apiFilters.length > 0}
        onClear={() => choose({})}
        empty={
          <Stack align="center">
            <Text>{t('webhooks.empty')}</Text>
            {create}
          </Stack>
        }
      />
    </Page>
  )
}

function FilterBar({ filters, onChoose }: { filters: Filters; onChoose: (next: Filters) => void }) {
  const { t } = useTranslation()
  const [text, setText] = useState(filters.q ?? '')
  const change = (name: keyof Filters, value: string) => {
    const { [name]: _, ...rest } = filters
    onChoose(value === '' ? rest : { ...rest, [name]: value })
  }
  const submit = (event: SyntheticEvent) => {
    event.preventDefault()
    change('q', text.trim())
  }
  return (
    <form onSubmit={submit} aria-label={t('filters.title')}>
      <Group align="flex-end" gap="sm">
        <TextInput
          label={t('webhooks.url-part')}
          value={text}
          minLength={3}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
        />
        <NativeSelect
          label={t('webhooks.state')}
          value={filters.state ?? ''}
          onChange={({ currentTarget }) => change('state', currentTarget.value)}
          data={[
            { value: '', label: t('filters.all') },
            { value: 'active', label: t('status.active') },
            { value: 'inactive', label: t('status.inactive') },
            { value: 'disabled', label: t('status.disabled') },
          ]}
        />
        <NativeSelect
          label={t('webhooks.scope')}
          value={filters.scope ?? ''}
          onChange={({ currentTarget }) => change('scope', currentTarget.value)}
          data={[
            { value: '', label: t('filters.all') },
            { value: 'global', label: t('webhooks.global') },
            { value: 'account', label: t('webhooks.of-account') },
          ]}
        />
        <Button type="submit" variant="default">
          {t('filters.apply')}
        </Button>
      </Group>
    </form>
  )
}
