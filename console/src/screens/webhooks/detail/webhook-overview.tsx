import { Card, Group, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useTimeZone } from '../../../frame/preferences.ts'
import { useAccess } from '../../../frame/session.tsx'
import { CHART_CARD_HEIGHT, ChartCard } from '../../../parts/chart/chart-card.tsx'
import { formatBucket } from '../../../parts/chart/format.ts'
import { ProblemCard } from '../../../parts/problem.tsx'
import { TextLink } from '../../../parts/text-link.tsx'
import { Time } from '../../../parts/time.tsx'
import { numberFormat } from '../../../parts/words/formats.ts'
import { DISABLE_AFTER } from '../../../parts/words/webhook-name.ts'
import { DeliveryTable } from '../../deliveries/delivery-table.tsx'
import { useActivity } from '../use-activity.ts'
import { WebhookBreakdown } from './webhook-breakdown.tsx'

const StackedBars = lazy(() =>
  import('../../../parts/chart/charts.tsx').then((charts) => ({ default: charts.StackedBars })),
)

const HOUR_MS = 3_600_000
const HOURS = 24

/** Deliveries that are shown. */
const SHOWN = 10

/** The last 24 hours of a webhook: its figures, its attempts by the hour, its latest deliveries. */
export function WebhookOverview({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t, i18n } = useTranslation()
  const { may } = useAccess()
  const activity = useActivity([webhook.document_id]).get(webhook.document_id)
  const number = numberFormat(i18n.language)
  const { success = 0, retrying = 0, failed = 0 } = activity ?? {}
  return (
    <Stack>
      <SimpleGrid cols={{ base: 2, md: 4 }}>
        <Figure label={t('webhook.delivered')} value={number.format(success)} />
        <Figure label={t('webhook.failed')} value={number.format(retrying + failed)} />
        <Figure
          label={t('webhooks.failures')}
          value={t('webhooks.of', { failures: webhook.consecutive_failures, limit: DISABLE_AFTER })}
        />
        <Figure label={t('webhooks.last')} value={<Time at={activity?.last_attempt_at ?? null} />} />
      </SimpleGrid>
      {activity === undefined && may('webhook:dashboard-webhooks') ? (
        <Skeleton height={CHART_CARD_HEIGHT} />
      ) : (
        <Hours activity={activity} />
      )}
      <WebhookBreakdown webhook={webhook.document_id} />
      <RetryPolicy />
      <Latest webhook={webhook.document_id} />
    </Stack>
  )
}

function Figure({ label, value }: { label: string; value: ReactNode }) {
  return (
    <Card withBorder p="sm">
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      <Text fz={20} fw={650} lh={1.4} component="div">
        {value}
      </Text>
    </Card>
  )
}

function Hours({ activity }: { activity: Schemas['WebhookActivity'] | undefined }) {
  const { t, i18n } = useTranslation()
  const timeZone = useTimeZone()
  const first = (Math.floor(Date.now() / HOUR_MS) - HOURS + 1) * HOUR_MS
  const byHour = new Map(activity?.hours.map((hour) => [Date.parse(hour.hour), hour]))
  const points = Array.from({ length: HOURS }, (_, index) => {
    const at = first + index * HOUR_MS
    const { success = 0, retrying = 0, failed = 0 } = byHour.get(at) ?? {}
    return {
      label: formatBucket(new Date(at).toISOString(), '24h', { language: i18n.language, timeZone }),
      success,
      retrying,
      failed,
    }
  })
  const { success = 0, retrying = 0, failed = 0 } = activity ?? {}
  const names = [
    { key: 'success', name: t('status.success'), color: 'var(--chart-good)' },
    { key: 'retrying', name: t('status.retrying'), color: 'var(--chart-wait)' },
    { key: 'failed', name: t('overview.lost'), color: 'var(--chart-bad)' },
  ]
  const summary = t('chart.attempts-summary', { success, retrying, lost: failed })
  return (
    <ChartCard
      title={t('chart.attempts')}
      summary={summary}
      columns={[t('chart.time'), ...names.map(({ name }) => name)]}
      rows={points.map((point) => [point.label, String(point.success), String(point.retrying), String(point.failed)])}
      isEmpty={success + retrying + failed === 0}
    >
      <StackedBars summary={summary} points={points} series={names} format={(value) => String(value)} />
    </ChartCard>
  )
}

function RetryPolicy() {
  const { t } = useTranslation()
  return (
    <Text size="sm" c="dimmed">
      {t('webhook.policy')}
    </Text>
  )
}

function Latest({ webhook }: { webhook: string }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const rows = useQuery({
    queryKey: ['deliveries', 'latest', webhook],
    queryFn: ({ signal }) => {
      const query = { filters: [`webhook|eq|${webhook}`], sort: '-created_at' as const, page_size: SHOWN }
      return api.webhook.webhookDispatchFindAll({ query, signal })
    },
    refetchInterval: 5_000,
    enabled: may('webhook-dispatch:find-all'),
  })
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={2} size="h5">
          {t('webhook.latest')}
        </Title>
        <TextLink to="/deliveries" search={{ webhook }} size="sm">
          {t('webhook.all')}
        </TextLink>
      </Group>
      {rows.isError && <ProblemCard error={rows.error} onRetry={() => void rows.refetch()} />}
      {rows.isLoading && <Skeleton height={160} />}
      {rows.data?.data.length === 0 && (
        <Text size="sm" c="dimmed">
          {t('webhooks.no-delivery')}
        </Text>
      )}
      {rows.data && rows.data.data.length > 0 && <DeliveryTable rows={rows.data.data} />}
    </Stack>
  )
}
