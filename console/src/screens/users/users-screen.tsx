import { Avatar, Button, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type SyntheticEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Guarded } from '../../parts/guarded.tsx'
import { type Column, List, useRows } from '../../parts/list.tsx'
import { useRoles } from '../../parts/names.tsx'
import { Page } from '../../parts/page.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { CreateUserForm } from './user-form.tsx'

interface Filters {
  q?: string
  /** `name`: the text is looked for in names. Default: in addresses. */
  in?: string
  state?: string
}

type User = Schemas['User']

/** The filters of the API for what the URL says. Pure. */
function toApiFilters({ q, in: field, state }: Filters): string[] {
  return [
    ...(q ? [`${field === 'name' ? 'name' : 'email'}|like|${q.replaceAll(/[\\,]/g, '\\$&')}`] : []),
    ...(state ? [`is_actived|eq|${state === 'active'}`] : []),
  ]
}

/** The people who can sign in. */
export function UsersScreen() {
  const { t } = useTranslation()
  return (
    <Guarded permission="user:find-all" title={t('users.title')}>
      <Users />
    </Guarded>
  )
}

function Users() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const filters: Filters = useSearch({ from: '/users' })
  const navigate = useNavigate()
  const choose = (next: Filters) => void navigate({ to: '/users', search: next, replace: true })
  const apiFilters = toApiFilters(filters)
  const query = { sort: '-created_at' as const, ...(apiFilters.length > 0 && { filters: apiFilters }) }
  const rows = useRows({
    key: ['users', ...apiFilters],
    load: (page, signal) => api.identity.userFindAll({ query: { ...query, ...page }, signal }),
  })
  return (
    <Page
      title={t('users.title')}
      lead={t('users.lead')}
      actions={
        <>
          {may('user:create') && <CreateUser />}
          <ApiCall operation="identity.userFindAll" method="GET" path="/api/v3/identity/user" query={query} />
        </>
      }
    >
      <FilterBar key={JSON.stringify(filters)} filters={filters} onChoose={choose} />
      <List
        caption={t('users.title')}
        columns={useColumns()}
        rows={rows}
        isFiltered={apiFilters.length > 0}
        onClear={() => choose({})}
        empty={<Text>{t('users.empty')}</Text>}
      />
    </Page>
  )
}

function useColumns(): Column<User>[] {
  const { t } = useTranslation()
  const roles = new Map(useRoles().map(({ document_id, name }) => [document_id, name]))
  return [
    {
      label: t('users.user'),
      cell: ({ document_id, name, email, avatar_url }) => (
        <Group gap="sm" wrap="nowrap">
          <Avatar
            size={32}
            radius="xl"
            name={name ?? email}
            src={avatar_url?.startsWith('data:') ? avatar_url : null}
            color="gray"
            variant="outline"
            aria-hidden
          />
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
        </Group>
      ),
    },
    { label: t('users.state'), cell: ({ is_actived }) => <Status name={is_actived ? 'active' : 'disabled'} /> },
    {
      label: t('roles.title'),
      cell: ({ roles: own }) => (
        <Text size="sm">{own.map((id) => roles.get(id) ?? id.slice(0, 8)).join(', ') || '–'}</Text>
      ),
    },
    {
      label: t('users.verified'),
      cell: ({ email_verified_at }) =>
        email_verified_at === null ? t('users.unverified') : <Time at={email_verified_at} />,
    },
    {
      label: t('users.password'),
      cell: ({ has_password }) => (has_password ? t('users.has-password') : t('users.no-password')),
    },
    { label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
  ]
}

function CreateUser() {
  const { t } = useTranslation()
  const [isOpen, setIsOpen] = useState(false)
  const navigate = useNavigate()
  return (
    <>
      <Button size="compact-md" onClick={() => setIsOpen(true)}>
        {t('users.new')}
      </Button>
      <Dialog title={t('users.new')} isOpen={isOpen} onClose={() => setIsOpen(false)}>
        <CreateUserForm onDone={(id) => void navigate({ to: '/users/$id', params: { id } })} />
      </Dialog>
    </>
  )
}

function FilterBar({ filters, onChoose }: { filters: Filters; onChoose: (next: Filters) => void }) {
  const { t } = useTranslation()
  const [text, setText] = useState(filters.q ?? '')
  const change = (next: Filters) =>
    onChoose(Object.fromEntries(Object.entries({ ...filters, ...next }).filter(([, value]) => value !== '')))
  const submit = (event: SyntheticEvent) => {
    event.preventDefault()
    change({ q: text.trim() })
  }
  return (
    <form onSubmit={submit} aria-label={t('filters.title')}>
      <Group align="flex-end" gap="sm">
        <NativeSelect
          label={t('users.search-in')}
          value={filters.in ?? ''}
          onChange={({ currentTarget: { value } }) => change({ in: value, q: text.trim() })}
          data={[
            { value: '', label: t('users.email') },
            { value: 'name', label: t('users.name') },
          ]}
        />
        <TextInput
          label={t('users.part')}
          minLength={3}
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
        />
        <NativeSelect
          label={t('users.state')}
          value={filters.state ?? ''}
          onChange={({ currentTarget: { value } }) => change({ state: value })}
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
