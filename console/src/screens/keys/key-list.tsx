import { Button, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { AccountLink, UserLink, useAccountNames, useUsers } from '../../parts/names.tsx'
import type { NamedFilter } from '../../parts/no-match.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'

type Key = Schemas['ApiKey']

/** How many patterns a row shows. */
const PATTERNS_SHOWN = 3

/** API keys, of one user or of all, each with what revokes it. */
export function KeyList({
  user,
  filters = [],
  named = [],
  onClear,
}: {
  user?: string
  filters?: readonly string[]
  /** The filters by name. */
  named?: readonly NamedFilter[]
  onClear?: () => void
}) {
  const { t } = useTranslation()
  const [asked, setAsked] = useState<Key | undefined>()
  const apiFilters = [...(user === undefined ? [] : [`user|eq|${user}`]), ...filters]
  const rows = useRows({
    key: ['keys', ...apiFilters],
    load: (page, signal) =>
      api.identity.apiKeyFindAll({ query: { ...page, ...(apiFilters.length > 0 && { filters: apiFilters }) }, signal }),
  })
  const revoke = useChange({
    make: (id: string) => api.identity.apiKeyDelete({ path: { id } }),
    touches: [['keys']],
    onDone: () => setAsked(undefined),
  })
  return (
    <>
      <List
        caption={t('keys.title')}
        columns={useColumns(rows.shown, { hasOwner: user === undefined, onRevoke: setAsked })}
        rows={rows}
        isFiltered={filters.length > 0}
        filters={named}
        {...(onClear && { onClear })}
        empty={<Text size="sm">{t('keys.empty')}</Text>}
      />
      <ConfirmDialog
        title={t('keys.revoke-title', { name: asked?.name ?? '' })}
        label={t('keys.revoke')}
        isOpen={asked !== undefined}
        onClose={() => setAsked(undefined)}
        onConfirm={() => asked && revoke.mutate(asked.document_id)}
        change={revoke}
      >
        <Text size="sm">{t('keys.revoke-text')}</Text>
        {asked !== undefined && <KeysMadeWith id={asked.document_id} />}
      </ConfirmDialog>
    </>
  )
}

function useColumns(
  keys: readonly Key[],
  { hasOwner, onRevoke }: { hasOwner: boolean; onRevoke: (key: Key) => void },
): Column<Key>[] {
  const { t } = useTranslation()
  const { may, session } = useAccess()
  const users = useUsers(hasOwner ? keys.map((row) => row.user) : [])
  const accounts = useAccountNames(keys.map((row) => row.account))
  return [
    {
      label: t('keys.name'),
      cell: ({ name, hint }) => (
        <Stack gap={0}>
          <Text size="sm" fw={600}>
            {name}
          </Text>
          <Text size="xs" c="dimmed" className="mono">
            {hint}
          </Text>
        </Stack>
      ),
    },
    ...(hasOwner ? [{ label: t('keys.owner'), cell: (row: Key) => <UserLink id={row.user} users={users} /> }] : []),
    { label: t('keys.permissions'), cell: ({ permissions }) => <Patterns patterns={permissions} /> },
    {
      label: t('account.label'),
      cell: ({ account }) => (account === null ? t('keys.everywhere') : <AccountLink id={account} names={accounts} />),
    },
    { label: t('users.state'), cell: (row) => <Status name={stateOf(row, Date.now())} /> },
    { label: t('sessions.used'), cell: ({ last_used_at }) => <Time at={last_used_at} /> },
    {
      label: t('sessions.expires'),
      cell: ({ expires_at }) => (expires_at === null ? t('keys.never') : <Time at={expires_at} />),
    },
    {
      label: t('list.actions'),
      cell: (row) =>
        row.revoked_at === null &&
        (may('api-key:delete') || row.user === session.user.document_id) && (
          <Button size="compact-xs" variant="default" onClick={() => onRevoke(row)}>
            {t('keys.revoke')}
          </Button>
        ),
    },
  ]
}

/** The valid keys that were created with a key: its revocation does not end them. */
function KeysMadeWith({ id }: { id: string }) {
  const { t } = useTranslation()
  const made = useQuery({
    queryKey: ['keys', 'created-with', id],
    queryFn: ({ signal }) =>
      api.identity.apiKeyFindAll({ query: { filters: [`created_with|eq|${id}`], page_size: 100 }, signal }),
  })
  const names = (made.data?.data ?? []).filter((row) => stateOf(row, Date.now()) === 'active').map(({ name }) => name)
  if (names.length === 0) return null
  return (
    <Text size="sm" fw={600}>
      {t('keys.made-with', { count: names.length, names: names.join(', ') })}
    </Text>
  )
}

/** Whether a key is taken. Pure. */
function stateOf({ revoked_at, expires_at }: Key, nowMs: number) {
  if (revoked_at !== null) return 'revoked'
  return expires_at !== null && Date.parse(expires_at) <= nowMs ? 'expired' : 'active'
}

function Patterns({ patterns }: { patterns: readonly string[] }) {
  const { t } = useTranslation()
  const more = patterns.length - PATTERNS_SHOWN
  return (
    <Text size="sm" className="wrap" title={patterns.join(', ')}>
      {patterns.slice(0, PATTERNS_SHOWN).join(', ')}
      {more > 0 && ` ${t('keys.more', { count: more })}`}
    </Text>
  )
}
