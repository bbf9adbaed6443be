import { Alert, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { Icon } from '../../../frame/icons.tsx'
import { useAccess } from '../../../frame/session.tsx'
import { Time } from '../../../parts/time.tsx'

/** Says that deliveries wait for the limit of the webhook, and since when the longest waits. */
export function ThrottleNotice({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation('console')
  const { may } = useAccess()
  const { document_id: id, max_per_second: limit } = webhook
  const first = useQuery({
    queryKey: ['deliveries', 'throttled', id],
    queryFn: ({ signal }) => {
      const query = { filters: [`webhook|eq|${id}`, 'status|eq|pending'], sort: 'created_at' as const, page_size: 1 }
      return api.webhook.webhookDispatchFindAll({ query, signal })
    },
    refetchInterval: 5_000,
    enabled: limit !== null && may('webhook-dispatch:find-all'),
  })
  const row = limit === null ? undefined : first.data?.data[0]
  if (row?.waiting_reason !== 'throttled') return null
  return (
    <Alert color="gray" variant="outline" icon={<Icon name="warn" />} title={t('webhooks.throttled', { limit })}>
      <Text size="sm">
        {t('webhooks.throttled-since')} <Time at={row.created_at} />
      </Text>
    </Alert>
  )
}
