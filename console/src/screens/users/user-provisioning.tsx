import { Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { List, useRows } from '../../parts/list.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'

type Delivery = Schemas['ProvisioningDelivery']
type Row = Schemas['ProvisioningTarget'] & { last: Delivery | undefined }

/** Last delivery of a user to each target, with its outcome. */
export function UserProvisioning({ user }: { user: string }) {
  const { t } = useTranslation()
  const deliveries = useQuery({
    queryKey: ['provisioning', 'user', user],
    queryFn: ({ signal }) => {
      const query = { filters: [`user|eq|${user}`], sort: '-created_at' as const, page_size: 200 }
      return api.provisioning.provisioningDeliveryFindAll({ query, signal })
    },
    refetchInterval: 5_000,
  })
  const targets = useRows({
    key: ['provisioning', 'targets'],
    load: (page, signal) => api.provisioning.provisioningTargetFindAll({ query: page, signal }),
  })
  const last = (target: string) => deliveries.data?.data.find((row) => row.target === target)
  const rows = { ...targets, shown: targets.shown.map((row): Row => ({ ...row, last: last(row.document_id) })) }
  const columns: Column<Row>[] = [
    {
      label: t('provisioned.target'),
      cell: ({ name, url }) => (
        <Stack gap={0}>
          <Text size="sm" fw={600}>
            {name ?? new URL(url).host}
          </Text>
          <Text size="xs" c="dimmed" className="wrap">
            {url}
          </Text>
        </Stack>
      ),
    },
    {
      label: t('users.state'),
      cell: ({ last }) => (last ? <Status name={last.status} /> : t('provisioned.nothing')),
    },
    { label: t('provisioned.type'), cell: ({ last }) => last?.type ?? '–' },
    { label: t('deliveries.attempts'), cell: ({ last }) => last?.attempts ?? '–', isNumber: true },
    { label: t('deliveries.answer'), cell: ({ last }) => last?.last_status_code ?? last?.last_error ?? '–' },
    { label: t('provisioned.last'), cell: ({ last }) => <Time at={last?.last_attempt_at ?? null} /> },
  ]
  return (
    <List
      caption={t('users.tab.provisioning')}
      columns={columns}
      rows={rows as ReturnType<typeof useRows<Row>>}
      isFiltered={false}
      empty={<Text size="sm">{t('provisioned.empty')}</Text>}
    />
  )
}
