import { Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { inParts } from '../../parts/in-parts.ts'
import type { Column } from '../../parts/row-table.tsx'
import { formatUpTo } from '../../parts/up-to.ts'
import { numberFormat } from '../../parts/words/formats.ts'

type Account = Schemas['Account']
type Figures = Schemas['AccountActivity']

/** Accounts of one request (docs/contract/delivery.md#dashboard-series). */
const ACCOUNTS_AT_ONCE = 50

/** The figures of these accounts by their ids; empty while they load. */
function useFigures(ids: readonly string[]): ReadonlyMap<string, Figures> {
  const { may } = useAccess()
  const figures = useQuery({
    queryKey: ['accounts', 'figures', ids],
    queryFn: async ({ signal }) => {
      const answers = await Promise.all(
        inParts(ids, ACCOUNTS_AT_ONCE).map((account) =>
          api.webhook.webhookDashboardAccounts({ query: { account }, signal }),
        ),
      )
      return {
        byId: new Map(answers.flatMap(({ data }) => data).map((item) => [item.account, item])),
        missing_cells: answers.flatMap(({ missing_cells = [] }) => missing_cells),
      }
    },
    enabled: ids.length > 0 && may('webhook:dashboard-accounts'),
    refetchInterval: 30_000,
    placeholderData: keepPreviousData,
  })
  return figures.data?.byId ?? new Map()
}

/** Columns of what accounts hold and did; none for a user who may not see it. */
export function useFigureColumns(shown: readonly Account[]): Column<Account>[] {
  const { t, i18n } = useTranslation()
  const { may } = useAccess()
  const figures = useFigures(shown.map(({ document_id }) => document_id))
  if (!may('webhook:dashboard-accounts')) return []
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
