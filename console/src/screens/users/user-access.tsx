import { Badge, Group, Skeleton, Stack, Text, TextInput, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Scroll } from '../../parts/scroll/scroll.tsx'
import { TextLink } from '../../parts/text-link.tsx'

type EffectiveAccess = Schemas['EffectiveAccess']
type Reason = Schemas['PermissionReason']

/** Effective permissions of a user: each permission with the roles that hold it. */
export function UserAccess({ user }: { user: string }) {
  const { t } = useTranslation()
  const access = useQuery({
    queryKey: ['user', user, 'access'],
    queryFn: ({ signal }) => api.identity.userFindAccess({ path: { id: user }, signal }),
  })
  if (access.isError) return <ProblemCard error={access.error} onRetry={() => void access.refetch()} />
  if (!access.data) return <Skeleton height={240} aria-busy />
  const { data } = access.data
  return (
    <Stack gap="lg">
      <Memberships access={data} />
      <Stack gap="xs">
        <Title order={2} size="h4">
          {t('access.permissions', { count: data.permissions.length })}
        </Title>
        <Permissions access={data} />
      </Stack>
    </Stack>
  )
}

function Memberships({ access: { roles, memberships, is_complete } }: { access: EffectiveAccess }) {
  const { t } = useTranslation()
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('roles.title')}
      </Title>
      <Group gap="xs">
        {roles.map((role) => (
          <RoleBadge key={role.document_id} role={role} />
        ))}
        {roles.length === 0 && <Text size="sm">{t('users.no-role')}</Text>}
      </Group>
      {memberships.length > 0 && (
        <>
          <Title order={2} size="h4" mt="sm">
            {t('accounts.title')}
          </Title>
          {memberships.map(({ account, name, roles: own, connection }) => (
            <Group key={account} gap="xs">
              <TextLink to="/accounts/$id" params={{ id: account }} size="sm" fw={600}>
                {name}
              </TextLink>
              {own.map((role) => (
                <RoleBadge key={role.document_id} role={role} />
              ))}
              {connection !== null && (
                <>
                  <Text size="sm" c="dimmed">
                    {t('access.by-connection')}
                  </Text>
                  <CopyText text={connection} />
                </>
              )}
            </Group>
          ))}
          {!is_complete && (
            <Text size="sm" c="dimmed">
              {t('access.more-accounts')}
            </Text>
          )}
        </>
      )}
    </Stack>
  )
}

function RoleBadge({ role }: { role: Schemas['HeldRole'] }) {
  const { t } = useTranslation()
  const notes = [
    ...(role.is_account_scoped ? [t('access.in-accounts')] : []),
    ...(role.requires_second_factor ? [t('access.second-factor')] : []),
  ]
  return (
    <Badge variant="default" tt="none" fw={600} title={role.permissions.join(', ')}>
      {[role.name, ...notes].join(' · ')}
    </Badge>
  )
}

function Permissions({ access: { permissions, memberships } }: { access: EffectiveAccess }) {
  const { t } = useTranslation()
  const [text, setText] = useState('')
  const names = new Map(memberships.map(({ account, name }) => [account, name]))
  const shown = permissions.filter(({ permission }) => permission.includes(text.trim()))
  if (permissions.length === 0) return <Text size="sm">{t('access.none')}</Text>
  return (
    <>
      <TextInput
        label={t('access.search')}
        placeholder="webhook:create"
        maw={320}
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
      <Scroll className="tall" label={t('access.permissions', { count: permissions.length })}>
        <table className="table sticky">
          <thead>
            <tr>
              <th scope="col">{t('access.permission')}</th>
              <th scope="col">{t('access.why')}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ permission, reasons }) => (
              <tr key={permission}>
                <td className="mono nowrap">{permission}</td>
                <td style={{ minWidth: 220 }}>
                  {reasons.map((reason) => (
                    <Text size="sm" key={`${reason.role} ${reason.place}`}>
                      <Why reason={reason} names={names} />
                    </Text>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {shown.length === 0 && <Text size="sm">{t('list.no-match')}</Text>}
    </>
  )
}

function Why({ reason, names }: { reason: Reason; names: ReadonlyMap<string, string> }) {
  const { t, i18n } = useTranslation()
  const { role_name: role, pattern, place } = reason
  const list = new Intl.ListFormat(i18n.language, { type: 'conjunction' })
  const accounts = list.format(reason.accounts.map((id) => names.get(id) ?? id))
  const note = reason.requires_second_factor ? ` (${t('access.second-factor')})` : ''
  if (place === 'everywhere') return `${t('access.everywhere', { role, pattern })}${note}`
  if (place === 'accounts') return `${t('access.own-accounts', { role, pattern, accounts })}${note}`
  return `${t('access.memberships', { role, pattern, accounts })}${note}`
}
