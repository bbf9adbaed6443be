import { Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { List, useRows } from '../../parts/list.tsx'
import { UserLink, useUsers } from '../../parts/names.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'

type Entry = Schemas['AuditEntry']

/** History of one row: the entries of the audit log that have it as target. */
export function TargetLog({ target }: { target: string }) {
  const { t } = useTranslation()
  const filters = [`target|eq|${target}`]
  const rows = useRows({
    key: ['audit', 'target', target],
    load: (page, signal) => api.audit.auditLogFindAll({ query: { ...page, filters, sort: '-created_at' }, signal }),
  })
  const users = useUsers(rows.shown.map(({ user }) => user))
  const columns: Column<Entry>[] = [
    { label: t('audit.time'), cell: ({ created_at }) => <Time at={created_at} /> },
    { label: t('audit.action'), cell: ({ action }) => <span className="nowrap">{action}</span> },
    { label: t('audit.outcome'), cell: ({ outcome }) => <Status name={outcome} /> },
    { label: t('audit.user'), cell: ({ user }) => <UserLink id={user} users={users} /> },
    { label: t('audit.address'), cell: ({ address }) => address ?? '–' },
  ]
  return (
    <List
      caption={t('audit.title')}
      columns={columns}
      rows={rows}
      isFiltered={false}
      empty={<Text size="sm">{t('audit.empty')}</Text>}
    />
  )
}
