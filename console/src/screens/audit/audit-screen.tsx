import { Button, Code, Group, NativeSelect, Text, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type SyntheticEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { type Column, List, useRows } from '../../parts/list.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission } from '../../parts/problem.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'

const NAMES = ['action', 'outcome', 'user', 'target'] as const

type Filters = Partial<Record<(typeof NAMES)[number], string>>

/** Who did what, newest first. Entries are never changed. */
export function AuditScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const filters = useSearch({ from: '/audit' })
  const navigate = useNavigate()
  const choose = (next: Filters) => void navigate({ to: '/audit', search: next, replace: true })
  const apiFilters = NAMES.flatMap((name) => (filters[name] ? [`${name}|eq|${filters[name]}`] : []))
  const query = { sort: '-created_at' as const, ...(apiFilters.length > 0 && { filters: apiFilters }) }
  const rows = useRows({
    key: ['audit', apiFilters],
    load: (page, signal) => api.audit.auditLogFindAll({ query: { ...query, ...page }, signal }),
    isNewestFirst: true,
  })
  const columns: Column<Schemas['AuditEntry']>[] = [
    { label: t('audit.time'), cell: ({ created_at }) => <Time at={created_at} /> },
    { label: t('audit.action'), cell: ({ action }) => <span className="nowrap">{action}</span> },
    { label: t('audit.outcome'), cell: ({ outcome }) => <Status name={outcome} /> },
    { label: t('audit.user'), cell: ({ user }) => (user === null ? '–' : <CopyText text={user} isShort />) },
    { label: t('audit.target'), cell: ({ target }) => (target === null ? '–' : <CopyText text={target} isShort />) },
    { label: t('audit.address'), cell: ({ address }) => address ?? '–' },
    {
      label: t('audit.detail'),
      cell: ({ detail }) =>
        Object.keys(detail).length === 0 ? (
          '–'
        ) : (
          <details>
            <summary>{t('audit.show')}</summary>
            <Code block className="wrap">
              {JSON.stringify(detail, null, 2)}
            </Code>
          </details>
        ),
    },
  ]
  if (!may('audit-log:find-all'))
    return (
      <Page title={t('audit.title')}>
        <NoPermission permission="audit-log:find-all" />
      </Page>
    )
  return (
    <Page
      title={t('audit.title')}
      lead={t('audit.lead')}
      actions={<ApiCall operation="audit.auditLogFindAll" method="GET" path="/api/v3/audit/log" query={query} />}
    >
      <FilterBar key={JSON.stringify(filters)} filters={filters} onChoose={choose} />
      <List
        caption={t('audit.title')}
        columns={columns}
        rows={rows}
        isFiltered={apiFilters.length > 0}
        onClear={() => choose({})}
        empty={<Text>{t('audit.empty')}</Text>}
      />
    </Page>
  )
}

function FilterBar({ filters, onChoose }: { filters: Filters; onChoose: (next: Filters) => void }) {
  const { t } = useTranslation()
  const [texts, setTexts] = useState(filters)
  const submit = (event: SyntheticEvent) => {
    event.preventDefault()
    const given = Object.entries(texts).flatMap(([name, text]) => (text.trim() ? [[name, text.trim()]] : []))
    onChoose(Object.fromEntries(given))
  }
  const fields = ['action', 'user', 'target'] as const
  return (
    <form onSubmit={submit} aria-label={t('filters.title')}>
      <Group align="flex-end" gap="sm">
        {fields.map((name) => (
          <TextInput
            key={name}
            label={t(`audit.${name}`)}
            placeholder={name === 'action' ? 'webhook.update' : 'id'}
            value={texts[name] ?? ''}
            onChange={({ currentTarget: { value } }) => setTexts({ ...texts, [name]: value })}
          />
        ))}
        <NativeSelect
          label={t('audit.outcome')}
          value={texts.outcome ?? ''}
          onChange={({ currentTarget: { value } }) => setTexts({ ...texts, outcome: value })}
          data={[
            { value: '', label: t('filters.all') },
            { value: 'success', label: t('status.success') },
            { value: 'failure', label: t('status.failure') },
          ]}
        />
        <Button type="submit" variant="default">
          {t('filters.apply')}
        </Button>
      </Group>
    </form>
  )
}
