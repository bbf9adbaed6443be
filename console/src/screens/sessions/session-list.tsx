import { Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import type { TFunction } from 'i18next'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { AskingButton } from '../../parts/asking-button.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { UserLink, useUsers } from '../../parts/names.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Time } from '../../parts/time.tsx'
import { valueName } from '../../parts/words/value-name.ts'

type Session = Schemas['ListedSession']

/** Sessions that are open, of one user or of all, each with what ends it. */
export function SessionList({ user, filters = [] }: { user?: string; filters?: readonly string[] }) {
  const { t } = useTranslation()
  const asked = [...(user === undefined ? [] : [`user|eq|${user}`]), ...filters]
  const key = ['sessions', ...asked]
  const rows = useRows({
    key,
    load: (page, signal) =>
      api.identity.sessionFindAll({ query: { ...page, ...(asked.length > 0 && { filters: asked }) }, signal }),
  })
  const users = useUsers(user === undefined ? rows.shown.map((row) => row.user) : [])
  const { may, session } = useAccess()
  const mayEnd = (row: Session) => !row.is_current && (may('session:delete') || row.user === session.user.document_id)
  const columns: Column<Session>[] = [
    ...(user === undefined
      ? [{ label: t('users.user'), cell: (row: Session) => <UserLink id={row.user} users={users} /> }]
      : []),
    { label: t('sessions.device'), cell: (row) => <Device session={row} /> },
    { id: 'address', label: t('audit.address'), cell: ({ address }) => address ?? '–' },
    {
      id: 'methods',
      label: t('sessions.methods'),
      cell: ({ amr }) => amr.map((way) => valueName('amr', way, t)).join(', '),
    },
    { id: 'used', label: t('sessions.used'), cell: ({ last_used_at }) => <Time at={last_used_at} /> },
    { id: 'expires', label: t('sessions.expires'), cell: ({ expires_at }) => <Time at={expires_at} /> },
    {
      label: t('list.actions'),
      cell: (row) =>
        mayEnd(row) && (
          <AskingButton
            label={t('sessions.end')}
            title={t('sessions.end-title', { device: deviceName(row, t) })}
            text={t('sessions.end-text')}
            make={() => api.identity.sessionDelete({ path: { id: row.document_id } })}
            touches={[['sessions']]}
            size="compact-xs"
          />
        ),
    },
  ]
  return (
    <List
      name="sessions"
      caption={t('sessions.title')}
      columns={columns}
      rows={rows}
      isFiltered={filters.length > 0}
      empty={<Text size="sm">{t('sessions.none')}</Text>}
    />
  )
}

/** The program and the system that opened a session: Firefox on Windows. */
function deviceName({ program, system }: Session, t: TFunction): string {
  const name = program === 'app' ? t('sessions.an-app') : program
  if (name !== null && system !== null) return t('sessions.on', { program: name, system })
  return name ?? system ?? t('sessions.unknown')
}

function Device({ session }: { session: Session }) {
  const { client_id, is_current, parent, user_agent } = session
  const { t } = useTranslation()
  const notes = [
    ...(client_id === null ? [] : [t('sessions.of-app')]),
    ...(parent === null || client_id !== null ? [] : [t('sessions.of-handshake')]),
    ...(is_current ? [t('sessions.current')] : []),
  ]
  return (
    <Stack gap={0}>
      <Text size="sm" title={user_agent ?? ''}>
        {deviceName(session, t)}
      </Text>
      {notes.length > 0 && (
        <Text size="xs" c="dimmed">
          {notes.join(' · ')}
        </Text>
      )}
    </Stack>
  )
}
