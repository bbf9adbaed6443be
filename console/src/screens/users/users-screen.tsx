import { Avatar, Group, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { CreateButton } from '../../parts/create-button.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { useRoles } from '../../parts/names.tsx'
import { Page } from '../../parts/page.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { UserFilterBar, useUserFilterNames } from './user-filter-bar.tsx'
import { type UserFilters as Filters, toUserFilters, userState } from './user-filters.ts'
import { CreateUserForm } from './user-form.tsx'

type User = Schemas['ListedUser']

/** The users who can sign in. */
export const UsersScreen = guardScreen('user:find-all', 'users.title', Users)

function Users() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const filters: Filters = useSearch({ from: '/users' })
  const navigate = useNavigate()
  const choose = (next: Filters) => void navigate({ to: '/users', search: next, replace: true })
  // Of a range that ends now, the start stays where it was when the filter was set: the list is one list.
  const asked = JSON.stringify(filters)
  const apiFilters = useMemo(() => toUserFilters(JSON.parse(asked) as Filters, Date.now()), [asked])
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
      <UserFilterBar key={asked} filters={filters} onChoose={choose} />
      <List
        name="users"
        caption={t('users.title')}
        columns={useColumns()}
        rows={rows}
        isFiltered={apiFilters.length > 0}
        filters={useUserFilterNames(filters)}
        onClear={() => choose({})}
        empty={<Text size="sm">{t('users.empty')}</Text>}
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
      opens: true,
      cell: ({ document_id, name, email, avatar_url }) => (
        <Group gap="sm" wrap="nowrap" className="row-user">
          <Avatar
            size={32}
            radius="xl"
            name={name ?? email}
            src={avatar_url?.startsWith('data:') ? avatar_url : null}
            color="gray"
            variant="outline"
            aria-hidden
          />
          <Stack gap={0} miw={0}>
            <TextLink to="/users/$id" params={{ id: document_id }} size="sm" fw={600} truncate>
              {name ?? email}
            </TextLink>
            {name !== null && (
              <Text size="xs" c="dimmed" truncate title={email}>
                {email}
              </Text>
            )}
          </Stack>
        </Group>
      ),
    },
    { id: 'state', label: t('users.state'), cell: (user) => <Status name={userState(user)} /> },
    {
      id: 'roles',
      label: t('roles.title'),
      cell: ({ roles: own }) => (
        <Text size="sm">{own.map((id) => roles.get(id) ?? id.slice(0, 8)).join(', ') || '–'}</Text>
      ),
    },
    {
      id: 'accounts',
      label: t('accounts.title'),
      cell: (user) => <Accounts user={user} />,
    },
    {
      id: 'methods',
      label: t('users.methods'),
      cell: ({ has_password, providers }) => (
        <Text size="sm">{[...(has_password ? [t('users.password')] : []), ...providers].join(', ') || '–'}</Text>
      ),
    },
    {
      id: 'last-sign-in',
      label: t('users.last-sign-in'),
      cell: ({ last_sign_in_at }) => <Time at={last_sign_in_at} />,
    },
    { id: 'created', label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
  ]
}

/** The first accounts of a user, each a link. */
function Accounts({ user: { accounts, has_more_accounts } }: { user: User }) {
  return (
    <Text size="sm" component="div" maw={260}>
      {accounts.map(({ document_id, name }, index) => (
        <span key={document_id}>
          {index > 0 && ', '}
          <TextLink to="/accounts/$id" params={{ id: document_id }} size="sm">
            {name}
          </TextLink>
        </span>
      ))}
      {has_more_accounts && ' …'}
      {accounts.length === 0 && '–'}
    </Text>
  )
}

function CreateUser() {
  const { t } = useTranslation()
  const navigate = useNavigate()
  return (
    <CreateButton label={t('users.new')}>
      {() => <CreateUserForm onDone={(id) => void navigate({ to: '/users/$id', params: { id } })} />}
    </CreateButton>
  )
}
