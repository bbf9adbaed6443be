import { Badge, Button, Group, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { UserLink, useUsers } from '../../parts/names.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'

type Grant = Schemas['OauthGrant']

/** Grants of one user, of one app, or all; each with its revocation. */
export function ConsentList({ user, client }: { user?: string; client?: string }) {
  const { t } = useTranslation()
  const { may, session } = useAccess()
  const [asked, setAsked] = useState<Grant | undefined>()
  const filters = [...(user ? [`user|eq|${user}`] : []), ...(client ? [`client|eq|${client}`] : [])]
  const rows = useRows({
    key: ['grants', ...filters],
    load: (page, signal) =>
      api.oauth.oauthGrantFindAll({ query: { ...page, ...(filters.length > 0 && { filters }) }, signal }),
  })
  const users = useUsers(user === undefined ? rows.shown.map((row) => row.user) : [])
  const revoke = useChange({
    make: (id: string) => api.oauth.oauthGrantDelete({ path: { id } }),
    touches: [['grants'], ['sessions']],
    onDone: () => setAsked(undefined),
  })
  const columns: Column<Grant>[] = [
    ...(user === undefined
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
          <Button size="compact-xs" variant="default" onClick={() => setAsked(row)}>
            {t('consents.revoke')}
          </Button>
        ),
    },
  ]
  return (
    <>
      <List
        caption={t('consents.title')}
        columns={columns}
        rows={rows}
        isFiltered={false}
        empty={<Text size="sm">{t('consents.empty')}</Text>}
      />
      <ConfirmDialog
        title={t('consents.revoke')}
        isOpen={asked !== undefined}
        onClose={() => setAsked(undefined)}
        onConfirm={() => asked && revoke.mutate(asked.document_id)}
        change={revoke}
      >
        <Text size="sm">{t('consents.revoke-text', { app: asked?.client_name ?? '' })}</Text>
      </ConfirmDialog>
    </>
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
