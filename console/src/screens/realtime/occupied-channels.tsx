import { Button, Group, Paper, Skeleton, Stack, Text } from '@mantine/core'
import { isProblem, type Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { SidePanel } from '../../parts/dialog.tsx'
import { Freshness, readOf } from '../../parts/freshness.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { UserLink, useUsers } from '../../parts/names.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { type Column, RowTable } from '../../parts/row-table.tsx'
import { Time } from '../../parts/time.tsx'

/** How often channels and their members are read again, ms. */
const REFRESH_MS = 5_000

/** The private and presence channels that somebody has joined, as the provider knows them. */
export function OccupiedChannels() {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const [shown, setShown] = useState<string | undefined>()
  const channels = useQuery({
    queryKey: ['occupied-channels'],
    queryFn: ({ signal }) => api.realtime.realtimeChannelFindAll({ signal }),
    refetchInterval: REFRESH_MS,
  })
  if (channels.isPending) return <Skeleton height={160} />
  if (isProblem(channels.error, 'realtime_unavailable'))
    return (
      <Paper withBorder p="xl" ta="center">
        <Text size="sm">{t('realtime.no-client')}</Text>
      </Paper>
    )
  if (channels.isError) return <ProblemCard error={channels.error} onRetry={() => void channels.refetch()} />
  const rows = channels.data.data.map((row) => ({ ...row, document_id: row.name }))
  if (rows.length === 0)
    return (
      <Paper withBorder p="xl" ta="center">
        <Text size="sm">{t('realtime.no-channel')}</Text>
      </Paper>
    )
  const open = (channel: string) => void navigate({ to: '/realtime', search: { channel } })
  const columns: Column<(typeof rows)[number]>[] = [
    { label: t('realtime.col.channel'), cell: ({ name }) => <CopyText text={name} /> },
    {
      label: t('realtime.listeners'),
      isNumber: true,
      cell: ({ subscription_count: count }) => count ?? '–',
    },
    {
      label: t('realtime.members'),
      isNumber: true,
      cell: ({ member_count: count }) => count ?? '–',
    },
    { label: t('realtime.since'), cell: ({ occupied_since: since }) => <Time at={since} /> },
    {
      label: t('catalogue.action'),
      cell: ({ name, member_count: members }) =>
        members === null ? (
          <Button variant="default" size="compact-xs" onClick={() => open(name)}>
            {t('realtime.inspect')}
          </Button>
        ) : (
          <Button variant="default" size="compact-xs" onClick={() => setShown(name)}>
            {t('realtime.who')}
          </Button>
        ),
    },
  ]
  return (
    <Stack gap="xs">
      <Group justify="flex-end">
        <Freshness {...readOf(channels)} />
      </Group>
      <RowTable caption={t('realtime.tab.channels')} columns={columns} rows={rows} isBusy={channels.isFetching} />
      <SidePanel title={t('realtime.members')} isOpen={shown !== undefined} onClose={() => setShown(undefined)}>
        {shown !== undefined && <Members channel={shown} />}
      </SidePanel>
    </Stack>
  )
}

/** Who is in a presence channel, and since when. */
function Members({ channel }: { channel: string }) {
  const members = useQuery({
    queryKey: ['channel-members', channel],
    queryFn: ({ signal }) => api.realtime.realtimeChannelFindMembers({ path: { name: channel }, signal }),
    refetchInterval: REFRESH_MS,
  })
  return (
    <Stack gap="sm">
      <CopyText text={channel} />
      <Group justify="space-between">
        <Freshness {...readOf(members)} />
        <ApiCall
          operation="realtime.realtimeChannelFindMembers"
          method="GET"
          path={`/api/v3/realtime/channel/${channel}/member`}
        />
      </Group>
      <Loaded query={members} height={160}>
        {({ data }) => <MemberTable members={data} isBusy={members.isFetching} />}
      </Loaded>
    </Stack>
  )
}

function MemberTable({ members, isBusy }: { members: readonly Schemas['ChannelMember'][]; isBusy: boolean }) {
  const { t } = useTranslation()
  const users = useUsers(members.map(({ user_id }) => user_id).filter((id) => UUID.test(id)))
  const rows = members.map((member) => ({ ...member, document_id: member.user_id }))
  const columns: Column<(typeof rows)[number]>[] = [
    { label: t('users.user'), cell: ({ user_id }) => <UserLink id={user_id} users={users} /> },
    {
      label: t('realtime.member-since'),
      cell: ({ since }) => (since === null ? t('realtime.unreported') : <Time at={since} />),
    },
  ]
  if (rows.length === 0) return <Text size="sm">{t('realtime.no-member')}</Text>
  return <RowTable caption={t('realtime.members')} columns={columns} rows={rows} isBusy={isBusy} />
}

/** Other ids are none of a user here: a provider may have members of other systems. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
