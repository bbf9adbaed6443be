import { Button, Stack, Text, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { escapeFilter } from '../../parts/filter-text.ts'
import { FilterChoice, FilterForm } from '../../parts/form.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { Page } from '../../parts/page.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { valueName } from '../../parts/words/value-name.ts'
import { useUsageColumns } from './app-usage.tsx'

interface Filters {
  q?: string
  type?: string
}

/** The apps that users sign in to with this service. */
export const AppsScreen = guardScreen('oauth-client:find-all', 'apps.title', Apps)

function Apps() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const filters: Filters = useSearch({ from: '/apps' })
  const navigate = useNavigate()
  const choose = (search: Filters) => void navigate({ to: '/apps', search, replace: true })
  const apiFilters = [
    ...(filters.q ? [`name|like|${escapeFilter(filters.q)}`] : []),
    ...(filters.type === 'public' || filters.type === 'confidential' ? [`type|eq|${filters.type}`] : []),
  ]
  const query = { sort: '-created_at' as const, ...(apiFilters.length > 0 && { filters: apiFilters }) }
  const rows = useRows({
    key: ['apps', ...apiFilters],
    load: (page, signal) => api.oauth.oauthClientFindAll({ query: { ...query, ...page }, signal }),
  })
  const create = may('oauth-client:create') && (
    <Button component={Link} to="/apps/new" size="compact-md">
      {t('apps.new')}
    </Button>
  )
  return (
    <Page
      title={t('apps.title')}
      lead={t('apps.lead')}
      actions={
        <>
          {create}
          <ApiCall operation="oauth.oauthClientFindAll" method="GET" path="/api/v3/oauth/client" query={query} />
        </>
      }
    >
      <FilterBar key={JSON.stringify(filters)} filters={filters} onChoose={choose} />
      <List
        name="apps"
        caption={t('apps.title')}
        columns={useColumns(rows.shown)}
        rows={rows}
        isFiltered={apiFilters.length > 0}
        filters={[
          [t('keys.name-part'), filters.q],
          [t('apps.type'), filters.type && valueName('apps.type', filters.type, t)],
        ]}
        onClear={() => choose({})}
        empty={
          <Stack align="center">
            <Text size="sm">{t('apps.empty')}</Text>
            {create}
          </Stack>
        }
      />
    </Page>
  )
}

function useColumns(shown: readonly Schemas['OauthClient'][]): Column<Schemas['OauthClient']>[] {
  const { t } = useTranslation()
  const usage = useUsageColumns(shown)
  return [
    {
      label: t('apps.name'),
      opens: true,
      cell: ({ document_id, name, publisher }) => (
        <Stack gap={0}>
          <TextLink to="/apps/$id" params={{ id: document_id }} size="sm" fw={600}>
            {name}
          </TextLink>
          {publisher !== null && (
            <Text size="xs" c="dimmed">
              {publisher}
            </Text>
          )}
        </Stack>
      ),
    },
    { id: 'client-id', label: 'client_id', cell: ({ client_id }) => <CopyText text={client_id} isShort /> },
    { id: 'type', label: t('apps.type'), cell: ({ type }) => t(`apps.type.${type}`) },
    {
      id: 'redirects',
      label: t('apps.redirects'),
      cell: ({ redirect_uris }) => (
        <Text size="sm" className="wrap">
          {redirect_uris.join(', ') || '–'}
        </Text>
      ),
    },
    ...usage,
    { id: 'created', label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
  ]
}

function FilterBar({ filters, onChoose }: { filters: Filters; onChoose: (next: Filters) => void }) {
  const { t } = useTranslation()
  const [text, setText] = useState(filters.q ?? '')
  const choose = (type: string) => onChoose({ ...(text.trim() && { q: text.trim() }), ...(type && { type }) })
  return (
    <FilterForm onApply={() => choose(filters.type ?? '')}>
      <TextInput
        label={t('keys.name-part')}
        minLength={3}
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
      <FilterChoice
        label={t('apps.type')}
        value={filters.type}
        onChange={choose}
        options={[
          { value: 'confidential', label: t('apps.type.confidential') },
          { value: 'public', label: t('apps.type.public') },
        ]}
      />
    </FilterForm>
  )
}
