import { Button, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { UserLink, useUsers } from '../../parts/names.tsx'
import { Page } from '../../parts/page.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'
import { AuditEntryPanel } from './audit-entry.tsx'
import { AuditExport } from './audit-export.tsx'
import { AuditFilterBar, nameAuditFilters } from './audit-filter-bar.tsx'
import { type AuditFilters, toAuditFilters } from './audit-filters.ts'

type Entry = Schemas['AuditEntry']

/** Who did what, newest first. Entries are never changed. */
export const AuditScreen = guardScreen('audit-log:find-all', 'audit.title', Log)

function Log() {
  const { t } = useTranslation()
  const filters: AuditFilters = useSearch({ from: '/audit' })
  const navigate = useNavigate()
  const [opened, setOpened] = useState<Entry | undefined>()
  const choose = (search: AuditFilters) => void navigate({ to: '/audit', search, replace: true })
  // Of a range that ends now, the start stays where it was when the filter was set: the list is one list.
  const asked = JSON.stringify(filters)
  const apiFilters = useMemo(() => toAuditFilters(JSON.parse(asked) as AuditFilters, Date.now()), [asked])
  const query = { sort: '-created_at' as const, ...(apiFilters.length > 0 && { filters: apiFilters }) }
  const rows = useRows({
    key: ['audit', ...apiFilters],
    load: (page, signal) => api.audit.auditLogFindAll({ query: { ...query, ...page }, signal }),
    isNewestFirst: true,
  })
  const users = useUsers(rows.shown.map(({ user }) => user))
  const columns: Column<Entry>[] = [
    { label: t('audit.time'), cell: ({ created_at }) => <Time at={created_at} /> },
    {
      label: t('audit.action'),
      opens: true,
      cell: (entry) => (
        <Button variant="transparent" size="compact-sm" px={0} onClick={() => setOpened(entry)}>
          {entry.action}
        </Button>
      ),
    },
    { id: 'outcome', label: t('audit.outcome'), cell: ({ outcome }) => <Status name={outcome} /> },
    { id: 'user', label: t('audit.user'), cell: ({ user }) => <UserLink id={user} users={users} /> },
    {
      id: 'by',
      label: t('audit.by'),
      cell: (entry) => <span className="nowrap">{t(`audit.by-${actorOf(entry)}`)}</span>,
    },
    {
      id: 'target',
      label: t('audit.target'),
      cell: ({ target }) => (target === null ? '–' : <CopyText text={target} isShort />),
    },
    { id: 'address', label: t('audit.address'), cell: ({ address }) => address ?? '–' },
  ]
  return (
    <Page
      title={t('audit.title')}
      lead={t('audit.lead')}
      actions={
        <>
          <AuditExport filters={apiFilters} />
          <ApiCall operation="audit.auditLogFindAll" method="GET" path="/api/v3/audit/log" query={query} />
        </>
      }
    >
      <AuditFilterBar key={asked} filters={filters} onChoose={choose} />
      <List
        name="audit"
        caption={t('audit.title')}
        columns={columns}
        rows={rows}
        isFiltered={apiFilters.length > 0}
        filters={nameAuditFilters(filters, t)}
        onClear={() => choose({})}
        empty={<Text size="sm">{t('audit.empty')}</Text>}
      />
      <AuditEntryPanel entry={opened} onClose={() => setOpened(undefined)} />
    </Page>
  )
}

/** By what a user acted. Pure. */
function actorOf({ user, client_id, api_key }: Entry): 'app' | 'key' | 'user' | 'nobody' {
  if (client_id !== null) return 'app'
  if (api_key !== null) return 'key'
  return user === null ? 'nobody' : 'user'
}
