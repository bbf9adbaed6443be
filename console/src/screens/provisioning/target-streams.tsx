import { Group, Stack, Text, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { FilterForm } from '../../parts/form.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { UserLink, useUsers } from '../../parts/names.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { faultName } from '../../parts/words/fault-name.ts'
import { formatSpan } from '../../parts/words/span.ts'

type Stream = Schemas['ProvisioningStream'] & { document_id: string }

/** How often the streams are read again, ms. */
const FOLLOW_MS = 5_000

/** The users whose deliveries wait at a target: how long, and what the first of them waits for. */
export function TargetStreams({ target }: { target: string }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { user } = useSearch({ from: '/provisioning/$id' })
  const filters = user ? [`user|eq|${user}`] : []
  const query = { ...(filters.length > 0 && { filters }) }
  const rows = useRows<Stream>({
    key: ['target', target, 'streams', filters],
    load: async (page, signal) => {
      const answer = await api.provisioning.provisioningTargetFindStreams({
        path: { id: target },
        query: { ...query, ...page },
        signal,
      })
      return { ...answer, data: answer.data.map((row) => ({ ...row, document_id: row.user })) }
    },
  })
  const { refetch } = rows
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && void refetch(), FOLLOW_MS)
    return () => clearInterval(timer)
  }, [refetch])
  const columns = useColumns(target, rows.shown)
  const choose = (id: string) =>
    void navigate({
      to: '/provisioning/$id',
      params: { id: target },
      search: { tab: 'streams', ...(id !== '' && { user: id }) },
      replace: true,
    })
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        {t('streams.lead')}
      </Text>
      <Group justify="space-between" align="flex-end">
        <UserFilter key={user} user={user ?? ''} onChoose={choose} />
        <ApiCall
          operation="provisioning.provisioningTargetFindStreams"
          method="GET"
          path={`/api/v3/provisioning/target/${target}/stream`}
          query={query}
        />
      </Group>
      <List
        name="streams"
        caption={t('streams.title')}
        columns={columns}
        rows={rows}
        isFiltered={filters.length > 0}
        filters={[[t('users.id'), user]]}
        onClear={() => choose('')}
        empty={<Text size="sm">{t('streams.empty')}</Text>}
      />
    </Stack>
  )
}

function UserFilter({ user, onChoose }: { user: string; onChoose: (id: string) => void }) {
  const { t } = useTranslation()
  const [text, setText] = useState(user)
  return (
    <FilterForm onApply={() => onChoose(text.trim())} onClear={user === '' ? undefined : () => onChoose('')}>
      <TextInput label={t('users.id')} value={text} onChange={({ currentTarget }) => setText(currentTarget.value)} />
    </FilterForm>
  )
}

function useColumns(target: string, shown: readonly Stream[]): Column<Stream>[] {
  const { t, i18n } = useTranslation()
  const users = useUsers(shown.map(({ user }) => user))
  return [
    { label: t('users.one'), cell: ({ user }) => <UserLink id={user} users={users} /> },
    {
      label: t('streams.lag'),
      isNumber: true,
      cell: ({ lag_seconds: lag }) =>
        lag === 0 ? '–' : <span className="nowrap">{formatSpan(lag * 1_000, i18n.language)}</span>,
    },
    { id: 'due', label: t('deliveries.next'), cell: ({ due_at }) => <Time at={due_at} /> },
    { id: 'position', label: t('streams.position'), isNumber: true, cell: ({ position }) => position },
    { id: 'waiting', label: t('streams.waiting'), isNumber: true, cell: ({ waiting }) => waiting },
    {
      id: 'first',
      label: t('streams.first'),
      cell: ({ delivery, attempts }) =>
        delivery === null ? (
          '–'
        ) : (
          <TextLink to="/provisioning/deliveries/$id" params={{ id: delivery }} size="sm" className="nowrap">
            {t('streams.attempts', { count: attempts })}
          </TextLink>
        ),
    },
    {
      id: 'answer',
      label: t('deliveries.answer'),
      cell: ({ last_status_code: code, last_error: fault }) => code ?? (fault === null ? '–' : faultName(fault, t)),
    },
    {
      id: 'dead',
      label: t('provisioning.dead'),
      isNumber: true,
      cell: ({ dead_letters: dead, user }) =>
        dead === 0 ? (
          0
        ) : (
          <TextLink to="/provisioning/deliveries" search={{ target, user, status: 'dead_letter' }} size="sm">
            {dead}
          </TextLink>
        ),
    },
  ]
}
