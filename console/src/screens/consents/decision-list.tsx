import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { useRows } from '../../parts/list.tsx'
import { UserLink, useAppNames, useUsers } from '../../parts/names.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { TitledList } from '../../parts/titled-list.tsx'
import { readDecision } from './decision.ts'

type Entry = Schemas['AuditEntry']

/** Decisions of one user or of all about apps, also those that refused, from the audit log. */
export function DecisionList({ user }: { user?: string }) {
  const { t } = useTranslation()
  const filters = ['action|eq|oauth-decision.create', 'outcome|eq|success', ...(user ? [`user|eq|${user}`] : [])]
  const rows = useRows({
    key: ['audit', 'decisions', ...filters],
    load: (page, signal) => api.audit.auditLogFindAll({ query: { ...page, filters, sort: '-created_at' }, signal }),
  })
  const users = useUsers(user === undefined ? rows.shown.map((entry) => entry.user) : [])
  const apps = useAppNames(rows.shown.map((entry) => readDecision(entry).client))
  const columns: Column<Entry>[] = [
    ...(user === undefined
      ? [{ label: t('users.user'), cell: (entry: Entry) => <UserLink id={entry.user} users={users} /> }]
      : []),
    { label: t('audit.app'), cell: (entry) => <AppLink id={readDecision(entry).client} names={apps} /> },
    {
      label: t('consents.decision'),
      cell: (entry) => <Status name={readDecision(entry).isApproved ? 'accepted' : 'refused'} />,
    },
    { label: t('apps.scopes'), cell: (entry) => readDecision(entry).scopes.join(', ') || '–' },
    { label: t('consents.decided'), cell: ({ created_at }) => <Time at={created_at} /> },
  ]
  return (
    <TitledList
      title={t('consents.decisions')}
      lead={t('consents.decisions-lead')}
      none={t('consents.no-decision')}
      columns={columns}
      rows={rows}
    />
  )
}

function AppLink({ id, names }: { id: string | null; names: ReadonlyMap<string, string> }) {
  if (id === null) return <>–</>
  const name = names.get(id)
  if (name === undefined) return <CopyText text={id} isShort />
  return (
    <TextLink to="/apps/$id" params={{ id }} size="sm">
      {name}
    </TextLink>
  )
}
