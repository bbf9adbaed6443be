import { Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { List, useRows } from '../../parts/list.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'
import { valueName } from '../../parts/words/value-name.ts'

type SignIn = Schemas['SignIn']

/** When and from where a user signed in, and what was refused. */
export function UserSignIns({ user }: { user: string }) {
  const { t } = useTranslation()
  const rows = useRows({
    key: ['sign-ins', user],
    load: (page, signal) => api.identity.userFindSignIns({ path: { id: user }, query: page, signal }),
    isNewestFirst: true,
  })
  const columns: Column<SignIn>[] = [
    { label: t('audit.time'), cell: ({ created_at }) => <Time at={created_at} /> },
    {
      label: t('audit.outcome'),
      cell: ({ outcome, reason, count }) => (
        <Stack gap={2} align="flex-start">
          <Status name={outcome} />
          {reason !== null && (
            <Text size="xs" c="dimmed">
              {reason}
              {count > 1 && ` × ${count}`}
            </Text>
          )}
        </Stack>
      ),
    },
    {
      label: t('sessions.methods'),
      cell: ({ method, provider }) =>
        [valueName('sign-in.method', method, t), provider].filter((part) => part !== null).join(' · '),
    },
    { label: t('audit.address'), cell: ({ address }) => address ?? '–' },
    {
      label: t('sign-ins.session'),
      cell: ({ session }) => (session === null ? '–' : <CopyText text={session} isShort />),
    },
    {
      label: t('problem.request'),
      cell: ({ request_id }) => (request_id === null ? '–' : <CopyText text={request_id} isShort />),
    },
  ]
  return (
    <List
      caption={t('users.tab.sign-ins')}
      columns={columns}
      rows={rows}
      isFiltered={false}
      empty={<Text size="sm">{t('sign-ins.empty')}</Text>}
    />
  )
}
