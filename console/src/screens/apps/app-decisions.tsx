import { Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { List, useRows } from '../../parts/list.tsx'
import { UserLink, useUsers } from '../../parts/names.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'

type Decision = Schemas['OauthClientDecision']

/** What users answered when this app asked, also what they refused. */
export function AppDecisions({ client }: { client: string }) {
  const { t } = useTranslation()
  const rows = useRows({
    key: ['app', client, 'decisions'],
    load: (page, signal) =>
      api.oauth.oauthClientFindDecisions({ path: { id: client }, query: { ...page, sort: '-created_at' }, signal }),
  })
  const users = useUsers(rows.shown.map(({ user }) => user))
  const columns: Column<Decision>[] = [
    { label: t('users.user'), cell: ({ user }) => <UserLink id={user} users={users} /> },
    {
      label: t('consents.decision'),
      cell: ({ decision }) => <Status name={decision === 'approve' ? 'accepted' : 'refused'} />,
    },
    { label: t('apps.scopes'), cell: ({ scopes }) => scopes.join(', ') || '–' },
    { label: t('audit.address'), cell: ({ address }) => address ?? '–' },
    { label: t('consents.decided'), cell: ({ created_at }) => <Time at={created_at} /> },
  ]
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('consents.decisions')}
      </Title>
      <Text size="sm" c="dimmed">
        {t('consents.decisions-of-app')}
      </Text>
      <List
        caption={t('consents.decisions')}
        columns={columns}
        rows={rows}
        isFiltered={false}
        empty={<Text>{t('consents.no-decision-of-app')}</Text>}
      />
    </Stack>
  )
}
