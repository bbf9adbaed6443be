import { Badge, Group, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { AskingButton } from '../../parts/asking-button.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { UserLink, useUsers } from '../../parts/names.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'

type Grant = Schemas['OauthGrant']

/** Grants of one user, of one app, or all; each with its revocation. */
export function ConsentList({ user, client }: { user?: string; client?: string }) {
  const { t } = useTranslation()
  const { may, mayEverywhere, session } = useAccess()
  const filters = [...(user ? [`user|eq|${user}`] : []), ...(client ? [`client|eq|${client}`] : [])]
  const rows = useRows({
    key: ['grants', ...filters],
    load: (page, signal) =>
      api.oauth.oauthGrantFindAll({ query: { ...page, ...(filters.length > 0 && { filters }) }, signal }),
  })
  const isOwn = user === undefined && client === undefined && !mayEverywhere('oauth-grant:find-all')
  const users = useUsers(user === undefined ? rows.shown.map((row) => row.user) : [])
  const columns: Column<Grant>[] = [
    ...(user === undefined && !isOwn
      ? [{ label: t('users.user'), cell: (row: Grant) => <UserLink id={row.user} users={users} /> }]
      : []),
    ...(client === undefined
      ? [
          {
            label: t('audit.app'),
            cell: (row: Grant) => (
              <TextLink to="/apps/$id" params={{ id: row.client }} size="sm">
                {row.client_name}
              </TextLink>
            ),
          },
        ]
      : []),
    { label: t('apps.scopes'), cell: ({ scopes }) => <Scopes scopes={scopes} /> },
    { label: t('consents.decided'), cell: ({ updated_at }) => <Time at={updated_at} /> },
    {
      label: t('list.actions'),
      cell: (row) =>
        (may('oauth-grant:delete') || row.user === session.user.document_id) && (
          <AskingButton
            label={t('consents.revoke')}
            title={t('consents.revoke-title', { app: row.client_name })}
            text={t('consents.revoke-text', { app: row.client_name })}
            make={() => api.oauth.oauthGrantDelete({ path: { id: row.document_id } })}
            touches={[['grants'], ['sessions']]}
            size="compact-xs"
          />
        ),
    },
  ]
  return (
    <List
      caption={t('consents.title')}
      columns={columns}
      rows={rows}
      isFiltered={false}
      empty={<Text size="sm">{t(isOwn ? 'consents.empty-own' : 'consents.empty')}</Text>}
    />
  )
}

/** Scopes, one badge each. */
function Scopes({ scopes }: { scopes: readonly string[] }) {
  return (
    <Group gap={4} wrap="nowrap">
      {scopes.map((scope) => (
        <Badge key={scope} variant="default" tt="none" fw={500}>
          {scope}
        </Badge>
      ))}
    </Group>
  )
}
