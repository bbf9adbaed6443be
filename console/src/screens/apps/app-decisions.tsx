import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useRows } from '../../parts/list.tsx'
import { UserLink, useUsers } from '../../parts/names.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'
import { TitledList } from '../../parts/titled-list.tsx'

type Decision = Schemas['OauthClientDecision']

/** Answers of users when this app asked, refusals included. */
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
    <TitledList
      title={t('consents.decisions')}
      lead={t('consents.decisions-of-app')}
      none={t('consents.no-decision-of-app')}
      columns={columns}
      rows={rows}
    />
  )
}
