import { Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { formatUpTo } from '../../parts/up-to.ts'
import { useFigures } from '../../parts/use-figures.ts'
import { numberFormat } from '../../parts/words/formats.ts'

type Account = Schemas['Account']
type Figures = Schemas['AccountActivity']

/** Columns of what accounts hold and did; none for a user who may not see it. */
export function useFigureColumns(shown: readonly Account[]): Column<Account>[] {
  const { t, i18n } = useTranslation()
  const { may } = useAccess()
  const isAllowed = may('webhook:dashboard-accounts')
  const figures = useFigures({
    key: ['accounts', 'figures'],
    ids: shown.map(({ document_id }) => document_id),
    atOnce: 50,
    load: (account, signal) => api.webhook.webhookDashboardAccounts({ query: { account }, signal }),
    idOf: ({ account }) => account,
    isAllowed,
    everyMs: 30_000,
  })
  if (!isAllowed) return []
  const upTo = (count: number | null | undefined) => formatUpTo(count, i18n.language, t)
  return [
    {
      id: 'members',
      label: t('accounts.members'),
      isNumber: true,
      cell: ({ document_id }) => upTo(figures.get(document_id)?.members),
    },
    {
      id: 'webhooks',
      label: t('webhooks.title'),
      isNumber: true,
      cell: ({ document_id }) => upTo(figures.get(document_id)?.webhooks),
    },
    {
      id: 'deliveries',
      label: t('accounts.deliveries'),
      isNumber: true,
      cell: ({ document_id }) => <Deliveries figures={figures.get(document_id)} />,
    },
  ]
}

/** The deliveries that ended, and how many of them did not arrive. */
function Deliveries({ figures }: { figures: Figures | undefined }) {
  const { t, i18n } = useTranslation()
  const number = numberFormat(i18n.language)
  const lost = figures ? figures.exhausted + figures.failed : 0
  // A second line has its place before the figures come: the rows do not move then.
  return (
    <Stack gap={0} align="flex-end" justify="center" mih="2.6rem">
      <span>{figures ? number.format(figures.success + lost) : '–'}</span>
      {lost > 0 && (
        <Text size="xs" c="dimmed" className="nowrap">
          {t('accounts.lost', { lost: number.format(lost) })}
        </Text>
      )}
    </Stack>
  )
}
