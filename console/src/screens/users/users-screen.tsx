import { Button, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type SyntheticEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { type Column, List, useRows } from '../../parts/list.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission } from '../../parts/problem.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'

interface Filters {
  q?: string
  state?: string
}

/** The people who can sign in. */
export function UsersScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const filters = useSearch({ from: '/users' })
  const navigate = useNavigate()
  const choose = (next: Filters) => void navigate({ to: '/users', search: next, replace: true })
  const apiFilters = [
    ...(filters.q ? [`email|like|${filters.q.replaceAll(/[\\,]/g, '\\$&')}`] : []),
    ...(filters.state ? [`is_actived|eq|${filters.state === 'active'}`] : []),
  ]
  const query = { sort: '-created_at' as const, ...(apiFilters.length > 0 && { filters: apiFilters }) }
  const rows = useRows({
    key: ['users', apiFilters],
    load: (page, signal) => api.identity.userFindAll({ query: { ...query, ...page }, signal }),
  })
  const columns: Column<Schemas['User']>[] = [
    {
      label: t('users.person'),
      cell: ({ document_id, name, email }) => (
        <Stack gap={0}>
          <TextLink to="/users/$id" params={{ id: document_id }} size="sm" fw={600}>
            {name ?? email}
          </TextLink>
          {name !== null && (
            <Text size="xs" c="dimmed">
              {email}
            </Text>
          )}
        </Stack>
      ),
    },
    { label: t('users.state'), cell: ({ is_actived }) => <Status name={is_actived ? 'active' : 'disabled'} /> },
    {
      label: t('users.verified'),
      cell: ({ email_verified_at }) =>
        email_verified_at === null ? t('users.unverified') : <Time at={email_verified_at} />,
    },
    { label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
  ]
  if (!may('user:find-all'))
    return (
      <Page title={t('users.title')}>
        <NoPermission permission="user:find-all" />
      </Page>
    )
  return (
    <Page
      title={t('users.title')}
      lead={t('users.lead')}
      actions={<ApiCall operation="identity.userFindAll" method="GET" path="/api/v3/identity/user" query={query} />}
    >
      <FilterBar key={JSON.stringify(filters)} filters={filters} onChoose={choose} />
      <List
        caption={t('users.title')}
        columns={columns}
        rows={rows}
        isFiltered={apiFilters.length > 0}
        onClear={() => choose({})}
        empty={<Text>{t('users.empty')}</Text>}
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
          label={t('users.email-part')}
          minLength={3}
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
        />
        <NativeSelect
          label={t('users.state')}
          value={filters.state ?? ''}
          onChange={({ currentTarget }) => change('state', currentTarget.value)}
          data={[
            { value: '', label: t('filters.all') },
            { value: 'active', label: t('status.active') },
            { value: 'disabled', label: t('status.disabled') },
          ]}
        />
        <Button type="submit" variant="default">
          {t('filters.apply')}
        </Button>
      </Group>
    </form>
  )
}
