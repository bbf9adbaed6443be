import { Card, Group, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { AccountSelect } from '../../parts/account-select.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import type { EventType } from './filter-types.ts'

/** Says for each webhook of an account, and each global one, whether an event of this type would reach it now, and why. */
export function RoutingForecast({ type }: { type: EventType }) {
  const { t } = useTranslation()
  const { account } = useSearch({ from: '/catalogue/$id' })
  const navigate = useNavigate()
  const path = { id: type.document_id }
  const query = account ? { account } : {}
  const forecast = useQuery({
    queryKey: ['routing-forecast', path.id, query],
    queryFn: ({ signal }) => api.webhook.eventRouting({ path, query, signal }),
  })
  const found = forecast.data?.data
  const choose = (id: string) =>
    void navigate({ to: '/catalogue/$id', params: path, search: id ? { account: id } : {}, replace: true })
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={2} size="h4">
          {t('forecast.title')}
        </Title>
        <ApiCall
          operation="webhook.eventRouting"
          method="GET"
          path={`/api/v3/webhook/event/${path.id}/routing`}
          query={query}
        />
      </Group>
      <Text size="sm" c="dimmed">
        {t('forecast.lead')}
      </Text>
      {type.account_scope === 'account' && (
        <div style={{ maxWidth: 360 }}>
          <AccountSelect value={account ?? ''} onChange={choose} hint={t('forecast.account')} />
        </div>
      )}
      {forecast.isPending && <Skeleton height={80} data-pending />}
      {forecast.isError && <ProblemCard error={forecast.error} onRetry={() => void forecast.refetch()} />}
      {found?.webhooks.length === 0 && (
        <Text size="sm" c="dimmed">
          {t('event.no-webhook')}
        </Text>
      )}
      {found?.webhooks.map((webhook) => (
        <Card key={webhook.webhook} withBorder p="sm">
          <Group justify="space-between" align="flex-start" gap="xs">
            <Stack gap={2} miw={0} className="grow">
              <TextLink to="/webhooks/$id" params={{ id: webhook.webhook }} size="sm" fw={600} className="wrap">
                {webhook.name ?? webhook.webhook}
              </TextLink>
              <Text size="sm" className="wrap">
                {t(`verdict.${webhook.verdict}`, { event: type.internal })}
              </Text>
            </Stack>
            <Status name={webhook.verdict === 'deliver' ? 'delivers' : 'skips'} />
          </Group>
        </Card>
      ))}
      {found?.truncated && (
        <Text size="sm" c="dimmed">
          {t('event.truncated')}
        </Text>
      )}
    </Stack>
  )
}
