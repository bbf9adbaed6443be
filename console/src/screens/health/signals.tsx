import { Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { MiniBars } from '../../parts/chart/mini-bars.tsx'
import { numberFormat } from '../../parts/words/formats.ts'
import { type Reading, useReadings } from './readings.ts'

const MINUTES = 60

/** Interval between reads, ms. */
const REFRESH_MS = 15_000

/** Work that is due and has not begun, now and since the screen was opened. */
export function QueueDepth({ depth }: { depth: Reading }) {
  const { t, i18n } = useTranslation()
  const readings = useReadings(depth)
  const highest = readings.reduce((most, { value }) => Math.max(most, value), 0)
  const bars = readings.slice(-MINUTES).map(({ value }, place) => ({ place, good: value, bad: 0 }))
  return (
    <Signal label={t('health.backlog')} value={numberFormat(i18n.language).format(depth.value)}>
      <MiniBars bars={bars} places={MINUTES} step={2} summary={t('health.backlog-summary', { highest })} />
    </Signal>
  )
}

/** Attempts of the last hour by the minute, what failed on top. */
export function AttemptsOfHour({ isPaused }: { isPaused: boolean }) {
  const { t, i18n } = useTranslation()
  const { may } = useAccess()
  const series = useQuery({
    queryKey: ['dashboard', 'series', '1h'],
    queryFn: ({ signal }) => api.webhook.webhookDashboardSeries({ query: { range: '1h' }, signal }),
    refetchInterval: isPaused ? false : REFRESH_MS,
    enabled: may('webhook:dashboard-series'),
  })
  const found = series.data?.data
  if (!may('webhook:dashboard-series') || series.isError) return null
  if (!found) return <Signal label={t('health.attempts')} value="–" />
  const failed = found.retrying + found.exhausted + found.failed
  const bars = found.buckets.map((bucket, place) => ({
    place,
    good: bucket.success,
    bad: bucket.retrying + bucket.exhausted + bucket.failed,
  }))
  return (
    <Signal label={t('health.attempts')} value={numberFormat(i18n.language).format(found.success + failed)}>
      <MiniBars
        bars={bars}
        places={MINUTES}
        step={2}
        summary={t('health.attempts-summary', { success: found.success, failed })}
      />
    </Signal>
  )
}

function Signal({ label, value, children }: { label: string; value: string; children?: React.ReactNode }) {
  return (
    <Group justify="space-between" wrap="nowrap">
      <Stack gap={0}>
        <Text size="xs" c="dimmed">
          {label}
        </Text>
        <Text fw={650}>{value}</Text>
      </Stack>
      {children}
    </Group>
  )
}
