import { Button, Group, Skeleton, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { Facts } from '../../parts/facts.tsx'
import { type Column, List, useRows } from '../../parts/list.tsx'
import { Page } from '../../parts/page.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Status } from '../../parts/status.tsx'
import { Instant, Time } from '../../parts/time.tsx'

type User = Schemas['User']

/** One person: who it is, its roles, its sessions, and how its access ends. */
export function UserScreen() {
  const { t } = useTranslation()
  const { id } = useParams({ from: '/users/$id' })
  const user = useQuery({
    queryKey: ['user', id],
    queryFn: ({ signal }) => api.identity.userFindOne({ path: { id }, signal }),
  })
  const row = user.data?.data
  return (
    <Page
      title={row?.name ?? row?.email ?? t('users.one')}
      parent={{ label: t('users.title'), to: '/users' }}
      lead={row && <Status name={row.is_actived ? 'active' : 'disabled'} />}
      actions={row && <Actions user={row} />}
    >
      {user.isPending && <Skeleton height={200} />}
      {user.isError && <ProblemCard error={user.error} onRetry={() => void user.refetch()} />}
      {row && (
        <>
          <Facts
            lines={[
              [t('users.id'), <CopyText key="id" text={row.document_id} />],
              [t('users.email'), <CopyText key="email" text={row.email} />],
              [t('users.verified'), <Instant key="v" at={row.email_verified_at} />],
              [t('users.password'), row.has_password ? t('users.has-password') : t('users.no-password')],
              [t('users.roles'), <Roles key="roles" ids={row.roles} />],
              [t('deliveries.created'), <Instant key="c" at={row.created_at} />],
            ]}
          />
          <Sessions user={row} />
        </>
      )}
    </Page>
  )
}

function Roles({ ids }: { ids: readonly string[] }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const roles = useQuery({
    queryKey: ['roles'],
    queryFn: ({ signal }) => api.identity.roleFindAll({ query: { page_size: 200 }, signal }),
    enabled: may('role:find-all'),
    staleTime: 60_000,
  })
  const names = new Map(roles.data?.data.map(({ document_id, name }) => [document_id, name]))
  return <Text size="sm">{ids.map((id) => names.get(id) ?? id).join(', ') || t('users.no-role')}</Text>
}

/** What ends the access of a person. */
function Actions({ user }: { user: User }) {
  const { t } = useTranslation()
  const { may, session } = useAccess()
  const [asked, setAsked] = useState<'disable' | 'sign-out' | undefined>()
  const close = () => setAsked(undefined)
  const path = { id: user.document_id }
  const touches = [['user', user.document_id], ['users'], ['sessions', user.document_id]]
  const disable = useChange({ make: () => api.identity.userDisable({ path, body: {} }), touches, onDone: close })
  const enable = useChange({ make: () => api.identity.userEnable({ path }), touches })
  const signOut = useChange({ make: () => api.identity.userRevokeSessions({ path, body: {} }), touches, onDone: close })
  const isSelf = session.user.document_id === user.document_id
  return (
    <Stack gap="xs" align="flex-end">
      <Group gap="xs">
        {may('user:revoke-sessions') && (
          <Button size="compact-md" variant="default" onClick={() => setAsked('sign-out')}>
            {t('users.sign-out')}
          </Button>
        )}
        {user.is_actived
          ? may('user:disable') && (
              <Button size="compact-md" variant="default" disabled={isSelf} onClick={() => setAsked('disable')}>
                {t('users.disable')}
              </Button>
            )
          : may('user:enable') && (
              <Button size="compact-md" loading={enable.isPending} onClick={() => enable.mutate(undefined)}>
                {t('users.enable')}
              </Button>
            )}
        <ApiCall operation="identity.userFindOne" method="GET" path={`/api/v3/identity/user/${user.document_id}`} />
      </Group>
      {enable.isError && <ProblemCard error={enable.error} />}
      <ConfirmDialog
        title={t('users.disable')}
        label={t('users.disable')}
        isOpen={asked === 'disable'}
        onClose={close}
        onConfirm={() => disable.mutate(undefined)}
        isRunning={disable.isPending}
        error={disable.error}
      >
        {t('users.disable-text')}
      </ConfirmDialog>
      <ConfirmDialog
        title={t('users.sign-out')}
        label={t('users.sign-out')}
        isOpen={asked === 'sign-out'}
        onClose={close}
        onConfirm={() => signOut.mutate(undefined)}
        isRunning={signOut.isPending}
        error={signOut.error}
      >
        {t('users.sign-out-text')}
      </ConfirmDialog>
    </Stack>
  )
}

function Sessions({ user }: { user: User }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const filters = [`user|eq|${user.document_id}`]
  const rows = useRows({
    key: ['sessions', user.document_id],
    load: (page, signal) => api.identity.sessionFindAll({ query: { ...page, filters }, signal }),
  })
  const end = useChange({
    make: (id: string) => api.identity.sessionDelete({ path: { id } }),
    touches: [['sessions', user.document_id]],
  })
  const columns: Column<Schemas['ListedSession']>[] = [
    {
      label: t('sessions.device'),
      cell: ({ device, client_id, is_current }) => (
        <Text size="sm">
          {device ?? t('sessions.unknown')}
          {client_id === null ? '' : ` · ${client_id}`}
          {is_current ? ` · ${t('sessions.current')}` : ''}
        </Text>
      ),
    },
    { label: t('audit.address'), cell: ({ address }) => address ?? '–' },
    { label: t('sessions.methods'), cell: ({ amr }) => amr.join(', ') },
    { label: t('sessions.used'), cell: ({ last_used_at }) => <Time at={last_used_at} /> },
    { label: t('sessions.expires'), cell: ({ expires_at }) => <Time at={expires_at} /> },
    {
      label: t('sessions.end'),
      cell: ({ document_id, is_current }) =>
        may('session:delete') && !is_current ? (
          <Button
            size="compact-xs"
            variant="default"
            loading={end.isPending && end.variables === document_id}
            onClick={() => end.mutate(document_id)}
          >
            {t('sessions.end')}
          </Button>
        ) : null,
    },
  ]
  if (!may('session:find-all')) return null
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('sessions.title')}
      </Title>
      {end.isError && <ProblemCard error={end.error} />}
      <List
        caption={t('sessions.title')}
        columns={columns}
        rows={rows}
        isFiltered={false}
        empty={<Text>{t('sessions.none')}</Text>}
      />
    </Stack>
  )
}
