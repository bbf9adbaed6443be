import { Alert, Button, Card, Group, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { type ReactNode, useDeferredValue } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { summaryQuery } from '../../frame/first-reads.ts'
import { useAccess } from '../../frame/session.tsx'
import { describeAge } from '../../parts/age.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CHART_CARD_HEIGHT } from '../../parts/chart/chart-card.tsx'
import { RANGES, type Range } from '../../parts/chart/format.ts'
import { RangeControl } from '../../parts/chart/range-control.tsx'
import { Freshness, readOf } from '../../parts/freshness.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission } from '../../parts/problem.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { useNow } from '../../parts/time.tsx'
import { numberFormat } from '../../parts/words/formats.ts'
import { DeliveryTable } from '../deliveries/delivery-table.tsx'
import { queueQuery } from '../health/queue-query.ts'
import { ActivityCharts } from './activity-charts.tsx'
import { Attention } from './attention.tsx'
import { Causes, SeriesCharts } from './series-charts.tsx'

/** How often the figures are read again, ms. */
const REFRESH_MS = 5_000

/** Recent activity, and what needs attention. */
export function OverviewScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const summary = useQuery({
    ...summaryQuery,
    refetchInterval: REFRESH_MS,
    enabled: may('webhook:dashboard'),
  })
  if (!may('webhook:dashboard'))
    return (
      <Page title={t('overview.title')}>
        <NoPermission permission="webhook:dashboard" />
      </Page>
    )
  return (
    <Page
      title={t('overview.title')}
      lead={t('overview.lead')}
      actions={
        <>
          <Freshness {...readOf(summary)} />
          <ApiCall operation="webhook.webhookDashboard" method="GET" path="/api/v3/webhook/dashboard/summary" />
        </>
      }
    >
      <Loaded query={summary} height={320}>
        {({ data }) => <Figures summary={data} />}
      </Loaded>
    </Page>
  )
}

/** The charts of the range that the URL names. */
function Charts() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const search = useSearch({ from: '/overview' })
  const navigate = useNavigate()
  const range = RANGES.find((range) => range === search.range) ?? '24h'
  const series = useQuery({
    queryKey: ['dashboard', 'series', range],
    queryFn: ({ signal }) => api.webhook.webhookDashboardSeries({ query: { range }, signal }),
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
    enabled: may('webhook:dashboard-series'),
  })
  const choose = (next: Range) => void navigate({ to: '/overview', search: { range: next }, replace: true })
  if (!may('webhook:dashboard-series')) return <NoPermission permission="webhook:dashboard-series" />
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={2} size="h4">
          {t('chart.title')}
        </Title>
        <RangeControl label={t('chart.range')} range={range} onChoose={choose} />
      </Group>
      <Loaded query={series} height={CHART_CARD_HEIGHT}>
        {({ data }) => <SeriesCharts series={data} />}
      </Loaded>
      <SimpleGrid cols={{ base: 1, md: 3 }}>
        {series.data ? <Causes series={series.data.data} /> : <Skeleton height="100%" mih={180} />}
        <Attention />
      </SimpleGrid>
      <ActivityCharts range={range} />
    </Stack>
  )
}

function Figures({ summary }: { summary: Schemas['DashboardSummary'] }) {
  const { t, i18n } = useTranslation()
  const { may } = useAccess()
  const { deliveries_24h: counts, webhooks, catalogue, recent_failures: failures } = summary
  const number = numberFormat(i18n.language)
  // The figures are on the screen, and take input, before the rest is drawn.
  const isFurther = useDeferredValue(true, false)
  const ended = counts.success + counts.exhausted + counts.failed
  const rate =
    ended === 0
      ? '–'
      : numberFormat(i18n.language, { style: 'percent', maximumFractionDigits: 1 }).format(counts.success / ended)
  if (webhooks.active + webhooks.inactive + webhooks.auto_disabled === 0)
    return (
      <Card withBorder p="xl">
        <Stack align="flex-start">
          <Title order={2} size="h3">
            {t('overview.first')}
          </Title>
          <Text size="sm">{t('overview.first-text')}</Text>
          {may('webhook:create') && (
            <Button component={Link} to="/webhooks/new">
              {t('webhooks.new')}
            </Button>
          )}
        </Stack>
      </Card>
    )
  return (
    <>
      <Warnings webhooks={webhooks} catalogue={catalogue} />
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
        <Figure
          label={t('overview.delivered')}
          value={number.format(counts.success)}
          note={t('overview.of-ended', { ended: number.format(ended) })}
          to="/deliveries?status=success"
        />
        <Figure
          label={t('overview.waiting')}
          value={number.format(counts.pending + counts.retrying)}
          note={<Retrying count={counts.retrying} />}
          to="/deliveries?status=retrying"
        />
        <Figure
          label={t('overview.lost')}
          value={number.format(counts.exhausted + counts.failed)}
          note={
            <>
              {t('overview.lost-how', {
                exhausted: number.format(counts.exhausted),
                failed: number.format(counts.failed),
              })}
              <Change {...summary.exhausted} />
            </>
          }
          to="/deliveries?status=exhausted"
        />
        <Figure
          label={t('overview.rate')}
          value={rate}
          note={<Counted active={webhooks.active} retrying={counts.retrying} />}
          to="/webhooks?state=active"
        />
      </SimpleGrid>
      {isFurther ? <Further failures={failures} /> : <Skeleton height={320} />}
    </>
  )
}

/** Charts and failures. */
function Further({ failures }: { failures: Schemas['DashboardSummary']['recent_failures'] }) {
  const { t } = useTranslation()
  return (
    <>
      <Charts />
      <Stack gap="xs">
        <Title order={2} size="h4">
          {t('overview.failures')}
        </Title>
        {failures.length === 0 ? (
          <Text size="sm" c="dimmed">
            {t('overview.no-failures')}
          </Text>
        ) : (
          <DeliveryTable rows={failures} hasWebhook />
        )}
      </Stack>
    </>
  )
}

/** The webhooks that were disabled, and a catalogue that differs from the code. */
function Warnings({ webhooks, catalogue }: Pick<Schemas['DashboardSummary'], 'webhooks' | 'catalogue'>) {
  const { t } = useTranslation()
  return (
    <>
      {webhooks.auto_disabled > 0 && (
        <Alert color="red" variant="outline" py="xs">
          <Group justify="space-between" gap="xs">
            <Text size="sm" fw={600}>
              {t('overview.disabled', { count: webhooks.auto_disabled })}
            </Text>
            <TextLink to="/webhooks" search={{ state: 'disabled' }} size="sm">
              {t('overview.disabled-open')}
            </TextLink>
          </Group>
        </Alert>
      )}
      {catalogue?.in_sync === false && (
        <Alert color="yellow" variant="outline" title={t('overview.catalogue')}>
          <Text size="sm">
            {t('overview.catalogue-text', { generated: catalogue.generated_count, synced: catalogue.synced_count })}
          </Text>
        </Alert>
      )}
    </>
  )
}

/** The webhooks of the rate, and what it leaves out. */
function Counted({ active, retrying }: { active: number; retrying: number }) {
  const { t } = useTranslation()
  return (
    <>
      {t('overview.webhooks', { count: active })}
      {retrying > 0 && (
        <>
          <br />
          {t('overview.rate-retrying', { count: retrying })}
        </>
      )}
    </>
  )
}

/** How many deliveries wait for their next attempt, and when the first of these is due. */
function Retrying({ count }: { count: number }) {
  const { t, i18n } = useTranslation()
  const { may } = useAccess()
  const nowMs = useNow(10_000)
  const queue = useQuery({ ...queueQuery, enabled: count > 0 && may('webhook:dashboard-queue') })
  const at = queue.data?.data.retry.next_attempt_at
  if (!at) return t('overview.retrying', { count })
  return t('overview.retrying-next', { count, age: describeAge(Date.parse(at), nowMs, i18n.language) })
}

/** How the deliveries that were given up compare to those of the day before, by the hour in which that was. */
function Change({ last_24h: last, before_24h: before }: Schemas['ExhaustedDeliveries']) {
  const { t, i18n } = useTranslation()
  const change = last - before
  if (last === 0 && before === 0) return null
  const difference = numberFormat(i18n.language).format(Math.abs(change))
  const name = change === 0 ? 'same' : change > 0 ? 'more' : 'fewer'
  return (
    <>
      <br />
      {t(`overview.exhausted-${name}`, { difference })}
    </>
  )
}

/** A figure that leads to what it counts. */
function Figure({ label, value, note, to }: { label: string; value: string; note: ReactNode; to: string }) {
  return (
    <Card withBorder component={Link} to={to} className="row-link">
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      <Text fz={28} fw={650} lh={1.3}>
        {value}
      </Text>
      <Text size="xs" c="dimmed">
        {note}
      </Text>
    </Card>
  )
}
